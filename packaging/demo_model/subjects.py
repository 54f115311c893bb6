"""What the demo is taught to answer: words, tasks, lists, animals, sums, stories. Each function makes one question, its reply and what may follow.

Where a reply is a choice, it is nearly always the same one: a small model learns one habit better than five.
"""

import hashlib
import random
import re
from dataclasses import dataclass, field
from functools import cache

from demo_model.clean import sentences
from demo_model.grammar import HERE, expand
from demo_model.nouns import Noun, article, nouns, pluralize, upper
from demo_model.wording import frame, question

Pair = tuple[str, str]


@dataclass
class Chat:
    turns: list[str]
    kind: str
    thought: str | None = None
    system: str | None = None
    answers: list[Pair] = field(default_factory=list)  # only directly after the reply
    more: list[Pair] = field(default_factory=list)  # after it or after one of its kind
    asides: list[Pair] = field(default_factory=list)  # like `more`, but they turn to another subject ("And a lake?")


@cache
def table(name: str) -> list[list[str]]:
    lines = (HERE / f"authored_{name}.txt").read_text().splitlines()
    return [[c.strip() for c in line.split("|")] for line in lines if line and not line.startswith("#")]


@cache
def pairs(name: str) -> list[tuple[list[str], list[str]]]:
    lines = (HERE / f"authored_{name}.txt").read_text().splitlines()
    split = [line.split(" => ") for line in lines if line and not line.startswith("#")]
    return [(asked.split(" / "), answers.split(" / ")) for asked, answers in split]


def fixed(text: str, options: list[str]) -> str:
    """Always the same option for the same text."""
    return options[int(hashlib.sha256(text.encode()).hexdigest(), 16) % len(options)]


def join(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def enumerate_lines(items: list[str]) -> str:
    return "\n".join(f"{i}. {upper(x)}" for i, x in enumerate(items, 1))


# --- words ------------------------------------------------------------------------------------------------------------------

_UNCOUNTED = frozenset(
    ["rain", "snow", "wind", "thunder", "lightning", "music", "bread", "cheese", "butter", "milk", "honey", "sugar", "salt", "chocolate", "pasta", "rice", "tea", "coffee", "water", "ice", "fire", "grass", "paper", "wood", "glass", "gold", "iron", "money", "love", "happiness", "sadness", "fear", "anger", "hope", "courage", "patience", "trust", "joy", "sleep", "memory", "health", "time", "winter", "summer", "spring", "autumn", "art", "science", "history", "mathematics", "electricity", "energy", "gravity", "air", "oxygen", "justice", "freedom", "peace", "war", "football", "tennis", "swimming", "chess", "friendship", "soup", "television"]
) | {"artificial intelligence"}  # fmt: skip
_WITH_THE = ("sun", "moon", "earth", "internet", "sea")


@dataclass(frozen=True)
class Word:
    a: str  # with its article
    word: str
    plural: str | None
    definition: str
    more: str | None
    example: str | None
    kind: str | None


def _authored(word: str, gloss: str, more: str) -> Word:
    if word in _WITH_THE:
        a = f"the {'Earth' if word == 'earth' else word}"
        plural = None
    elif word in _UNCOUNTED:
        a, plural = word, None
    else:
        a = f"{article(word)} {word}"
        plural = {"fish": "fish", "knife": "knives", "leaf": "leaves"}.get(word, pluralize(word))
    return Word(a, word, plural, f"{upper(a)} is {gloss}.", more if more.endswith(".") else more + ".", None, None)


def _from_wordnet(n: Noun) -> Word:
    example = upper(n.example) + ("" if n.example[-1] in ".!?" else ".") if n.example else None
    return Word(n.a, n.word, n.plural if n.countable else None, n.definition, None, example, n.kind)


@cache
def words() -> tuple[list[Word], list[Word]]:
    """(defined in this project, defined by WordNet)."""
    own = [_authored(*row) for row in table("words")]
    known = {w.word for w in own}
    return own, [_from_wordnet(n) for n in nouns() if n.word not in known]


_WHAT_IS = (
    "{What is|What is|What is|What exactly is|What really is|So what is|And what is} <a>{|| exactly|, please|, in short|, in simple words|, actually}"
    "|{Define|Explain|Describe|Please explain|Please define|Please describe|Explain to me|Describe to me|Can you explain|Can you define|Can you describe|Could you explain|Could you describe} <a>{|, please| in simple words| in one sentence| for me| to me}"
    "|What does {the word |the term |}<w> mean{| exactly| in simple words}|What is the meaning of {|the word }<w>|What do you {call|understand by|mean by} <a>|What do people mean by <w>|What is meant by <w>"
    "|Tell me {|something |a bit |a little |more }about <ps>|What do you know about <ps>|What are <ps>|What are <ps>|Do you know anything about <ps>|What can you tell me about <ps>"
    "|{Can|Could} you tell me {|something |a bit |a little |more }about <ps>|I want to {know|learn} {|something |more }about <ps>|Give me {a|a short|a simple} {definition|explanation|description} of <w>"
    "|<w>|How would you {define|explain|describe} <a>|What kind of thing is <a>|What sort of thing is <a>|The word <w>, what does it mean|<a>, what is {that|it}|I read the word <w>. What does it mean"
    "|I heard about <ps>. What are they|Someone talked about <ps>. What is that|Is there a simple {explanation|definition} of <w>|Explain the word <w>|In {short|simple words|one sentence}, what is <a>|What is that, <a>"
)  # fmt: skip
_TELL_MORE = "{Tell me more|Can you tell me more|Could you tell me more|What else|What else do you know|Anything else|And what else|Do you know more|Say more|Please tell me more|Go on|More|Is there more|I want to know more|Tell me something else about it|What else can you tell me|Can you say more|What more can you say|More about it, please|Tell me a bit more}"


def _clause(r: random.Random, w: Word) -> str:
    if w.plural and r.random() < 0.2:
        return f"what {w.plural} are"
    return r.choice([f"what {w.a} is", f"what {w.a} is", f"what {w.word} means", f"what the word {w.word} means"])


def what_is(r: random.Random, w: Word) -> Chat:
    if r.random() < 0.4:
        ask = frame(r, _clause(r, w))
    else:
        ask = question(expand(r, _WHAT_IS, {"a": w.a, "w": w.word, "ps": w.plural or w.a}))
    more: list[Pair] = []
    about = w.plural or w.a
    if w.more:
        more.append((expand(r, _TELL_MORE), w.more))
    else:
        rest = f"That is all that I know about {about}. You can ask me about another word."
        more.append((expand(r, _TELL_MORE), w.example or rest))
    if w.example:
        ask_example = "{Can you give me an example|Use it in a sentence|Give me an example|Give me an example sentence|Can you use it in a sentence|Make a sentence with it|Do you have an example|For example|An example, please}"
        more.append((expand(r, ask_example), w.example))
    if w.kind:
        more.append(
            (
                expand(r, "What kind of thing is {it|that}|What is it a kind of|What type of thing is it"),
                f"It is a kind of {w.kind}.",
            )
        )
    own, wordnet = words()
    other = r.choice(own if r.random() < 0.6 else wordnet[:2500])
    ask_other = (
        "{And|And what is|What about|How about|And what about|Now explain|And can you explain|Now tell me what is} <a>"
    )
    asides = [(question(expand(r, ask_other, {"a": other.a})), other.definition)]
    if r.random() < 0.3:
        more.append(
            (
                expand(r, "{Why|Why is that|Why is it so|How does it work|Where does it come from|Who invented it|How is it made|How old is it}?"),
                f"I do not know that. I only know what {w.a} is.",
            )
        )  # fmt: skip
    r.shuffle(more)
    thought = f"The user asks what {w.a} is. I will explain it in simple words."
    return Chat([ask, w.definition], "what is", thought, more=more, asides=asides)


_ABOUT = (
    "What is <a> used for|Where can I {find|buy|get|see} <a>|Why {is|are} <ps> important|What can I do with <a>|What is special about <ps>|Tell me {a fact|an interesting fact} about <ps>"
    "|Why do people like <ps>|How does <a> work|What does <a> look like|Who uses <a>|Who invented <ps>|How {are|is} <ps> made|How old is <a>|How big is <a>|How much does <a> cost|What is <a> made of"
    "|What are the parts of <a>|Is <a> {dangerous|expensive|useful|important|old|big}|Why do we need <ps>|Where {do|does} <ps> come from|When {was|were} <ps> invented|What is the history of <ps>|How many <ps> are there|What is the difference between <a> and <b>"
)  # fmt: skip


def about_word(r: random.Random, w: Word, other: Word) -> Chat:
    """A question about a known word that it cannot answer: it says so and tells what it does know."""
    if not w.plural:
        return what_is(r, w)
    ask = question(expand(r, _ABOUT, {"a": w.a, "ps": w.plural, "b": other.a}))
    if " difference " in ask:
        return Chat(
            [ask, f"{w.definition} {other.definition}"], "difference", f"I will say what {w.a} and {other.a} are."
        )
    return Chat([ask, f"I do not know that exactly. I only know this: {w.definition}"], "about", f"The user asks about {w.plural}. I know little.")  # fmt: skip


# --- tasks ------------------------------------------------------------------------------------------------------------------

HOW_TO = (
    "{How do I|How do I|How can I|How can I|How should I|How do you|How would you|How would I|How could I|How does one|How must I|How am I supposed to|So how do I|How do people|How can someone} <t>{||, please| properly| correctly| at home| best| quickly| in a simple way}"
    "|How to <t>{|, please| at home| step by step}|What is {the best|a good|the right|the easiest|the correct|a simple|the usual} way to <t>|What do I {have to do|need to do|do} to <t>|What {can|should|could|would} {I|you|one} do to <t>|What do you do to <t>|What must I do to <t>|What would help me {to |}<t>"
    "|{I want|I would like|I need|I am trying|I am going|I plan|I would love|I have|I really want|I have decided} to <t>{|. How do I do it?|. Can you help me?|. What should I do?|. Where do I start?|. Do you have a tip?|. What do I do?|. Any tips?|. How does it work?|. What are the steps?|, but I do not know how|. Can you tell me how?|, can you help me|. What do you suggest?}"
    "|{Help me|Help me to|Please help me to|Can you help me to|Could you help me|I need help to|Teach me to|Teach me how to|Show me how to|I need to know how to|Give me instructions to|Guide me to|Explain how one can} <t>{|, please}"
    "|{Give me|Do you have|Have you got|I need|Can you give me|Could you give me} {tips|a tip|some tips|advice|some advice|instructions|ideas} {on how to|to|how to} <t>{|, please}"
    "|{Any|Do you have any|Have you any|Can you give me any|Got any|Do you have} {tips|advice|ideas|suggestions} {for|on} <g>{|, please}|{What are the steps|Which steps are there|What is the trick|What is the best way|What is a good way|What do I need to know|What should I know} {for|of|about|when} <g>"
    "|{Tell me|Explain|Teach me|Tell me something} about <g>|{I need|I want|I would like} {help|tips|advice|a tip|some tips|some help} {with|for|on} <g>|{Can|Could|Would} you {help|assist|advise} me {with|on} <g>|How does <g> work|How do you go about <g>|What is important when <g>|What do I do first when <g>|{I have never tried|I am bad at|I know nothing about|I am new to} <g>. {How do I do it|Can you help me|What do I do|Any tips}?|How is <g> done|Is there a trick for <g>"
)  # fmt: skip
_IRREGULAR = {"tie": "tying", "be": "being", "say": "saying", "ski": "skiing", "lie": "lying", "knit": "knitting", "get": "getting", "cut": "cutting", "set": "setting", "stop": "stopping", "plan": "planning", "wrap": "wrapping", "put": "putting", "let": "letting", "swim": "swimming", "hit": "hitting", "sit": "sitting", "run": "running", "quit": "quitting", "swap": "swapping", "chat": "chatting", "slim": "slimming", "pop": "popping", "fit": "fitting", "win": "winning", "dig": "digging", "mop": "mopping", "jog": "jogging"}  # fmt: skip


def gerund(task: str) -> str:
    verb, _, rest = task.partition(" ")
    if "-" in verb:
        head, _, tail = verb.rpartition("-")
        return f"{head}-{gerund(tail)} {rest}".strip()
    done = _IRREGULAR.get(verb) or (verb[:-1] + "ing" if re.search(r"[^eoy]e$", verb) else verb + "ing")
    return f"{done} {rest}".strip()


@cache
def task_extras() -> dict[str, tuple[list[str], str, str]]:
    """task -> other wordings, what it needs, how long it takes."""
    return {row[0]: (row[1].split("; "), row[2], row[3]) for row in table("howto_more")}


_ALONE = "{Can I do it alone|Do I need a teacher|Do I need help|Can I do that by myself|Should I take lessons|Can a child do it|Can I do it on my own|Do I need someone to help me}"


def how_to(r: random.Random, row: list[str]) -> Chat:
    task, answer = row[0], row[1]
    other_words, needed, time = task_extras().get(task, ([], "", ""))
    said = r.choice([task, *other_words]) if r.random() < 0.85 else task
    ask = (
        frame(
            r,
            r.choice(
                [f"how to {said}", f"how I can {said}", f"how to {said}", f"how I {said}", f"how you {said}", f"how one can {said}"]
            ),
        )
        if r.random() < 0.3
        else question(expand(r, HOW_TO, {"t": said, "g": gerund(said)}))
    )  # fmt: skip
    if re.match(r"I (want|would like|plan|would love|have decided|am going|really want) to [^?.]*[.!]$", ask):
        answer = "That is a good idea! " + answer
    steps = sentences(row[1])
    yours = task.replace(" my ", " your ").replace("myself", "yourself")
    learn = "learn" in task or "practice" in time
    how_long = f"It takes {time}." if time and not time.startswith(("it is", "some", "a little", "good")) else "It does not take very long. With some practice it will go faster."  # fmt: skip
    if learn or time.startswith("some"):
        how_long = (
            f"It takes {time}. It depends on how often you practice." if time else "It depends on how often you practice. Many people learn the basics in a few weeks."
        )  # fmt: skip
    asks_time = "{How long does it take|How long does that take|How long will it take|And how long does it take|How much time does it take|How much time do I need|How long do I need for it|How many minutes does it take|How many weeks will it take|Does it take long|Does it take a long time|How fast can I do it|When will it be done|How soon can I do it}"
    asks_hard = "{Is it hard|Is that hard|Is it difficult|Is that difficult|Is it easy|Is it complicated|How hard is it|Is it hard to learn|Do you think it is hard|Do you think I can do it|Do you think it is difficult|Can I do that|Can everyone do it|Will I manage|Is it hard for a beginner|Is it very hard}"
    more: list[Pair] = [
        (expand(r, asks_time) + "?", how_long),
        (
            expand(r, asks_hard) + "?",
            "It is a little hard at first, but it gets easier with practice."
            if learn
            else "No, it is not very hard. Just take your time.",
        ),
        (
            question(
                expand(
                    r,
                    "{What is the first step|Where do I start|What do I do first|How do I start|How should I begin|What comes first|Where should I start|What is the beginning|And first}",
                )
            ),
            steps[0],
        ),
        (
            question(expand(r, "{What comes last|What is the last step|What do I do at the end|And at the end}")),
            steps[-1],
        ),
        (question(expand(r, _ALONE)), "You can do it alone, but it is good to ask someone who has done it before."),
        (
            question(
                expand(
                    r,
                    "{What if it does not work|What if it goes wrong|And if it does not work|It does not work|I tried, but it did not work|What if I make a mistake|I am afraid to make mistakes|I cannot do it|What if I fail}",
                )
            ),
            "Then try it again slowly, one step after another. Mistakes are part of learning.",
        ),
        (
            question(
                expand(
                    r,
                    "{Any other tips|Do you have another tip|Anything else|What else should I know|Another tip|Any more advice|What else is important|What should I watch out for|One more tip, please|Is there anything else|What else can I do}",
                )
            ),
            "Take your time, keep it simple and ask someone who has done it before.",
        ),
        (
            question(
                expand(
                    r,
                    "{Can you make it shorter|Shorter, please|In short|In one sentence|That is too long|Please make it shorter|What is most important|What is the main thing}",
                )
            ),
            steps[0],
        ),
    ]
    answers = []
    if len(steps) > 1 and r.random() < 0.15:
        then = "{And then|What comes next|What do I do after that|And after that|What is the next step|And what then|What next|What is the second step}"
        answers = [(question(expand(r, then)), steps[1])]
    if needed:
        need = "{What do I need|What do I need for that|What do I need for it|Which things do I need|What should I buy|What do I have to buy|What do I need to have|Do I need anything special|And what do I need|What will I need|What should I have at home|What ingredients do I need|What tools do I need|What must I buy}"
        more += [(question(expand(r, need)), f"You need {needed}.")] * 2
    r.shuffle(more)
    return Chat(
        [ask, answer],
        "how-to",
        f"The user wants to {yours}. I will give a few clear steps.",
        answers=answers,
        more=more,
    )


# --- lists ------------------------------------------------------------------------------------------------------------------

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
NAMES = (
    "{Name|Name|Tell me|Give me|Say|Please name|Please give me|Please tell me|Can you name|Can you tell me|Can you give me|Could you name|Could you give me|Could you tell me|Do you know|What are|I need|Show me|Find me|Would you name|Will you name|Would you give me|I want|I would like|I am looking for|Try to name|Now name|Quickly name|Think of|Can you think of|Can you say|Let me have|Let me hear|Help me to find|Mention|Suggest|Could you suggest|Can you suggest|Please suggest} <c> {<p>|different <p>|<p>|examples of <p>|<p>|common <p>|<p>}{|, please| for me| that you know|}"
    "|{Give me|Tell me|I need|Could you tell me|Can you tell me|Do you know|I want to know|I would like to know|Please tell me} the names of <c> {|different }<p>{|, please}|Which <p> {do you know|are there|can you name|come to your mind|can you think of}|What <p> {do you know|are there|can you name}"
    "|<c> <p>{|, please}|What are some <p>|{Name|Tell me|Give me|Can you name|Do you know|Do you have} some {<p>|examples of <p>}|What are {good examples|examples|some examples|<c> examples} of <p>|What would be <c> <p>|What could be <c> <p>"
)  # fmt: skip
LISTS = (
    "{List|Please list|Can you list|Could you list|Would you list|Write down|Write me|Enumerate|Note down|Put down|I want you to list|Can you write down} <c> {<p>|different <p>|<p>}{|, please| for me}"
    "|{Make|Give me|Write|Write me|Create|I need|Can you make|Could you make|Please make|Can you give me|Could you write|I want|Could you give me|I would like|Can you write|Prepare|Make me} a {|short |small |little |quick }list {of|with} <c> {<p>|different <p>|<p>}{|, please| for me}"
)  # fmt: skip


def lists(r: random.Random, row: list[str], others: list[list[str]]) -> Chat:
    single, plural, members = row[0], row[1], [m.strip() for m in row[2].split(",")]
    n = min(r.choice([2, 3, 3, 3, 3, 4, 4, 5]), len(members))
    count = NUMBERS[n] if r.random() < 0.75 else str(n)
    chosen = members[:n]
    x = r.random()
    values = {"c": count, "p": plural}
    if x < 0.35:
        ask, answer = expand(r, LISTS, values), enumerate_lines(chosen)
    elif x < 0.42:
        chosen = members[:1]
        ask = expand(
            r,
            "{Name|Give me an example of|Tell me|Can you name|Do you know|Say|Give me|Tell me the name of|Can you give me an example of} <a>",
            {"a": f"{article(single)} {single}"},
        )
        answer = f"{upper(chosen[0])}."
    else:
        ask = expand(r, NAMES, values)
        if count not in ask.lower().split():
            chosen = members[:3]
        answer = f"{upper(join(chosen))}."
    rest = [m for m in members if m not in chosen]
    more: list[Pair] = []
    one = "{One more, please|Name another one|Can you name one more|Another one, please|One more|And another one|Another one|Do you know one more|Can you add one more|Give me one more|What else|Any others|And what else|Are there more|Add another one|Any more|Can you think of another one|Is there another one}"
    two = "{Two more, please|Name two more|Can you name two more|Give me two more|And two more|Two others, please|Tell me two more}"
    if len(rest) > 1 and r.random() < 0.25:
        further = [(question(expand(r, two)), f"{upper(join(rest[:2]))}.")]
    else:
        further = [(question(expand(r, one)), f"{upper(m)}.") for m in rest[: r.choice([1, 1, 2])]]
    other = r.choice(others)
    theirs = [m.strip() for m in other[2].split(",")][:n]
    ask_other = "{And|Now|And now|What about|How about|And what about|Now name|Now do the same with|Okay, now} <c> <p>"
    values = {"c": NUMBERS[len(theirs)], "p": other[1]}
    asides = [
        (question(expand(r, ask_other, values)), enumerate_lines(theirs) if x < 0.35 else f"{upper(join(theirs))}.")
    ]
    best = "{Which one is the best|Which one do you like best|Which one is your favorite|Which one do you like|What is your favorite|Which of them is best|Which one should I choose|Which one would you take|Which one do you recommend}?"
    more.append((expand(r, best), f"I have no favorite, but many people like the first one: {chosen[0]}."))
    if len(chosen) > 1:
        more.append(
            (
                question(
                    expand(
                        r,
                        "{What was the first one|Which one was first|What is the first one|Repeat the first one|What was number one}",
                    )
                ),
                f"{upper(chosen[0])}.",
            )
        )
        more.append(
            (
                question(
                    expand(
                        r, "{What was the last one|Which one was last|What is the last one|And the last one}"
                    )
                ),
                f"{upper(chosen[-1])}.",
            )
        )  # fmt: skip
    r.shuffle(more)
    more = further + more if r.random() < 0.7 else more
    return Chat(
        [question(ask), answer], "list", f"The user wants some {plural}. I will name them.", more=more, asides=asides
    )


def needs(r: random.Random, row: list[str]) -> Chat:
    what, things = row[0], [t.strip() for t in row[1].split(",")]
    food = re.search(r"salt|milk|flour|egg|sugar|bread|water, a tea|fruit, yogurt|oil$|dough", row[1])
    cooking = food is not None and not re.search(r"trip|picnic|party|journey", what)
    values = {"w": what, "b": re.sub(r"^an? ", "", what)}
    if r.random() < 0.35:
        n = min(r.choice([3, 3, 4, 5]), len(things))
        ask = expand(
            r,
            "{List|Name|Give me|Tell me|Write down|Can you name|Could you list|Make a list of|I need a list of|Can you list|Please list} <c> things {I need|that I need|you need|that are useful|I should have|to buy|to take} for <w>{|, please}",
            values | {"c": NUMBERS[n]},
        )
        return Chat([question(ask), enumerate_lines(things[:n])], "list", f"I will list useful things for {what}.")
    if cooking:
        ask = "{What do I need|What do I need to buy|Which things do I need|Which things do I need to buy|What ingredients do I need|Which ingredients do I need|What should I buy|What must I buy|What do I have to buy|What will I need|What does one need|What do you need} {for|to make} {<w>|<b>}|What {goes|belongs} into {<w>|<b>}|What is in {<w>|<b>}|What {is|are} {<w>|<b>} made {of|from}|{Tell me|Can you tell me|List|Name} the ingredients {for|of} {<w>|<b>}"
        answer = f"You need {join(things)}."
        more = [
            (question(expand(r, "{Is it easy|Is it hard|Is it difficult|Can I do that}")), "It is not very hard. Just take your time."),
            (question(expand(r, "{Anything else|Is that all|Nothing else|Do I need more}")), "That is all you need for a simple version."),
        ]  # fmt: skip
    else:
        ask = "{What do I need|What should I bring|What should I take|What should I pack|What must I have|What do I have to bring|Which things do I need|What should I take with me|What should I put in my bag|What will I need|What would I need|What is useful|What belongs in my bag|What do people take} {for|to|on} <w>|{I am planning|I am preparing|I plan|Next week I have|Tomorrow I have|I have} <w>. {What do I need|What should I bring|What should I take|What should I pack}"
        answer = f"You should take {join(things)}."
        more = [
            (question(expand(r, "{Anything else|Is that all|What else|Nothing else|Do I need more}")), "That is the most important. Take a good mood with you, too."),
            (question(expand(r, "{What is most important|What is the most important thing|What must I not forget}")), f"The most important thing is {things[0]}."),
        ]  # fmt: skip
    return Chat([question(expand(r, ask, values)), answer], "needs", f"The user asks what is needed for {what}.", more=more)  # fmt: skip


# --- animals ----------------------------------------------------------------------------------------------------------------


def animal(r: random.Random, row: list[str], others: list[list[str]]) -> Chat:
    facts = _animal_facts(row)
    key = r.choice(["about", "about", "about", "eat", "live", "sleep", "habit"])
    ask = _animal_ask(r, row, key)
    more: list[Pair] = []
    follow = {
        "about": (_TELL_MORE, f"They live {row[4]} and eat {row[3]}."),
        "eat": ("{What do they eat|What do they like to eat|And what do they eat|What does it eat|What do they feed on|What is their food|What is their usual food|What is their favorite food|And their food|Which food do they like|What can I feed them|Do you know what they eat|What do they live on|What should I feed them}?", f"They eat {row[3]}."),
        "live": ("{Where do they live|Where can I find them|And where do they live|Where is their home|Where are they found|Where can I see them|Do you know where they live|In which places do they live|What is their home|Where does it live}?", f"They live {row[4]}."),
        "sleep": ("{How much do they sleep|How many hours do they sleep|Do they sleep a lot|And how long do they sleep|How long do they sleep|How many hours a day do they sleep|How much sleep do they need|Do you know how long they sleep|For how long do they sleep|Do they sleep much|How long does it sleep}?", facts["sleep"].replace(upper(row[1]), "They")),
        "habit": ("{What is special about them|What can they do|What do they do|What are they known for|What is interesting about them|Tell me something special about them|Anything special about them|What are they like|What makes them special}", row[6]),
    }  # fmt: skip
    for k in r.sample([k for k in follow if k != key], 4):
        asked, said = follow[k]
        more.append((question(expand(r, asked)), said))
    other = r.choice(others)
    elliptic = {
        "about": "And what about <m>|What about <m>|And <m>",
        "eat": "And <m>|What about <m>|And what do <m> eat|How about <m>",
        "live": "And <m>|What about <m>|And where do <m> live|How about <m>",
        "sleep": "And <m>|What about <m>|And how long do <m> sleep|How about <m>",
        "habit": "And what about <m>|What is special about <m>",
    }
    asides = [(question(expand(r, elliptic[key], {"m": other[1]})).replace(".", "?"), _animal_facts(other)[key])]
    more.append((question(expand(r, "{Are they dangerous|Are they friendly|Can I keep one at home|Can I keep them as pets|Do they make good pets|How old do they get|How big are they|How fast are they|Do they bite}")), f"I do not know that exactly. I only know this: {row[6]}"))  # fmt: skip
    if r.random() < 0.5:
        more = more[:3] + r.sample(more[3:], len(more) - 3)
    return Chat(
        [ask, facts[key]], "animal", f"The user asks about {row[1]}. I will answer in short.", more=more, asides=asides
    )


def _animal_facts(row: list[str]) -> dict[str, str]:
    _, many, what, food, home, sleep, habit = row
    hours = f"{sleep} hours a day" if sleep[-1].isdigit() else sleep
    return {
        "about": f"{upper(many)} are {what}. {habit}",
        "eat": f"{upper(many)} eat {food}.",
        "live": f"{upper(many)} live {home}.",
        "sleep": f"{upper(many)} sleep {hours}.",
        "habit": habit.replace("They", upper(many), 1) if habit.startswith("They") else habit,
    }


def _animal_ask(r: random.Random, row: list[str], key: str) -> str:
    values = {"m": row[1], "a": f"{article(row[0])} {row[0]}"}
    clauses = {
        "about": "{what <m> are|what <a> is|something about <m>}",
        "eat": "{what <m> eat|what <a> eats|what <m> like to eat|what food <m> eat|what I can feed <a>}",
        "live": "{where <m> live|where <a> lives|where I can find <m>|where <m> are found}",
        "sleep": "{how long <m> sleep|how much <m> sleep|how many hours <m> sleep|how long <a> sleeps}",
        "habit": "{what is special about <m>|what <m> are known for|what makes <m> special}",
    }
    direct = {
        "about": "{Tell me|Can you tell me|Could you tell me|I want to know|Please tell me|I would like to know|Let us talk|Can we talk|Do you know anything|Do you know something|What can you tell me|Tell me something|Talk to me|Tell me a bit|Tell me a little|Could you tell me a little|Can you tell me something|I want to learn|I would like to hear something|Tell me all|Do you know} about <m>|What do you know about <m>|Describe {<a>|<m>}|What are <m>|What is <a>|What kind of animal is <a>|What kind of animals are <m>|Do you know <m>|Give me some facts about <m>|What are <m> like|I {love|like} <m>. Tell me about them.",
        "eat": "What do <m> {eat|like to eat|feed on|eat all day}|What does <a> eat|What is the {|favorite |usual }food of {<m>|<a>}|What {can|should} I feed {<a>|my <m>|to <a>}|What food do <m> {eat|like|need}|Which food does <a> {eat|like|need}|What do <m> live on",
        "live": "Where do <m> live|Where does <a> live|Where can I {find|see} <m>|Where is the home of {<a>|<m>}|In which {places|countries} do <m> live|Where are <m> {found|at home}",
        "sleep": "How {long|much} do <m> sleep|How many hours {a day |}{do <m>|does <a>} sleep|Do <m> sleep {a lot|much|long}|How much sleep does <a> need|How long does <a> sleep",
        "habit": "What is special about <m>|What can <m> do|What are <m> known for|Tell me {something special|a fact|something interesting|an interesting fact} about <m>|What is {interesting|unusual} about <m>|What makes <m> special",
    }  # fmt: skip
    if r.random() < 0.25:
        return frame(r, _lower(expand(r, clauses[key], values)))
    return question(expand(r, direct[key], values))


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
