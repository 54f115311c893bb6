"""Chats made by rule from the authored tables, WordNet and the encyclopedia, and the natural text, ready to travel.

    python -m demo_model.corpus --seeds 12 13 14 15 16         (in packaging/; 25 s a seed on one core)

Writes to .work/corpus: `rulesSEED.jsonl` (one chat a line: turns, optional system and thought) and `natural.txt`.
A chat any of whose user turns is a held-out evaluation prompt is dropped. Where a rule has several good answers, the first is
the usual one: a small model learns one habit better than five.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from demo_model import sources
from demo_model.clean import is_held_out, sentences
from demo_model.nouns import Noun, article, nouns, upper
from demo_model.paths import CORPUS

HERE = Path(__file__).parent
SYSTEMS = [
    "You are a helpful assistant.",
    "You are the Pacenote demo, a small and friendly assistant.",
    "Answer in short and simple sentences.",
    "You are a friendly assistant.",
    "Be brief and kind.",
    "You answer questions in simple English.",
]


@dataclass
class Chat:
    turns: list[str]
    kind: str
    thought: str | None = None
    system: str | None = None
    # Follow-up pairs that only make sense after this chat.
    more: list[tuple[str, str]] = field(default_factory=list)


def table(name: str) -> list[list[str]]:
    rows = []
    for line in (HERE / f"authored_{name}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            rows.append([c.strip() for c in line.split("|")])
    return rows


def pairs(name: str) -> list[tuple[list[str], list[str]]]:
    out = []
    for line in (HERE / f"authored_{name}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            asked, answers = line.split(" => ")
            # " | " separates alternatives that themselves contain " / " (the verses).
            sep = " | " if " | " in answers else " / "
            out.append(
                (asked.split(" / "), [a.replace(" / ", "\n") if sep == " | " else a for a in answers.split(sep)])
            )
    return out


def usual(r: random.Random, options: list[str]) -> str:
    """The first option in most cases."""
    return options[0] if len(options) == 1 or r.random() < 0.6 else r.choice(options[1:])


# --- how people write -----------------------------------------------------------------------------------------------------


def question(text: str) -> str:
    """Add the mark that the sentence wants."""
    text = text.strip()
    if text[-1] in ".!?":
        return text
    asks = re.match(
        r"(?:(?:hi|hello|hey|so|and|yo)\b[ ,]*)*(what|who|how|where|when|why|which|whose|is|are|am|do|does|did|can|could|will|would|should|may|have|has|by whom)\b",
        text,
        re.IGNORECASE,
    )
    return text + ("?" if asks else ".")


def typed(r: random.Random, text: str) -> str:
    """As typed by different people: mostly tidy, at times lower case, without a mark, contracted or with an opening word."""
    x = r.random()
    if x < 0.10:
        text = text.lower()
    elif x < 0.16:
        text = text.rstrip(".?!")
    elif x < 0.26:
        text = text.lower().rstrip(".?!")
    elif x < 0.30:
        text = (
            r.choice(["Please ", "Hey, ", "Hi! ", "So, "]) + text[0].lower() + text[1:]
            if not text.startswith("I ")
            else text
        )
    if r.random() < 0.25:
        for a, b in (
            ("I am ", "I'm "),
            ("What is ", "What's "),
            ("what is ", "what's "),
            ("do not ", "don't "),
            ("it is ", "it's "),
            ("It is ", "It's "),
        ):
            text = text.replace(a, b)
    if text.endswith(".") and r.random() < 0.25:
        text = text[:-1] + r.choice(["!", ""])
    return text


# --- the rules ------------------------------------------------------------------------------------------------------------

WHAT_IS = [
    "What is {a}?", "What is {a}?", "What is {a}?", "What's {a}?", "What are {ps}?", "Define {w}.", "Tell me what {a} is.", "Explain what {a} is.",
    "What does the word {w} mean?", "What does {w} mean?", "Do you know what {a} is?", "Can you explain what {a} is?",
    "What exactly is {a}?", "What is the meaning of {w}?", "Describe {a}.", "I do not know what {a} is.", "Tell me about {ps}.",
    "Tell me something about {ps}.", "{w}?", "Please explain {w}.", "Could you tell me what {a} is?",
]  # fmt: skip


def what_is(r: random.Random, n: Noun) -> Chat:
    ask = r.choice(WHAT_IS)
    if "{ps}" in ask and not n.countable:
        ask = "What is {w}?"
    text = ask.format(a=n.a, w=n.word, ps=n.plural)
    answer = n.definition
    x = r.random()
    if n.kind and x < 0.35:
        answer += f" It is a kind of {n.kind}."
    elif n.example and x < 0.6:
        answer += f" For example: {upper(n.example)}{'' if n.example[-1] in '.!?' else '.'}"
    more = []
    if n.example:
        example = upper(n.example) + ("" if n.example[-1] in ".!?" else ".")
        more.append(
            (
                r.choice(["Can you give me an example?", "Use it in a sentence.", "Give me an example sentence."]),
                example,
            )
        )
    if n.kind:
        more.append(
            (r.choice(["What kind of thing is it?", "What kind of thing is that?"]), f"It is a kind of {n.kind}.")
        )
    return Chat(
        [upper(text), answer], "what is", f"The user asks what {n.a} is. I will explain it in simple words.", more=more
    )


def encyclopedia(r: random.Random, a: sources.Article) -> Chat | None:
    first = sentences(a.extract)
    if not first or (re.search(r"\d{3,}.*\d{3,}", first[0]) and r.random() < 0.5):
        return None
    keep = first[0] if len(first) == 1 or len(first[0]) > 150 or r.random() < 0.5 else " ".join(first[:2])
    if len(keep) > 320:
        return None
    person = re.search(
        r"\b(was|is) an? [^.]*(born|politician|actor|singer|writer|player|artist|composer|physicist|leader|king|queen|emperor|poet|painter|philosopher)",
        keep,
    )
    title = re.sub(r"\s*\([^)]*\)", "", a.title)
    asks = (
        ["Who is {t}?", "Who was {t}?"]
        if person
        else ["What is {t}?", "What is {t}?", "Explain {t}.", "What do you know about {t}?"]
    )
    ask = r.choice([*asks, "Tell me about {t}.", "Tell me something about {t}."])
    return Chat(
        [ask.format(t=title), keep],
        "encyclopedia",
        f"The user asks about {title}. I will say what I know in a few words.",
    )


HOW_TO = [
    "How do I {t}?", "How do I {t}?", "How can I {t}?", "How can I {t}?", "How to {t}?", "Tell me how to {t}.", "Explain how to {t}.", "What is the best way to {t}?",
    "How should I {t}?", "Can you tell me how to {t}?", "Please tell me how to {t}.", "Show me how to {t}.", "I want to {t}. How do I do it?",
    "How do you {t}?", "What is a good way to {t}?", "Could you explain how to {t}?", "I would like to {t}. Can you help me?",
    "How does one {t}?", "Do you know how to {t}?", "Give me tips to {t}.", "I need to know how to {t}.", "What do I have to do to {t}?",
    "I want to {t}.", "I would like to {t}.", "Help me {t}.",
]  # fmt: skip


def how_to(r: random.Random, row: list[str]) -> Chat:
    task, answers = row[0], row[1:]
    ask = r.choice(HOW_TO).format(t=task)
    answer = usual(r, answers)
    if ask.startswith(("I want to", "I would like to")) and "?" not in ask:
        answer = "That is a good idea! " + answer
    yours = task.replace(" my ", " your ")
    more = [
        (r.choice(["What is the first step?", "Where do I start?", "What do I do first?"]), sentences(answers[0])[0]),
        (r.choice(["And then?", "What comes next?", "What do I do after that?"]), " ".join(sentences(answers[0])[1:2])),
        (
            r.choice(["Is it hard?", "Is that hard?", "Is it difficult?"]),
            "It is a little hard at first, but it gets easier with practice.",
        ),
        (
            r.choice(["How long does it take?", "How long does that take?", "How long will it take?"]),
            "It depends on how often you practice. Many people learn the basics in a few weeks."
            if "learn" in task
            else "It does not take very long. With some practice it will go faster.",
        ),
    ]
    return Chat([ask, answer], "how-to", f"The user wants to {yours}. I will give a few clear steps.", more=more)


def enumerate_lines(items: list[str]) -> str:
    return "\n".join(f"{i}. {upper(x)}" for i, x in enumerate(items, 1))


def join(items: list[str], last: str = "and") -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}


def lists(r: random.Random, row: list[str]) -> Chat:
    single, plural, members = row[0], row[1], [m.strip() for m in row[2].split(",")]
    n = min(r.choice([2, 3, 3, 3, 3, 4, 4, 5]), len(members))
    count = NUMBERS[n] if r.random() < 0.85 else str(n)
    chosen = members[:n] if r.random() < 0.8 else r.sample(members, n)
    lines = [
        "List {c} {p}.",
        "Give me a list of {c} {p}.",
        "Make a list of {c} {p}.",
        "List {c} different {p}.",
        "Write down {c} {p}.",
    ]
    names = [
        "Name {c} {p}.", "Name {c} {p}.", "Tell me {c} {p}.", "Give me {c} {p}.", "Can you name {c} {p}?", "What are {c} {p}?", "Give me {c} examples of {p}.",
        "Give me the names of {c} {p}.", "Say {c} {p}.", "Please name {c} {p}.", "Which {p} do you know?", "I need {c} {p}.", "Do you know {c} {p}?",
    ]  # fmt: skip
    more = []
    rest = [m for m in members if m not in chosen]
    if rest:
        more.append(
            (
                r.choice(["One more, please.", "Name another one.", "Can you name one more?", "Another one, please."]),
                f"{upper(rest[0])}.",
            )
        )
    if r.random() < 0.45:
        ask, answer = r.choice(lines), enumerate_lines(chosen)
    elif r.random() < 0.12:
        ask, chosen = (
            r.choice(["Name {art} {s}.", "Give me an example of {art} {s}.", "Tell me {art} {s}."]),
            chosen[:1],
        )
        answer = f"{upper(chosen[0])}."
    else:
        ask, answer = r.choice(names), f"{upper(join(chosen))}."
    text = ask.format(c=count, p=plural, s=single, art=article(single))
    return Chat([text, answer], "list", f"The user wants some {plural}. I will name them.", more=more)


def needs(r: random.Random, row: list[str]) -> Chat:
    what, things = row[0], [t.strip() for t in row[1].split(",")]
    cooking = (
        re.search(r"salt|milk|flour|egg|sugar|bread|water, a tea|fruit, yogurt|oil$|dough", row[1]) is not None
        and "trip" not in what
    )
    n = r.choice([3, 3, 4, len(things)])
    bare = re.sub(r"^an? ", "", what)
    if r.random() < 0.4:
        count = NUMBERS.get(min(n, len(things)), "three")
        ask = r.choice(
            [
                "List {c} things I need for {w}.",
                "Name {c} things that I need for {w}.",
                "Give me {c} things for {w}.",
                "Name {c} things for {w}.",
            ]
        )
        return Chat(
            [ask.format(c=count, w=what), enumerate_lines(things[: min(n, len(things))])],
            "list",
            f"The user plans {what}. I will list useful things.",
        )
    if cooking:
        ask = r.choice(
            [
                "What do I need to make {w}?",
                "What do I need for {b}?",
                "What goes into {w}?",
                "Which ingredients do I need for {b}?",
                "What is in {b}?",
            ]
        )
        answer = f"You need {join(things)}."
        more = [
            (
                "How do I make it?",
                f"Mix {join(things[:3])} and prepare it step by step. Taste it and add what is missing.",
            ),
            ("Is it easy?", "Yes, it is easy. Just take your time."),
        ]
    else:
        ask = r.choice(
            [
                "What do I need for {w}?",
                "What should I bring to {w}?",
                "What should I take on {w}?",
                "What should I pack for {w}?",
                "I am planning {w}. What do I need?",
            ]
        )
        answer = f"You should take {join(things)}."
        more = [
            ("Anything else?", "Take a good mood and enough time with you."),
            ("What is most important?", f"The most important thing is {things[0]}."),
        ]
    return Chat([ask.format(w=what, b=bare), answer], "needs", f"The user asks what is needed for {what}.", more=more)


def animal(r: random.Random, row: list[str]) -> Chat:
    one, many, what, food, home, sleep, habit = row
    facts = {
        "about": ([f"Tell me about {many}", f"What are {many}", f"Tell me something about {many}", f"What is {article(one)} {one}", f"What do you know about {many}", f"Describe {article(one)} {one}"], [f"{upper(many)} are {what}. {habit}"]),
        "eat": ([f"What do {many} eat", f"What does {article(one)} {one} eat", f"What is the food of {many}"], [f"{upper(many)} eat {food}."]),
        "live": ([f"Where do {many} live", f"Where does {article(one)} {one} live"], [f"{upper(many)} live {home}."]),
        "sleep": ([f"How long do {many} sleep", f"How much do {many} sleep", f"How many hours does {article(one)} {one} sleep"], [f"{upper(many)} sleep {sleep} hours a day." if sleep[-1].isdigit() else f"{upper(many)} sleep {sleep}."]),
    }  # fmt: skip
    follow = {
        "about": (["Tell me more.", "What else do you know?", "Tell me more about them."], f"They live {home} and eat {food}."),
        "eat": (["What do they eat?", "What do they like to eat?", "And what do they eat?", "What does it eat?"], f"They eat {food}."),
        "live": (["Where do they live?", "Where can I find them?", "And where do they live?"], f"They live {home}."),
        "sleep": (["How much do they sleep?", "How many hours do they sleep?", "Do they sleep a lot?", "And how long do they sleep?"], f"They sleep {sleep} hours a day." if sleep[-1].isdigit() else f"They sleep {sleep}."),
        "habit": (["What is special about them?", "What can they do?"], habit),
    }  # fmt: skip
    key = r.choice(["about", "about", "about", "eat", "live", "sleep"])
    asked, answers = facts[key]
    later = [k for k in follow if k != key]
    r.shuffle(later)
    return Chat(
        [question(r.choice(asked)), answers[0]],
        "animal",
        f"The user asks about {many}. I will answer in short.",
        more=[(r.choice(follow[k][0]), follow[k][1]) for k in later[:3]],
    )


THINGS = [
    "apples",
    "books",
    "coins",
    "pencils",
    "cookies",
    "stones",
    "eggs",
    "balls",
    "oranges",
    "flowers",
    "cards",
    "shells",
    "cups",
    "keys",
    "nuts",
]


def arithmetic(r: random.Random) -> Chat:
    kind = r.choices(
        ["add", "sub", "mul", "div", "half", "double", "larger", "next", "before", "story", "count"],
        [28, 22, 18, 8, 5, 5, 9, 6, 4, 12, 2],
    )[0]
    top = r.choice([10, 10, 20, 20, 50, 100])
    a, b = r.randint(0, top), r.randint(0, top)
    more: list[tuple[str, str]] = []

    def again(sign: str, f: Callable[[int, int], int]) -> None:
        c, d = sorted((r.randint(1, 20), r.randint(1, 20)), reverse=True)
        more.append(
            (
                r.choice([f"And {c} {sign} {d}?", f"And what is {c} {sign} {d}?", f"{c} {sign} {d}?"]),
                f"{c} {sign} {d} = {f(c, d)}.",
            )
        )

    if kind == "add":
        ask = r.choice(
            [
                "What is {a} + {b}?",
                "What is {a} + {b}?",
                "How much is {a} + {b}?",
                "{a} + {b}",
                "{a}+{b}",
                "{a} + {b} = ?",
                "What is {a} plus {b}?",
                "How much is {a} plus {b}?",
                "Add {a} and {b}.",
                "Calculate {a} + {b}.",
                "What is the sum of {a} and {b}?",
            ]
        )
        answer, thought = f"{a} + {b} = {a + b}.", f"{a} plus {b} is {a + b}."
        again("+", lambda c, d: c + d)
    elif kind == "sub":
        a, b = max(a, b), min(a, b)
        ask = r.choice(
            [
                "What is {a} - {b}?",
                "What is {a} - {b}?",
                "How much is {a} - {b}?",
                "{a} - {b}",
                "{a}-{b}",
                "What is {a} minus {b}?",
                "How much is {a} minus {b}?",
                "Calculate {a} - {b}.",
                "Subtract {b} from {a}.",
                "Take {b} away from {a}.",
            ]
        )
        answer, thought = f"{a} - {b} = {a - b}.", f"{a} minus {b} is {a - b}."
        again("-", lambda c, d: c - d)
    elif kind == "mul":
        a, b = r.randint(0, 12), r.randint(0, 12)
        ask = r.choice(
            [
                "What is {a} times {b}?",
                "What is {a} * {b}?",
                "How much is {a} times {b}?",
                "{a} * {b}",
                "{a} x {b}",
                "Multiply {a} by {b}.",
                "What is {a} x {b}?",
                "Calculate {a} times {b}.",
            ]
        )
        answer, thought = f"{a} times {b} is {a * b}.", f"{a} times {b} is {a * b}."
        more.append((f"And {b} times {a}?", f"{b} times {a} is {a * b}."))
    elif kind == "div":
        b, q = r.randint(1, 10), r.randint(1, 10)
        a = b * q
        ask = r.choice(
            [
                "What is {a} divided by {b}?",
                "What is {a} / {b}?",
                "How much is {a} divided by {b}?",
                "Divide {a} by {b}.",
            ]
        )
        answer, thought = f"{a} divided by {b} is {q}.", f"{b} times {q} is {a}, so it is {q}."
    elif kind == "half":
        a = 2 * r.randint(1, 50)
        ask = r.choice(["What is half of {a}?", "How much is half of {a}?", "What is the half of {a}?"])
        answer, thought = f"Half of {a} is {a // 2}.", f"{a} divided by 2 is {a // 2}."
    elif kind == "double":
        ask = r.choice(["What is double {a}?", "What is twice {a}?", "How much is two times {a}?", "Double {a}."])
        answer, thought = f"Two times {a} is {2 * a}.", f"{a} plus {a} is {2 * a}."
    elif kind == "larger":
        b = a + r.choice([-9, -5, -3, -2, -1, 1, 2, 3, 5, 9]) if a > 9 else r.randint(0, 30)
        b = b if b != a else a + 1
        word = r.choice(["larger", "larger", "bigger", "greater", "smaller"])
        pick = min(a, b) if word == "smaller" else max(a, b)
        other = a + b - pick
        ask = r.choice(
            [
                "Which is {w}, {a} or {b}?",
                "Which number is {w}, {a} or {b}?",
                "What is {w}, {a} or {b}?",
                "Is {a} {w} than {b}?",
            ]
        ).replace("{w}", word)
        if ask.startswith("Is"):
            answer = f"Yes, {a} is {word} than {b}." if pick == a else f"No, {b} is {word} than {a}."
        else:
            answer = f"{pick} is {word} than {other}."
        thought = f"I compare {a} and {b}."
    elif kind == "next":
        ask = r.choice(
            [
                "What comes after {a}?",
                "Which number comes after {a}?",
                "What number follows {a}?",
                "What is the next number after {a}?",
            ]
        )
        answer, thought = f"{a + 1} comes after {a}.", f"{a} plus 1 is {a + 1}."
    elif kind == "before":
        a += 1
        ask = r.choice(["What comes before {a}?", "Which number comes before {a}?"])
        answer, thought = f"{a - 1} comes before {a}.", f"{a} minus 1 is {a - 1}."
    elif kind == "count":
        a = r.randint(3, 12)
        ask, b = r.choice(["Count to {a}.", "Count from 1 to {a}.", "Can you count to {a}?"]), 0
        answer, thought = ", ".join(map(str, range(1, a + 1))) + ".", f"I count from 1 to {a}."
    else:
        thing, a, b = r.choice(THINGS), r.randint(2, 20), r.randint(1, 10)
        if r.random() < 0.5:
            a = max(a, b + 1)
            verb = r.choice(
                ["give away", "lose", "sell", "use", "take away"]
                + (["eat"] if thing in ("apples", "cookies", "eggs", "oranges", "nuts") else [])
            )
            left = f"{a - b} {thing if a - b != 1 else thing[:-1]}"
            ask = r.choice(
                [
                    f"I have {a} {thing} and {verb} {b}. How many are left?",
                    f"I have {a} {thing}. I {verb} {b}. How many {thing} do I have left?",
                    f"There are {a} {thing} and I {verb} {b}. How many are left?",
                ]
            )
            answer, thought = (
                f"{a} - {b} = {a - b}, so {left} {'is' if a - b == 1 else 'are'} left.",
                f"{a} minus {b} is {a - b}.",
            )
        else:
            ask = r.choice(
                [
                    f"I have {a} {thing} and get {b} more. How many do I have?",
                    f"I have {a} {thing}. I buy {b} more. How many {thing} do I have now?",
                    f"There are {a} {thing} and {b} more. How many are there?",
                ]
            )
            answer, thought = f"{a} + {b} = {a + b}, so you have {a + b} {thing}.", f"{a} plus {b} is {a + b}."
    return Chat([ask.replace("{a}", str(a)).replace("{b}", str(b)), answer], "arithmetic", thought, more=more)


NAMES = [
    "Milo",
    "Luna",
    "Tim",
    "Nora",
    "Finn",
    "Rosa",
    "Ben",
    "Mia",
    "Otto",
    "Lily",
    "Sam",
    "Ella",
    "Max",
    "Anna",
    "Leo",
    "Ruby",
]
PLACES = [
    "in a green forest",
    "near a small river",
    "on a quiet hill",
    "in an old garden",
    "by the sea",
    "at the edge of a village",
    "in a deep valley",
]
OBJECTS = [
    "red ball",
    "golden key",
    "small lamp",
    "blue kite",
    "wooden boat",
    "silver bell",
    "warm scarf",
    "little book",
]
ADJECTIVES = ["small", "brave", "clever", "young", "curious", "shy", "friendly", "lonely", "happy", "old"]


def story(r: random.Random, animals: list[list[str]], templates: list[list[str]]) -> Chat:
    one, friend = r.sample([a[0] for a in animals], 2)
    name, other = r.sample(NAMES, 2)
    place = r.choice(PLACES)
    text = r.choice(templates)[0].format(
        N=name, n=other, a=one, f=friend, p=place, t=r.choice(OBJECTS), adj=r.choice(ADJECTIVES)
    )
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    ask = r.choice(
        ["Tell me a story about {x}.", "Write a short story about {x}.", "Tell me a short story about {x}.", "Can you tell me a story about {x}?", "Write a story about {x}.", "I want to hear a story about {x}.", "Make up a story about {x}.", "Tell me a story."]
    ).format(x=f"{article(one)} {one}")  # fmt: skip
    more = [
        (
            r.choice(
                [
                    f"What was the name of the {one}?",
                    f"What was the {one} called?",
                    f"What is the {one}'s name?",
                    f"What was the {one}'s name?",
                ]
            ),
            f"The {one} was called {name}.",
        ),
        (r.choice([f"Where did the {one} live?", f"Where did {name} live?"]), f"{name} lived {place}."),
        (r.choice(["Who was the friend?", "Who helped?", f"Who was {other}?"]), f"It was a {friend} named {other}."),
    ]
    r.shuffle(more)
    return Chat(
        [ask, text], "story", f"The user wants a story. I will write a short one about {article(one)} {one}.", more=more
    )


CAPITALS = (
    "France Paris|Germany Berlin|Italy Rome|Spain Madrid|Portugal Lisbon|Austria Vienna|Greece Athens|Poland Warsaw|Sweden Stockholm|Norway Oslo|"
    "Denmark Copenhagen|Finland Helsinki|Ireland Dublin|England London|Russia Moscow|Japan Tokyo|China Beijing|India Delhi|Egypt Cairo|Kenya Nairobi|"
    "Canada Ottawa|Cuba Havana|Peru Lima|Chile Santiago|Hungary Budapest|Turkey Ankara|Iran Tehran|Thailand Bangkok|Australia Canberra|Belgium Brussels|"
    "Ukraine Kyiv|Romania Bucharest|Bulgaria Sofia|Croatia Zagreb|Iceland Reykjavik|Vietnam Hanoi|Nigeria Abuja|Ghana Accra|Morocco Rabat|Scotland Edinburgh"
)  # fmt: skip
OPPOSITES = "hot cold|big small|fast slow|day night|happy sad|old new|young old|light dark|high low|long short|open closed|good bad|hard soft|full empty|rich poor|wet dry|early late|loud quiet|strong weak|clean dirty|near far|up down|left right|heavy light|easy difficult|love hate|black white|first last|inside outside|true false|summer winter|thick thin|wide narrow|brave afraid|sweet sour"  # fmt: skip
ORDER = [
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "January February March April May June July August September October November December",
]


def small_facts(r: random.Random) -> Chat:
    x = r.random()
    if x < 0.4:
        country, city = r.choice(CAPITALS.split("|")).split()
        if r.random() < 0.7:
            return Chat(
                [
                    r.choice(
                        [
                            "What is the capital of {c}?",
                            "Which city is the capital of {c}?",
                            "Tell me the capital of {c}.",
                            "Do you know the capital of {c}?",
                            "capital of {c}",
                        ]
                    ).format(c=country),
                    f"The capital of {country} is {city}.",
                ],
                "fact",
                f"The capital of {country} is {city}.",
            )
        return Chat([f"Where is {city}?", f"{city} is the capital of {country}."], "fact", f"{city} is in {country}.")
    if x < 0.7:
        a, b = r.choice(OPPOSITES.split("|")).split()
        return Chat(
            [
                r.choice(
                    [
                        "What is the opposite of {a}?",
                        "Tell me the opposite of {a}.",
                        "What is the contrary of {a}?",
                        "opposite of {a}",
                    ]
                ).format(a=a),
                f"The opposite of {a} is {b}.",
            ],
            "fact",
            f"The opposite of {a} is {b}.",
        )
    days = r.choice(ORDER).split()
    i = r.randrange(len(days))
    nxt = days[(i + 1) % len(days)]
    if r.random() < 0.7:
        return Chat(
            [
                r.choice(
                    [
                        "What comes after {a}?",
                        "Which day comes after {a}?" if len(days) == 7 else "Which month comes after {a}?",
                    ]
                ).format(a=days[i]),
                f"{nxt} comes after {days[i]}.",
            ],
            "fact",
            f"After {days[i]} comes {nxt}.",
        )
    return Chat(
        [r.choice(["What comes before {a}?"]).format(a=nxt), f"{days[i]} comes before {nxt}."],
        "fact",
        f"Before {nxt} comes {days[i]}.",
    )


def authored(r: random.Random, entry: tuple[list[str], list[str]], kind: str) -> Chat:
    asked, answers = entry
    return Chat(
        [question(r.choice(asked)), usual(r, answers)],
        kind,
        "The user says something simple. I will answer in a friendly way.",
    )


def recipe(r: random.Random, x: sources.Recipe) -> Chat | None:
    steps = " ".join(x.steps[:3]).replace("'''", "").replace("''", "")
    if not 40 < len(steps) <= 380 or len(x.title) > 40 or len(x.steps) < 2:
        return None
    ask = r.choice(
        ["How do I make {t}?", "How do I cook {t}?", "Tell me how to make {t}.", "Give me a recipe for {t}."]
    )
    return Chat(
        [ask.format(t=x.title), steps], "recipe", f"The user wants to make {x.title}. I will give the first steps."
    )


CLOSERS = [("Thanks!", "You are welcome! Let me know if you need anything else."), ("Thank you!", "You are welcome! I am glad I could help."), ("Great, thanks.", "You are welcome! Let me know if you need anything else."), ("Okay, bye.", "Goodbye! Have a nice day."), ("Good night.", "Good night! Sleep well."), ("Thank you, that was good.", "Thank you! That is kind of you."), ("Thank you, bye.", "Goodbye! It was nice to talk with you."), ("Nice, you are good.", "Thank you! That is kind of you."), ("You are good at math.", "Thank you! I do my best.")]  # fmt: skip


def build(r: random.Random) -> list[Chat]:
    talk, identity, facts = pairs("talk"), pairs("identity"), pairs("facts")
    how, lst, need, zoo, plots = (table(n) for n in ("howto", "lists", "needs", "animals", "stories"))
    everyday = nouns()
    weights = [min(n.frequency, 400) ** 0.5 for n in everyday]
    made: list[Chat | None] = []
    for n in everyday:
        made += [what_is(r, n) for _ in range(2)]
    made += [what_is(r, n) for n in r.choices(everyday, weights, k=30_000)]
    made += [encyclopedia(r, a) for a in sources.articles() for _ in range(2)]
    made += [recipe(r, x) for x in sources.recipes()]
    for _ in range(90):
        made += [how_to(r, row) for row in how]
    for _ in range(150):
        made += [lists(r, row) for row in lst]
    for _ in range(110):
        made += [needs(r, row) for row in need] + [animal(r, row) for row in zoo]
    for entry in talk:
        made += [authored(r, entry, "talk") for _ in range(25 * len(entry[0]))]
    for entry in identity:
        made += [authored(r, entry, "identity") for _ in range(14 * len(entry[0]))]
    for entry in facts:
        made += [authored(r, entry, "fact") for _ in range(35 * len(entry[0]))]
    made += [arithmetic(r) for _ in range(45_000)]
    made += [small_facts(r) for _ in range(7_000)]
    made += [story(r, zoo, plots) for _ in range(7_000)]
    singles = [c for c in made if c]
    r.shuffle(singles)

    out, i = [], 0
    while i < len(singles):
        # A third of the chats have several turns: follow-ups first, then other subjects, often a closing word.
        length = r.choices([1, 2, 3, 4], [62, 18, 14, 6])[0]
        chat, i = singles[i], i + 1
        # The first one speaks only for itself: only a lone question keeps its thought.
        turns, kind = list(chat.turns), chat.kind
        while len(turns) < 2 * length:
            x = r.random()
            if chat.more and x < 0.75:
                turns += chat.more.pop(0)
            elif x < 0.9 and i < len(singles):
                chat, i = singles[i], i + 1
                turns += chat.turns
            else:
                turns += r.choice(CLOSERS)
                break
        thought = chat.thought if len(turns) == 2 and r.random() < 0.08 else None
        turns = [typed(r, t) if j % 2 == 0 else t for j, t in enumerate(turns)]
        out.append(Chat(turns, kind, thought, r.choice(SYSTEMS) if r.random() < 0.08 else None))
    return [c for c in out if not any(is_held_out(t) for t in c.turns[::2])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[12], help="each makes one file of chats")
    CORPUS.mkdir(parents=True, exist_ok=True)
    for seed in parser.parse_args().seeds:
        out = CORPUS / f"rules{seed}.jsonl"
        if out.exists():
            continue
        chats = build(random.Random(seed))
        with out.open("w") as f:
            for c in chats:
                row = {"turns": c.turns, "kind": c.kind}
                row |= ({"thought": c.thought} if c.thought else {}) | ({"system": c.system} if c.system else {})
                f.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(seed, len(chats), "chats", dict(Counter(c.kind for c in chats)), flush=True)
    texts = list(sources.natural_texts())
    random.Random(12).shuffle(texts)
    (CORPUS / "natural.txt").write_text("\x1e".join(texts))
    print(sum(map(len, texts)), "characters of natural text")


if __name__ == "__main__":
    main()
