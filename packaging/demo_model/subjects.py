"""What the demo is taught to answer: here what all subjects share, and tasks. Each function makes one question, its reply and what may follow.

Where a reply is a choice, it is nearly always the same one: a small model learns one habit better than five.
"""

import hashlib
import random
import re
from dataclasses import dataclass, field
from functools import cache

from demo_model.clean import sentences
from demo_model.grammar import HERE, expand
from demo_model.nouns import (
    upper,
)
from demo_model.wording import frame, lower_first, question

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


# --- tasks ------------------------------------------------------------------------------------------------------------------

HOW_TO = (
    "{How do I|How do I|How can I|How can I|How should I|How do you|How would you|How would I|How could I|How does one|How must I|How am I supposed to|So how do I|How do people|How can someone} <t>{||, please| properly| correctly| at home| best| quickly| in a simple way}"
    "|How to <t>{|, please| at home| step by step}|What is {the best|a good|the right|the easiest|the correct|a simple|the usual} way to <t>|What do I {have to do|need to do|do} to <t>|What {can|should|could|would} {I|you|one} do to <t>|What do you do to <t>|What must I do to <t>|What would help me {to |}<t>"
    "|{I want|I would like|I need|I am trying|I am going|I plan|I would love|I have|I really want|I have decided} to <t>{|. How do I do it?|. Can you help me?|. What should I do?|. Where do I start?|. Do you have a tip?|. What do I do?|. Any tips?|. How does it work?|. What are the steps?|, but I do not know how|. Can you tell me how?|, can you help me|. What do you suggest?}"
    "|{Help me|Help me to|Please help me to|Can you help me to|Could you help me|I need help to|Teach me to|Teach me how to|Show me how to|I need to know how to|Give me instructions to|Guide me to|Explain how one can} <t>{|, please}"
    "|{Can|Could|Would} you {walk|talk|guide} me through <g>|{Walk|Talk|Guide} me through <g>|{What is|Is there|Do you know|What would be} {an easy|a good|a quick|a simple|a clever|a nice|the proper} way {to <t>|of <g>}|{What|Anything that} helps {to|me} <t>|{Any idea|Any clue|No idea|Any thoughts on} how to <t>|I {struggle|have trouble|have problems|am having trouble} with <g>. {What helps|Any ideas|What can I do|Can you help}?|How {does one|might one|might I|shall I|will I} {go about <g>|<t>|ever <t>}|What is your {advice|best tip|tip|recommendation} for <g>|I could use {some help|a hand|advice|a tip} with <g>|What do you {recommend|suggest|advise} {for <g>|to <t>}|{I have to|I must|We want to|My friend wants to|I should|I might|We need to|My son has to} <t>. {How|How do I do that|How does that go|What do I do|Can you help|Any tips|How is it done|What is the best way|Where do I begin}?|{What is|Can you give me|Give me} a {short|quick|simple} {guide|plan|recipe} {for <g>|to <t>}|{It is my first time|First time} <g>. {What should I know|Any tips|How do I start|What do I do}?"
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


@cache
def problems() -> dict[str, tuple[str, str]]:
    """task -> what people tell instead of naming it, a question with a pronoun that goes with it (both written short)."""
    lines = (HERE / "authored_problems.txt").read_text().splitlines()
    rows = [
        line.split(" | ") for line in lines if not line.startswith("#")
    ]  # choices within are written without the spaces
    return {task: (told.replace("; ", "|"), asked.replace("; ", "|")) for task, told, asked in rows}


_WHAT_NOW = "what {should|can|could|do|shall|must} {I|we} do{| now| about it| about that}|{can|could} you help{| me}|{any|got any|do you have any} {tips|ideas|advice|idea}|what {helps|would help|do you suggest|would you do|now|is the best thing to do}|how {do|can} I {fix|solve} {that|this}|please help{| me}|help|do you {have a tip|know what to do|know what helps}|is there {anything I can do|something that helps|a trick}"


def problem(r: random.Random, row: list[str], ask: str) -> str:
    """The trouble instead of the task at times ("My shirt is full of wrinkles, how do I get them out?")."""
    if row[0] not in problems() or r.random() > 0.4:
        return ask
    told, asked = problems()[row[0]]
    told = expand(r, told)
    x = r.random()
    then = expand(r, asked if x < 0.6 else _WHAT_NOW) if x < 0.85 or "?" not in ask else ask
    start = r.choice(["", "", "", "Oh no, ", "Help, ", "Ugh, ", "So ", "Hey, ", "Well, "])
    told = start + (lower_first(told) if start else told)
    mark = r.choice([". ", ", ", ". ", "! ", ", so ", " and "])
    if mark in (", ", ", so ", " and "):
        then = lower_first(then)
        mark = mark if re.match("how|what", then) else ", "
    return f"{told}{mark}{question(then)}"


_ALONE = "{Can|Could|Should|May} {I|one} {learn|do|try|manage} {it|that|this} {alone|by myself|on my own|without {a teacher|help|lessons|a course}|at home}|{Do|Will} I need {a teacher|lessons|help|a course|an expert|someone to help}{| for {it|that}|}|Is {it|that} possible {alone|without a teacher|without help|by myself}|{Can I do it alone|Do I need a teacher|Do I need help|Can I do that by myself|Should I take lessons|Can a child do it|Can I do it on my own|Do I need someone to help me}"


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
    ask = problem(r, row, ask)
    steps = sentences(row[1])
    yours = task.replace(" my ", " your ").replace("myself", "yourself")
    learn = "learn" in task or "practice" in time
    how_long = f"It takes {time}." if time and not time.startswith(("it is", "some", "a little", "good")) else "It does not take very long. With some practice it will go faster."  # fmt: skip
    if learn or time.startswith("some"):
        how_long = (
            f"It takes {time}. It depends on how often you practice." if time else "It depends on how often you practice. Many people learn the basics in a few weeks."
        )  # fmt: skip
    asks_time = "{How long {until|before|till} I {can|am able to|could} {<t>|do it|do that}{| well}|How {many|long} {weeks|days|months|hours} {does it take|will it take|will I need|do I need|until I can do it|is it}|When {can I|will I be able to} {<t>|do it}{| well}|How much {practice|time} {does it take|do I need|will it take|is needed}|How {long|much time} {would|might|could} {it|that} take{| me}|Will {it|that} take {long|weeks|months|a long time}|How long {should|must} I {practice|wait|do it}|How {quickly|fast} can I {learn it|learn that|do it|get good at it}|How soon will I {see results|be good|be done}|And the time|Does it take {much|a lot of} time|Can I do it in {a day|a week|an hour}}|{How long does it take|How long does that take|How long will it take|And how long does it take|How much time does it take|How much time do I need|How long do I need for it|How many minutes does it take|How many weeks will it take|Does it take long|Does it take a long time|How fast can I do it|When will it be done|How soon can I do it}"
    asks_hard = "{Is {it|that|this} {very|really|terribly|too|so} {hard|difficult|tricky|complicated}{| for me| for a beginner| to do}|How {difficult|hard|easy|tricky} {is|would|will} {it|that} {be|get}{| for me}|{Would|Do} you {say|think} {it is|that is} {hard|difficult|easy|too hard for me}|Am I {too old|too young|too late|good enough} for {it|that}|I {think|am afraid|guess|fear} it is {too |very |}{hard|difficult}|{Sounds|That sounds|That seems|It seems|Looks} {hard|difficult|complicated|tricky|easy}|Can {anyone|anybody|everybody|I|a beginner|a child} {learn|do|manage} {it|that}|Is it {something for beginners|for everyone}}|{Is it hard|Is that hard|Is it difficult|Is that difficult|Is it easy|Is it complicated|How hard is it|Is it hard to learn|Do you think it is hard|Do you think I can do it|Do you think it is difficult|Can I do that|Can everyone do it|Will I manage|Is it hard for a beginner|Is it very hard}"
    more: list[Pair] = [
        (expand(r, asks_time, {"t": said}) + "?", how_long),
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
