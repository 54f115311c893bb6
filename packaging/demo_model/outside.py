"""What the demo does not know: it names the subject, says so, and says what it can do. And free remarks of people, answered by rule."""

import random
import re
from functools import cache

from demo_model import sources
from demo_model.grammar import expand
from demo_model.kinds import LISTS, NAMES
from demo_model.nouns import ANIMAL, ARTIFACT, FOOD, OBJECT, PLANT, article, nouns, pluralize
from demo_model.subjects import HOW_TO, Chat, Pair, gerund, table, task_extras
from demo_model.wording import frame, question
from demo_model.words import words

_TASKS, _FIELDS, _ODD_LISTS, _RELATIONS, _VERBS = (row[1].split("; ") for row in table("outside"))
CAN = "I can explain common words, give short tips and do small sums."
_UNSAFE = re.compile(
    r"\b(fuck|shit|sex|kill|porn|bitch|suicide|drugs?|damn|crap|gender|race|trump|biden|rape|naked|nazi)\w*", re.I
)
_WHY = (
    "{Why not|Why do you not know that|Why do you not know it|How come|Why|But why|Why is that|You do not know that|Really not}?",
    "I am a small demo, so that the app works at once and without the internet. Please download a larger model for real answers.",
)
_WHO_KNOWS = (
    "{Who knows that|Where can I find that|Who can answer that|Where can I look it up|How can I find out|Can you look it up|Who can help me with that|Can you find out|Where can I read about it|Can you look that up}?",
    "A larger model can tell you more. You can download one in the app.",
)
_NEVER_MIND = (
    "{Okay|Never mind|No problem|Too bad|That is a pity|Fine|All right|That is okay|What a pity|I see|Pity}{|, thank you|, thanks|}.",
    "I am sorry that I could not help. You can ask me something else.",
)
_THEN_WHAT = (
    "{So what do you know|What do you know then|What can you do then|Then what can you do|What can you tell me|What else can you do|What do you know|So what can you do|And what can you do|What can you help me with then}?",
    "I can chat about simple things, explain common words, give short tips, make small lists, and add small numbers.",
)


def deflect(subject: str) -> str:
    return f"I am a small demo model and do not know much about {subject}. {CAN}"


def _follow(r: random.Random) -> list[Pair]:
    return [(expand(r, a), b) for a, b in r.sample([_WHY, _WHO_KNOWS, _THEN_WHAT], 3)]


def _answer(r: random.Random) -> list[Pair]:
    return [(expand(r, _NEVER_MIND[0]), _NEVER_MIND[1])] if r.random() < 0.2 else []


_ODD_WHAT = "What is meant by <x>|{Explain|Describe} <x> {like I am {five|a kid|a child}|as if I were {five|a child}|in simple words|to me}|What {on earth|in the world|exactly|really} is <x>|Ever heard of <x>? What is {it|that}|What would you say <x> is|I {keep hearing|often hear|heard|read} about <x>{, what is it|. What is that|. Do you know it}|Have you ever heard of <x>|My {teacher|friend|brother|boss} {mentioned|talks about} <x>. What is that|<x>, what is that|Tell me all about <x>|{Anything|Something} you know about <x>|I have no {clue|idea} what <x> is|What is <x> {for|good for|all about}|What do you call <x>|How do you explain <x>|In your own words, what is <x>|In {short|simple words|plain words}, what is <x>|What {should|must} I know about <x>|{Can|Could|Would} you explain {what <x> is|<x>}{| to me|, please}|Explain to me what <x> is|What is the meaning of <x>"


@cache
def _known_words() -> frozenset[str]:
    own = {w.word.lower() for part in words() for w in part}
    return frozenset(
        own | {pluralize(w) for w in own} | {f"the {w}" for w in own} | {row[0] for row in table("animals")}
    )


@cache
def names() -> tuple[list[str], list[str], list[str]]:
    """Names of people, names of other things, and rare words: none of them is taught."""
    known = _known_words()
    people, things = [], []
    for a in sources.articles():
        title = re.sub(r"\s*\([^)]*\)", "", a.title).strip()
        if not title.isascii() or len(title) > 40 or title.lower() in known or _UNSAFE.search(title):
            continue
        first = a.extract[:200]
        is_person = re.search(r"\b(was|is) an? [^.]*(born|politician|actor|actress|singer|writer|player|artist|composer|physicist|leader|king|queen|emperor|poet|painter|philosopher|director)", first)  # fmt: skip
        (people if is_person or re.search(r"\(\w* ?\d{1,2}? ?\w* ?\d{4} ?[-–]", first) else things).append(title)
    rare = [
        w
        for w in sources.noun_index()
        if re.fullmatch(r"[a-z]{4,14}( [a-z]{3,12})?", w) and w not in known and not _UNSAFE.search(w)
    ]
    return people, things, rare


_SYLLABLES = ["ka", "lo", "mi", "ra", "ten", "sel", "vor", "an", "bri", "dal", "fen", "gor", "hol", "is", "jun", "kel", "lum", "mar", "nor", "os", "pel", "quin", "ros", "sal", "tur", "ul", "ven", "wil", "yar", "zor"]  # fmt: skip


def _invented(r: random.Random) -> str:
    return "".join(r.choices(_SYLLABLES, k=r.choice([2, 2, 3]))).capitalize()


_WHO = "{Who is|Who was|Tell me about|Do you know|What do you know about|What did|Can you tell me about|Tell me something about|Have you heard of} <x>{|, please}|When was <x> born|When did <x> {die|live}|Where was <x> born|Where did <x> live|Why is <x> famous|What is <x> known for|How old is <x>|What did <x> {do|write|invent|say|paint}|Is <x> still alive|Who was <x>'s {wife|husband|father|mother|teacher}|Did <x> win a prize"
_THING = "{What is|What is|What was|Tell me about|Explain|What do you know about|Can you explain|Do you know|Tell me something about|Can you tell me about|Describe|Have you heard of|What can you tell me about} <x>{|, please| in simple words}|Who {invented|discovered|founded|wrote|made} <x>|When was <x> {founded|invented|built}|When did <x> {start|end}|Where is <x>|Why is <x> {important|famous}|How does <x> work|What is the history of <x>|How {big|old|high|long|far} is <x>|How many people live in <x>|What is the population of <x>|Is <x> {dangerous|expensive|big|good|real}|What is <x> used for|What do you think {of|about} <x>|How much does <x> cost|I {like|love|am interested in|am reading about|study} <x>. Do you know {it|something about it}"
_RARE = "What is <a>|What is <a>|What does {|the word }<w> mean|Define <w>|Explain <w>|Tell me about <ps>|What are <ps>|What do you know about <ps>|Do you know what <a> is|How does <a> work|What is <a> used for|Why are <ps> important|Where can I find <a>|Can you explain what <a> is|What is the meaning of <w>"


@cache
def _fields() -> list[str]:
    return [f for f in _FIELDS if f.lower() not in _known_words()]


def unknown(r: random.Random) -> Chat:
    people, things, rare = names()
    x = r.random()
    if x < 0.17:
        name = r.choice(people) if r.random() < 0.6 else f"{_invented(r)} {_invented(r)}" if r.random() < 0.5 else r.choice(people)  # fmt: skip
        ask, subject = expand(r, _WHO, {"x": name}), name
    elif x < 0.45:
        name = r.choice(things) if r.random() < 0.6 else r.choice(_fields()) if r.random() < 0.8 else _invented(r)
        ask, subject = expand(r, _THING if r.random() < 0.7 else _ODD_WHAT, {"x": name}), name
        if r.random() < 0.2:
            ask = frame(r, f"what {name} is")
    elif x < 0.62:
        word = r.choice(rare)
        countable = r.random() < 0.75
        a, many = (f"{article(word)} {word}", pluralize(word)) if countable else (word, word)
        wording = _RARE if r.random() < 0.65 else _ODD_WHAT
        ask = (
            frame(r, f"what {a} is")
            if r.random() < 0.3
            else expand(r, wording, {"a": a, "w": word, "ps": many, "x": a})
        )
        subject = many
    elif x < 0.8:
        return unknown_task(r)
    elif x < 0.9:
        return unknown_list(r)
    else:
        return unknown_relation(r)
    return Chat([question(ask), deflect(subject)], "outside", f"I do not know much about {subject}. I will say so.", answers=_answer(r), more=_follow(r))  # fmt: skip


@cache
def _known_tasks() -> frozenset[str]:
    return frozenset(t for row in table("howto") for t in (row[0], *task_extras().get(row[0], ([],))[0]))


def unknown_task(r: random.Random) -> Chat:
    x = r.random()
    if x < 0.4:
        task = r.choice(_TASKS)
    elif x < 0.6:
        one, other = r.sample(
            [n for n in nouns()[:2500] if n.countable and n.lexname in (FOOD, ARTIFACT, OBJECT, ANIMAL, PLANT)], 2
        )
        a = f"{article(one.word)} {one.word}"
        task = expand(r, "{get|take|remove} {<p>|<a>} {out of|off|from} <b>|keep <p> {away from|off|out of} <b>|{open|close|move|lift|cut|dry|store|hold|wear|carry|replace|adjust|peel|reach|separate|weigh|heat|freeze|break|bend|glue} <a>|{put|fit} <a> {into|on|under} <b>|{protect|cover} <p> {from|with} <q>|stop <p> from {breaking|smelling|leaking|rusting|moving|falling}|turn <a> into <b>|tell <p> from <q>", {"a": a, "p": one.plural, "q": other.plural, "b": f"{article(other.word)} {other.word}"})  # fmt: skip
        task = task[0].lower() + task[1:]
    else:
        n = r.choice([x for x in r.sample(nouns(), 5) if x.countable] or [nouns()[5]])
        task = (
            f"{r.choice(_VERBS)} {article(n.word)} {n.word}" if r.random() < 0.7 else f"{r.choice(_VERBS)} {n.plural}"
        )
    if task in _known_tasks():
        task = "win the lottery"
    ask = (
        frame(r, f"how to {task}") if r.random() < 0.25 else question(expand(r, HOW_TO, {"t": task, "g": gerund(task)}))
    )
    yours = task.replace(" my ", " your ")
    reply = f"I am a small demo model and do not know how to {yours}. I can help with simple things such as cooking an egg or cleaning a window."
    return Chat(
        [ask, reply], "outside", f"I do not know how to {yours}. I will say so.", answers=_answer(r), more=_follow(r)
    )


def unknown_list(r: random.Random) -> Chat:
    what = r.choice(_ODD_LISTS)
    if r.random() < 0.3:
        n = r.choice(nouns()[:3000])
        what = f"{r.choice(['famous', 'rare', 'expensive', 'ancient', 'modern', 'French', 'typical', 'Chinese'])} {n.plural}"
    count = r.choice(["two", "three", "three", "three", "four", "five", "3", "ten"])
    ask = expand(r, LISTS if r.random() < 0.4 else NAMES, {"c": count, "p": what})
    reply = f"I am a small demo model and do not know a list of {what}. I can list simple things such as fruits, animals or colors."
    return Chat(
        [question(ask), reply], "outside", f"I do not know {what}. I will say so.", answers=_answer(r), more=_follow(r)
    )


def unknown_relation(r: random.Random) -> Chat:
    n = r.choice(nouns()[:3000])
    _people, things, _ = names()
    values = {"t": _invented(r) if r.random() < 0.5 else r.choice(things), "u": r.choice(things), "w": n.word, "ps": n.plural, "n": _invented(r), "k": str(r.randint(101, 999))}  # fmt: skip
    subject = expand(r, r.choice(_RELATIONS), values)
    subject = subject[0].lower() + subject[1:]
    ask = (
        frame(r, f"what {subject} is")
        if r.random() < 0.3
        else question(expand(r, "{What is|What is|What was|Tell me|Do you know|Give me|I want to know|Can you tell me|What do you know about|Explain} <x>", {"x": subject}))
    )  # fmt: skip
    return Chat(
        [ask, deflect(subject)],
        "outside",
        f"I do not know {subject}. I will say so.",
        answers=_answer(r),
        more=_follow(r),
    )


# --- free remarks -----------------------------------------------------------------------------------------------------------

_BAD = re.compile(r"\b(sad|tired|bad|sick|ill|hurt|pain|lost|died|hate|angry|boring|bored|stress\w*|hard|difficult|terrible|awful|worst|sorry|unfortunately|failed|problem|cold|rough|busy|exam|miss|lonely|broke|worried|scared|annoy\w*|ugh|sucks?)\b", re.I)  # fmt: skip
_GOOD = re.compile(r"\b(good|great|nice|fun|happy|love|loved|enjoy\w*|awesome|amazing|wonderful|beautiful|glad|excited|best|cool|favorite|lovely|fantastic|delicious|won|relax\w*|vacation|holiday|party|birthday)\b", re.I)  # fmt: skip


def remark(text: str) -> str:
    """A safe reply by rule to whatever a person says, questions apart."""
    low = text.lower()
    if re.match(r"(thanks|thank you|thx)", low):
        return "You are welcome! Let me know if you need anything else."
    if re.search(r"\b(bye|goodbye|see you|good ?night|gotta go)\b", low):
        return "Goodbye! Have a nice day."
    if re.search(r"\bi (really |also |just |do )?(like|love|enjoy|prefer)\b", low):
        return "That is great! What do you like most about it?"
    bad, good = len(_BAD.findall(low)), len(_GOOD.findall(low))
    if re.search(r"\b(not|n't|never|no) (\w+ )?(good|great|nice|fun|happy|enjoy\w*)\b", low):
        bad, good = bad + 1, 0
    if bad > good and re.search(r"\b(i|my|me|i'm|im|we)\b", low):
        return "I am sorry to hear that. Do you want to tell me more about it?"
    if good > bad and re.search(
        r"\b(i|we|my) (had|have|love|loved|enjoy|enjoyed|won|got|am so happy|am happy|was happy)\b", low
    ):
        return "That sounds nice! Please tell me more about it."
    if re.search(r"\b(i will|i'll|i am going to|i'm going to|going to|gonna|tomorrow|i plan|i want to)\b", low):
        return "I hope it goes well! Please tell me more about it."
    if re.search(r"\b(my|i|we|me)\b", low):
        return "I see. Please tell me more about it."
    return "That is interesting. Please tell me more about it."


@cache
def _remarks() -> list[str]:
    turns = [t for d in sources.dialogues() for t in d if 12 <= len(t) <= 100 and t.isascii()]
    greeting = re.compile(r"^(hi|hello|hey|good (morning|evening|afternoon)|yo|sup|howdy|what'?s up)\b", re.I)
    about_it = re.compile(r"\b(chat ?bot|robot|human|who are you|your name|an ai)\b", re.I)
    # Questions are left out: a vague reply to them is the first habit that a small model falls into with any free wording.
    asks = re.compile(r"\?|^(so |and |but |well,? )?(what|who|how|where|when|why|which|do|does|did|are|is|can|could|would|have|any|got)\b|\b(you|your|u)\b", re.I)  # fmt: skip
    bad = (_UNSAFE, greeting, about_it, asks)
    return [t for t in turns if not any(pattern.search(t) for pattern in bad)]


def with_a_remark(r: random.Random, ask: str) -> str:
    """The question behind something that the user tells first and that does not matter for it."""
    told = r.choice(_remarks())
    return f"{told}{'' if told[-1] in '.!?,' else r.choice(['.', ',', '.'])} {ask}" if len(told) < 60 else ask


def free_remark(r: random.Random) -> Chat:
    text = r.choice(_remarks())
    more: list[Pair] = []
    for _ in range(2):
        other = r.choice(_remarks())
        more.append((other, remark(other)))
    return Chat([text, remark(text)], "remark", "The user tells me something. I will answer in a friendly way.", more=more)  # fmt: skip
