"""What the teacher is asked: everyday prompts from templates and nouns, grounded in a definition or a passage it can lean on.

    python -m demo_model.prompts         (in packaging/; about 1 min) -> .work/corpus/jobs.jsonl

A job: user (what the student will see), system (what only the teacher sees), prefix (the reply's given start), keep (sentences),
topic (must the reply share a content word with the prompt), new (token budget). Held-out prompts are dropped here.
"""

import json
import random
import re
from collections import Counter

from demo_model import nouns as n_
from demo_model import sources
from demo_model.clean import content_stems, is_held_out, sentences
from demo_model.nouns import Noun, nouns, upper
from demo_model.paths import CORPUS
from demo_model.subjects import table
from demo_model.wording import question, typed

SHORT = "You are a helpful assistant. Answer in one or two short, simple sentences."
KIND = "You are a warm and friendly assistant. Reply to the user in one or two short sentences."
FOLLOW_UPS = [
    "Tell me more.", "Can you give me an example?", "Why is that?", "Why?", "How does that work?", "Can you explain that?", "What else should I know?",
    "Is that important?", "Who uses it?", "Where can I learn more?", "Can you say that in simpler words?", "What do you mean?", "Is that true?", "And what else?",
]  # fmt: skip

HOW_TO = [
    "How do I {t}?", "How can I {t}?", "How to {t}?", "Tell me how to {t}.", "Explain how to {t}.", "What is the best way to {t}?", "How should I {t}?", "Can you tell me how to {t}?",
    "Please tell me how to {t}.", "Show me how to {t}.", "I want to {t}. How do I do it?", "How do you {t}?", "What is a good way to {t}?", "I would like to {t}. Can you help me?",
    "Do you know how to {t}?", "Give me tips to {t}.", "I need to know how to {t}.", "What do I have to do to {t}?",
]  # fmt: skip

ABOUT = [
    "What is {a} used for?", "Where can I find {a}?", "Why is {w} important?", "Why are {ps} important?", "What can I do with {a}?", "What is special about {ps}?", "Tell me a fact about {ps}.",
    "Why do people like {ps}?", "How does {a} work?", "What does {a} look like?", "Who uses {a}?", "Tell me an interesting fact about {ps}.", "Describe {a}.", "Do I need {a}?", "How are {ps} made?",
    "Can you tell me something about {ps}?", "What should I know about {ps}?", "Give me an example of {a}.", "What do people do with {ps}?", "When do I need {a}?", "What is good about {ps}?",
    "Explain {w} to a child.", "What are the parts of {a}?", "Is {a} dangerous?", "Is {a} expensive?", "How do I choose {a}?", "Why do we need {ps}?", "What do you think about {ps}?", "Do you like {ps}?",
]  # fmt: skip
SAID = [
    "I like {ps}.", "I love {ps}.", "I saw {a} today.", "I bought {a} yesterday.", "I have {a}.", "I do not like {ps}.", "I need {a}.", "I want {a}.", "I am looking for {a}.", "I lost my {w}.",
    "My friend gave me {a}.", "I am afraid of {ps}.", "I made {a} today.", "We talked about {ps} at school.", "I dreamed of {a}.", "I found {a} in my garden.", "I am reading a book about {ps}.", "My mother likes {ps}.",
]  # fmt: skip
PLACES = ["I am going to {a}.", "I was at {a} today.", "We visited {a} last week.", "I live near {a}."]
BECOME = [
    "I want to become {a}.",
    "My father is {a}.",
    "My sister works as {a}.",
    "I talked to {a} today.",
    "What does {a} do?",
    "How do I become {a}?",
    "Is it hard to be {a}?",
]
TASKS = {
    n_.ARTIFACT: [
        "clean {a}",
        "use {a}",
        "choose {a}",
        "fix {a}",
        "draw {a}",
        "buy {a}",
        "make {a}",
        "store {a}",
        "carry {a}",
        "build {a}",
    ],
    n_.FOOD: ["cook {w}", "make {w}", "store {w}", "serve {w}", "choose good {w}", "eat less {w}"],
    n_.ANIMAL: ["take care of {a}", "draw {a}", "find {a}", "feed {a}", "take a photo of {a}", "learn about {ps}"],
    n_.PLANT: ["grow {a}", "take care of {a}", "plant {a}", "draw {a}", "water {a}"],
    n_.PERSON: ["become {a}", "talk to {a}", "find {a}", "thank {a}"],
}
OPENINGS = ["That sounds", "How nice!", "That is", "I am glad", "", "", ""]


def job(
    user: str, system: str = SHORT, prefix: str = "", keep: int = 2, new: int = 80, topic: bool = True, kind: str = ""
) -> dict:
    return {"user": user, "system": system, "prefix": prefix, "keep": keep, "new": new, "topic": topic, "kind": kind}


def fact(n: Noun) -> str:
    return f"{SHORT} Useful fact: {n.definition}"


def fill(template: str, n: Noun) -> str | None:
    if ("{ps}" in template) and not n.countable:
        return None
    return upper(template.format(a=n.a, w=n.word, ps=n.plural))


def build(r: random.Random) -> list[dict]:
    everyday = nouns()
    weight = [min(n.frequency, 300) ** 0.5 for n in everyday]
    concrete = [
        n
        for n in everyday
        if n.lexname in (n_.ARTIFACT, n_.FOOD, n_.ANIMAL, n_.PLANT, n_.BODY, n_.OBJECT, n_.SUBSTANCE, n_.PHENOMENON)
    ]
    concrete_weight = [min(n.frequency, 300) ** 0.5 for n in concrete]
    jobs: list[dict] = []

    for n in r.choices(concrete, concrete_weight, k=70_000) + r.choices(everyday, weight, k=40_000):
        if user := fill(r.choice(ABOUT), n):
            jobs.append(job(user, fact(n), kind="about"))
    for n in r.choices(everyday, weight, k=40_000):
        user = fill(
            r.choice(
                [
                    "What is {a}?",
                    "Explain {w}.",
                    "What is {w} in simple words?",
                    "Tell me about {w}.",
                    "What is {a} and what is it for?",
                    "Tell me what {a} is in one sentence.",
                ]
            ),
            n,
        )
        if user:
            jobs.append(job(user, fact(n), prefix=f"{upper(n.a)} is" if r.random() < 0.7 else "", kind="what is"))
    for n in r.choices(concrete, concrete_weight, k=30_000):
        if user := fill(r.choice(SAID), n):
            jobs.append(job(user, KIND, prefix=r.choice(OPENINGS), kind="said"))
    for n in r.choices([x for x in everyday if x.lexname in (n_.LOCATION, n_.ARTIFACT) and x.countable], k=8_000):
        jobs.append(job(fill(r.choice(PLACES), n), KIND, prefix=r.choice(OPENINGS), kind="said"))
    people = [n for n in everyday if n.lexname == n_.PERSON and n.countable]
    for n in r.choices(people, k=14_000):
        jobs.append(job(fill(r.choice(BECOME), n), fact(n), kind="people"))
    by_kind = {k: [n for n in everyday if n.lexname == k] for k in TASKS}
    authored_tasks = [row[0] for row in table("howto")]
    for _ in range(60_000):
        if r.random() < 0.3:
            task = r.choice(authored_tasks)
        else:
            k = r.choice(list(TASKS))
            pool = by_kind[k]
            n = r.choices(pool, [min(x.frequency, 200) ** 0.5 for x in pool])[0] if r.random() < 0.5 else r.choice(pool)
            task = r.choice(TASKS[k]).format(a=n.a, w=n.word, ps=n.plural)
        ask = r.choice(HOW_TO).format(t=task)
        prefix = f"To {task.replace(' my ', ' your ')}," if r.random() < 0.6 else ""
        jobs.append(job(ask, SHORT + " Give two or three clear steps.", prefix, keep=3, new=100, kind="how-to"))
    titles = [a for a in sources.articles() if len(a.extract) > 120]
    for a in titles * 4:
        passage = " ".join(sentences(a.extract)[:3])[:420]
        name = re.sub(r"\s*\([^)]*\)", "", a.title)
        ask = r.choice(
            [
                "Tell me about {t}.",
                "What is {t}?",
                "Explain {t} in simple words.",
                "Why is {t} important?",
                "What is {t} known for?",
                "Tell me a fact about {t}.",
                "What do you know about {t}?",
            ]
        )
        jobs.append(job(ask.format(t=name), f"{SHORT} Use this text: {passage}", new=90, kind="encyclopedia"))
    for _ in range(16_000):
        a, b = r.choices(concrete, concrete_weight, k=2)
        if a is not b:
            jobs.append(
                job(
                    f"What is the difference between {a.a} and {b.a}?",
                    f"{SHORT} Useful facts: {a.definition} {b.definition}",
                    new=90,
                    kind="difference",
                )
            )
    for _ in range(26_000):
        a, b = r.choices(concrete, concrete_weight, k=2)
        user = r.choice(
            [
                f"Write a short story about {a.a}.",
                f"Tell me a short story about {a.a} and {b.a}.",
                f"Write a very short story with {a.a}.",
                f"Tell me a story about {a.a}.",
            ]
        )
        prefix = r.choice(["Once upon a time, there was", "One day,", "There was once", ""])
        jobs.append(
            job(
                user,
                "You write very short stories for small children, in simple words, with a happy end.",
                prefix,
                keep=6,
                new=130,
                kind="story",
            )
        )
    for n in r.choices(everyday, weight, k=14_000):
        user = r.choice(
            [
                f"Write a sentence with the word {n.word}.",
                f"Use {n.word} in a sentence.",
                f"Make a sentence with {n.word}.",
                f"Write a short sentence about {n.word}.",
            ]
        )
        jobs.append(
            job(
                user,
                "You write one short and simple sentence with the word that the user gives.",
                keep=1,
                new=40,
                kind="sentence",
            )
        )
    turns = [
        t for d in sources.dialogues() for t in d if 12 <= len(t) <= 90 and t.isascii() and len(content_stems(t)) >= 1
    ]
    turns = [
        t
        for t in turns
        if not re.search(
            r"\b(fuck|shit|sex|kill|porn|bitch|suicide|drugs?|damn|crap|gender|race|trump|biden)\b", t.lower()
        )
    ]
    for t in r.sample(turns, min(40_000, len(turns))):
        jobs.append(job(t, KIND, prefix=r.choice(["", "", "", "That sounds", "I think"]), new=60, kind="human"))

    out = []
    for j in jobs:
        if j["user"] and not is_held_out(j["user"]):
            if j["kind"] != "human":
                j["user"] = typed(r, question(j["user"]))
            if not is_held_out(j["user"]):
                out.append(j)
    r.shuffle(out)
    return out


def main() -> None:
    CORPUS.mkdir(parents=True, exist_ok=True)
    jobs = build(random.Random(7))
    with (CORPUS / "jobs.jsonl").open("w") as f:
        for j in jobs:
            f.write(json.dumps(j, ensure_ascii=False) + "\n")
    print(len(jobs), dict(Counter(j["kind"] for j in jobs)))


if __name__ == "__main__":
    main()
