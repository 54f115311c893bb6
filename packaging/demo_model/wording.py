"""How people write: frames around a question, opening words, politeness, lower case, missing marks, slips of the finger."""

import random
import re

from demo_model.grammar import expand

# Around a subordinate clause ("what a kettle is", "how to boil an egg").
FRAMES = (
    "{Can|Could|Would|Will} you {please |kindly |quickly |briefly |maybe |}{tell|explain to|show|teach} me <s>{|, please}"
    "|{Can|Could} you {please |}{explain|say|describe} <s>{|, please| to me| in simple words| in one sentence| briefly}"
    "|{Do you know|Do you happen to know|Any idea|Do you have an idea|Would you know|Have you any idea|Do you maybe know} <s>"
    "|{I want|I would like|I need|I would love|I am trying|I have|I just want} to {know|learn|find out|understand} <s>"
    "|{I wonder|I was wondering|I have always wondered|I am curious|I am wondering|I keep wondering|I would be glad to hear|I forgot|I never learned|I am not sure|I am asking myself} <s>"
    "|{|Please |Kindly |Just |Quickly |Briefly |Simply }{tell|explain to|show} me {|in short |in simple words |in a few words |briefly |quickly |again }<s>{|, please}"
    "|{|Please |Kindly |Briefly }explain <s>{| to me| in simple words| briefly|, please| to a child}"
    "|{I do not know|I have no idea|I do not understand|I am not sure|I do not really know|I never understood|Nobody ever told me} <s>{|. Can you help me?|. Can you tell me?|. Do you know it?|}"
    "|{Help me understand|Help me to understand|Let me know|May I ask|Can I ask|I must know|Remind me|Teach me|Say in one sentence|Say in short|Can you say|What I want to know is} <s>{|, please}"
    "|{My son|My daughter|My friend|My child|Someone|My little sister|My mother|A child|My boss|My teacher} {asked me|wants to know|asks|would like to know} <s>{|. What should I say?|. What do I say?|}"
)  # fmt: skip
_TIMES = ("morning", "evening", "afternoon")
_GREETINGS = (
    "{Hello|Hi|Hey|Hi there|Hello there|Hey there|Good morning|Good evening|Good afternoon|Good day|Hello again}"
    "{|, Pacenote|, demo| my friend| again}{!|,|.|}"
    "{| I have a question.| One question:| How are you?| Nice to meet you.| I need your help.| Quick question:| Can you help me?| I am new here.}"
)
_OPENERS = (
    "{Please,|So,|Well,|Okay,|OK.|Sorry,|Excuse me,|Quick question:|One question:|A question:|I have a question:|Question:|I was wondering,|Say,|Hmm,|Now,"
    "|Next question:|Another question:|By the way,|Just curious,|Tell me,|I need help.|Can you help me?|Help me, please.|One thing:|Sorry to bother you,|Hey,|Yo,|Listen,|Maybe you know:}"
)
_LATER = (
    "{Okay.|OK,|Okay,|And|So,|So|Now|Great.|Great!|Thanks!|Thanks.|Thank you.|Cool.|Interesting.|Nice.|Good.|I see.|Next question:|Another question:|By the way,|Then|Well,|All right."
    "|Fair enough.|Fair enough,|Right.|Alright,|Alright.|Ha,|Haha.|Lol.|Good to know.|Makes sense.|Got it.|Oh,|Oh okay.|Understood.|Sure.|Ah, I see.|Hmm.|Hm, and|Thanks a lot.|Great, thanks.|Okay, thanks.|Good,|Great,|Cool,|Really?|I did not know that.|That is interesting.|Very good.|Wonderful.|Awesome.|Super.|Just one more thing:|Last question:|One more question:|Quick question:|You know what,|Also,|And also,|Actually,|Wait,|Please,|Sorry,|Never mind."
    "|Fine.|One more thing:|Another thing:|Perfect.|Ah.|Let us talk about something else.|Something else:|Different question:|New topic.|I also want to ask:|Hm.|Aha.|Wow.|But}"
)


def question(text: str) -> str:
    """Add the mark that the sentence wants."""
    text = text.strip()
    if text[-1] in ".!?":
        return text
    asks = re.match(
        r"(?:(?:hi|hello|hey|so|and|yo|but|then|now|okay|well|tell me|good \w+|honestly|hi there|first of all|may i ask|please tell me)\b[ ,]*)*"
        r"(what|who|how|where|when|why|which|whose|is|are|am|do|does|did|can|could|will|would|should|may|have|has|by wh|with whom|whom|to whom|any|were|was|shall|got)\b",
        text,
        re.IGNORECASE,
    )
    return text + ("?" if asks else ".")


def lower_first(text: str) -> str:
    return text if re.match(r"(I\b|I'|[A-Z]{2}|Pacenote)", text) else text[:1].lower() + text[1:]


def frame(r: random.Random, clause: str) -> str:
    return question(expand(r, FRAMES, {"s": clause}))


def _behind(r: random.Random, opening: str, ask: str) -> str:
    small = opening[-1] not in ".!?" or r.random() < 0.25
    return f"{opening} {lower_first(ask) if small else ask}"


def opened(r: random.Random, ask: str, reply: str, first: bool, greet: bool) -> tuple[str, str]:
    """With opening words at times. A greeting before a question is greeted back, where `greet` says that it should."""
    x = r.random()
    if not first:
        return (_behind(r, expand(r, _LATER), ask), reply) if x < 0.22 else (ask, reply)
    if greet and x < 0.14:
        opening = expand(r, _GREETINGS)
        time = next((t for t in _TIMES if t in opening.lower()), None)
        back = f"Good {time}!" if time else "Hello!"
        return _behind(r, opening, ask), f"{back} {reply}"
    if x < 0.22:
        return _behind(r, expand(r, _OPENERS), ask), reply
    return ask, reply


_SHORT = (("I am ", "I'm "), ("What is ", "What's "), ("what is ", "what's "), ("do not ", "don't "), ("it is ", "it's "), ("It is ", "It's "), ("Who is ", "Who's "), ("How is ", "How's "),
          ("cannot ", "can't "), ("I have ", "I've "), ("I would ", "I'd "), ("did not ", "didn't "), ("That is ", "That's "), ("that is ", "that's "), ("Let us ", "Let's "), ("I will ", "I'll "),
          ("You are ", "You're "), ("you are ", "you're "), ("does not ", "doesn't "), ("is not ", "isn't "), ("There is ", "There's "), ("We are ", "We're "))  # fmt: skip


_OTHER_WORDS = (
    ("things", "stuff"), ("kind of", "sort of"), ("kinds of", "sorts of"), ("want to", "wanna"), ("going to", "gonna"), ("yes", "yeah"), ("very", "really"), ("a little", "a tad"),
    ("tell me", "let me know"), ("mistakes", "errors"), ("mistakes", "wrong things"), ("some", "a few"), ("good way", "nice way"), ("which", "what"), ("people", "folks"), ("mother", "mom"), ("father", "dad"),
    ("children", "kids"), ("big", "huge"), ("small", "tiny"), ("start", "begin"), ("buy", "get"), ("prepare", "whip up"), ("make", "prepare"), ("cannot", "am unable to"),
    ("exactly", "precisely"), ("explain", "clarify"), ("problem", "issue"), ("help me", "give me a hand"), ("hard", "tough"), ("difficult", "tricky"), ("need", "require"),
    ("can you", "could you"), ("do you know", "any clue"), ("how do i", "how does one"), ("how can i", "how might I"), ("how do i", "how would you"), ("what is", "what on earth is"), ("another one", "got another"),
    ("one more", "a further one"), ("are you", "would you be"), ("who are you", "what are you"), ("built", "put together"), ("advice", "pointers"), ("at home", "in my place"), ("do you", "do you ever"),
)  # fmt: skip
_FILLERS = ["really", "actually", "just", "maybe", "like", "basically", "perhaps", "kind-of", "simply", "please", "then", "exactly", "again", "finally", "even", "always", "also", "still", "only", "probably", "honestly", "roughly", "usually"]  # fmt: skip
_DROPPED = frozenset(
    (
        "a",
        "an",
        "the",
        "do",
        "does",
        "of",
        "to",
        "is",
        "are",
        "am",
        "that",
        "so",
        "for",
        "with",
        "please",
        "some",
        "very",
    )
)


def loosened(r: random.Random, text: str) -> str:
    """Another word here and there, one left out or put in: what comes across is still the same question."""
    x = r.random()
    if x < 0.45:
        low = text.lower()
        fitting = [(a, b) for a, b in _OTHER_WORDS if re.search(rf"\b{a}\b", low)]
        if fitting:
            a, b = r.choice(fitting)
            text = re.sub(rf"\b{a}\b", b, text, count=1, flags=re.IGNORECASE)
            return text[:1].upper() + text[1:]
    parts = text.split(" ")
    if len(parts) < 4:
        return text
    if x < 0.75:
        parts.insert(r.randrange(1, len(parts)), r.choice(_FILLERS).replace("-", " "))
    else:
        loose = [i for i, w in enumerate(parts) if w.lower() in _DROPPED]
        if loose:
            del parts[r.choice(loose)]
    text = " ".join(parts)
    return text[:1].upper() + text[1:]


def typed(r: random.Random, text: str, keep_case: bool = False) -> str:
    """As typed by different people: mostly tidy, at times lower case, without a mark, contracted or with a slip."""
    if not keep_case:
        while r.random() < 0.28 and not re.search(r"\d", text):
            text = loosened(r, text)
    x = r.random() if not keep_case else 0.09 + 0.91 * r.random()
    if keep_case and 0.14 <= x < 0.22:
        x = 0.1
    if x < 0.09:
        text = text.lower()
    elif x < 0.14:
        text = text.rstrip(".?!")
    elif x < 0.22:
        text = text.lower().rstrip(".?!")
    if r.random() < 0.4:
        for a, b in _SHORT:
            text = text.replace(a, b)
    if text.endswith(".") and r.random() < 0.25:
        text = text[:-1] + r.choice(["!", ""])
    if r.random() < 0.02 and not keep_case and (long := list(re.finditer(r"[a-z]{5,}", text))):
        at = (m := r.choice(long)).start() + r.randrange(1, len(m[0]) - 2)
        text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text or "Hello"
