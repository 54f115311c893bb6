"""Chats made by rule, and the natural text, ready to travel.

    python -m demo_model.corpus --seeds 31 32 33 34 35         (in packaging/; about 50 s a seed on one core)

Writes to .work/corpus: `rulesSEED.jsonl` (one chat a line: turns, optional system and thought) and `natural.txt`.
A chat any of whose user turns is a held-out evaluation prompt is dropped, and so is a line of natural text that is one.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

from demo_model import sources
from demo_model.clean import is_held_out
from demo_model.grammar import Block, expand, read_scripts, variety
from demo_model.kinds import animal, lists, needs, other_names
from demo_model.outside import free_remark, unknown, with_a_remark
from demo_model.paths import CORPUS
from demo_model.small import authored_fact, joke, small_fact, story
from demo_model.subjects import Chat, Pair, how_to, table, task_extras
from demo_model.sums import arithmetic
from demo_model.talks import cook, pet, trip
from demo_model.wording import opened, question, typed
from demo_model.words import about_word, what_is, words

SYSTEMS = [
    "You are a helpful assistant.",
    "You are the Pacenote demo, a small and friendly assistant.",
    "Answer in short and simple sentences.",
    "You are a friendly assistant.",
    "Be brief and kind.",
    "You answer questions in simple English.",
]
# What may follow anything.
_ANYTIME = [
    ("{Thank you|Thanks|Thank you very much|Thanks a lot|Great, thanks|Great, thank you|Perfect, thank you|Okay, thanks|That helps, thank you|Thanks, that helps|Thank you, that helps|That was helpful|Good to know, thanks|Nice, thank you|Cool, thanks|Thanks for the help|Great, that helps me a lot|That helps me|Very good, thank you|Oh great, thanks|I will try that, thanks|Thank you for explaining|Thanks, I understand}", "You are welcome! Let me know if you need anything else."),
    ("{Okay, bye|Bye|Goodbye|Thanks, bye|Thank you, bye|Thank you and goodbye|See you later|I have to go now|Okay, I have to go|See you|That is all for today, bye|Bye, see you tomorrow|I must go now, thank you|Okay, see you}", "Goodbye! Have a nice day."),
    ("{Good night|Thank you, good night|Good night and thank you|I am going to bed now|I go to sleep now, good night|Thanks, good night|Okay, good night}", "Good night! Sleep well."),
    ("{You are good at this|You are good|You are smart|Nice|Good answer|That was a good answer|You are quick|You are helpful|Great|Wow, you are good|You know a lot|Not bad|Well done|You are clever|Cool|That was fast|Impressive|Very good|Good job|You are great|I like your answer}", "Thank you! I am glad you like it."),
    ("{Okay|I see|I understand|Interesting|Good to know|That is interesting|I did not know that|Got it|Makes sense|Aha|Oh, I see|Ah, okay|All right|Hm, okay|That makes sense|Oh, interesting|How interesting}", "Yes! Would you like to know something else?"),
    ("{That is wrong|That is not right|I do not think so|You are wrong|I do not believe you|That is not true|No, that is wrong|That makes no sense|That is not what I asked|I meant something else|You did not understand me}", "I am sorry. I am a small demo model and I make mistakes."),
    ("{Are you sure|Is that true|How do you know that|Who told you that|Where did you learn that|Can I trust you|Is that correct|Are you sure about that}?", "I learned it in my training, but I am a small demo model and I can be wrong. Please check it."),
    ("{And who are you|Who are you|By the way, who are you|Who are you, by the way|And what are you|Tell me who you are|Who am I talking to}?", "I am the Pacenote demo, a small language model. I know little, but I can chat about simple things."),
    ("{What else can you do|What else can I ask you|What else do you know|What can you do|What should I ask next|What else can we talk about|What can I ask you now}?", "I can chat about simple things, explain common words, give short tips, make small lists, and add small numbers."),
    ("{I have another question|One more question|Can I ask you something else|I want to ask something else|Another question|May I ask something else|I have one more question}", "Of course! What would you like to know?"),
    ("{Let us talk about something else|Can we change the subject|Another topic, please|I want to talk about something else|Enough of that|Change of topic|Something else, please}", "Of course! What would you like to talk about?"),
]  # fmt: skip
_ANYTIME_WEIGHTS = [30, 10, 4, 12, 10, 4, 4, 3, 3, 3, 3]
# Replies of the scripts whose wordings may follow anything, beside those above.
_SAID_ANYTIME = ("You are welcome! Let me know", "Thank you! I am glad you like it.", "Goodbye! Have a nice day.", "Good night! Sleep well.")  # fmt: skip
_SAID_WEIGHTS = (12, 9, 3, 2)
_WHY = "{Why|Why is that|Why so|How come|But why|And why|Why exactly|What is the reason|Can you explain why}?"
_SHORT_ANSWER = "I do not know exactly. I am a small model and know only the short answer."
_AGAIN = "{Could you repeat that|Can you repeat that|Please repeat that|Say that again, please|What did you say|Could you say that again|Can you say that again|I did not hear you, please repeat|Repeat that, please|Come again}"
# A greeting before these is greeted back.
_GREETED = frozenset(
    {
        "what is",
        "how-to",
        "list",
        "needs",
        "animal",
        "arithmetic",
        "fact",
        "story",
        "joke",
        "identity",
        "outside",
        "about",
    }
)


@cache
def _scripts(name: str) -> tuple[list[Block], dict[str, list[str]], list[float]]:
    blocks, values = read_scripts(name)
    weights = [min(sum(variety(a) for a in b.asks), 900) ** 0.5 for b in blocks]
    return blocks, values, weights


_DISHES = {"a soup": "make soup", "a cake": "bake a cake", "bread": "bake bread", "cookies": "bake cookies", "rice": "cook rice", "fish": "cook fish", "chicken": "cook chicken", "pasta": "cook pasta"}  # fmt: skip


def _cooking(r: random.Random, dish: str) -> list[Pair]:
    """The user is asked whether the recipe is wanted."""
    task = _DISHES.get(dish, f"make {dish}")
    answer = next(row[1] for row in table("howto") if row[0] == task)
    yes = "{Yes|Yes, please|Yes please|Sure|Of course|Please|How do I make it|Tell me how|Yes, tell me|Yes, I do|Yes, how|I would like that|Okay|How do I make that|Go on|Yes, show me how|How|Please tell me}{|!}"
    out = [(question(expand(r, yes)), answer)] if r.random() < 0.85 else [(expand(r, "{No|No, thanks|No, I know how|I know how|Not now|No, thank you}."), "All right. Enjoy your meal!")]  # fmt: skip
    if out[0][1] == answer and r.random() < 0.5:
        need = "{What do I need|What do I need for that|What do I need for it|What should I buy|Which things do I need|What do I have to buy|Which ingredients do I need|What do I need to buy for <d>|What do I need for <d>}?"
        out.append((expand(r, need, {"d": dish}), f"You need {task_extras()[task][1]}."))
    return out


def _anytime(r: random.Random, kind: str) -> Pair:
    """What a user may say whatever came before."""
    x = r.random()
    if x < 0.05 and kind in ("what is", "fact", "animal", "list", "needs"):
        return expand(r, _WHY), _SHORT_ANSWER
    if x < 0.5:
        start = r.choices(_SAID_ANYTIME, _SAID_WEIGHTS)[0]
        block = next(b for b in _scripts("scripts")[0] if b.replies[0].startswith(start))
        values = {k: r.choice(v) for k, v in _scripts("scripts")[1].items()}
        asked = r.choices(block.asks, [variety(a) ** 0.5 for a in block.asks])[0]
        return question(expand(r, asked, values)), block.replies[0]
    asked, said = r.choices(_ANYTIME, _ANYTIME_WEIGHTS)[0]
    return question(expand(r, asked)), said


def script(r: random.Random, name: str) -> Chat:
    blocks, options, weights = _scripts(name)
    block = r.choices(blocks, weights)[0]
    values = {k: r.choice(v) for k, v in (options or _scripts("scripts")[1]).items()}

    def pair(asked: str, reply: str) -> Pair:
        return question(expand(r, asked, values)), expand(r, reply, values)

    ask = r.choices(block.asks, [variety(a) ** 0.5 for a in block.asks])[0]
    reply = block.replies[0] if len(block.replies) == 1 or r.random() < 0.85 else r.choice(block.replies[1:])
    first = pair(ask, reply)
    later = [pair(*x) for x in block.later]
    r.shuffle(later)
    # Each answer is a wording of its own: the larger ones come up more often.
    answers = []
    if block.answers:
        answers = [pair(*r.choices(block.answers, [variety(a) ** 0.4 for a, _ in block.answers])[0])]
        if "want to know how to make" in answers[0][1]:
            answers += _cooking(r, values["dish"])
    return Chat(list(first), block.kind, "The user says something simple. I will answer in a friendly way.", answers=answers, more=later)  # fmt: skip


def singles(r: random.Random) -> list[Chat]:
    own, wordnet = words()
    how, kinds, need, zoo = (table(n) for n in ("howto", "lists", "needs", "animals"))
    made: list[Chat] = [what_is(r, w) for w in wordnet for _ in range(12)]
    made += [what_is(r, w) for w in own for _ in range(45)]
    made += [about_word(r, *r.sample(own, 2)) for _ in range(6_000)]
    made += [how_to(r, row) for row in how for _ in range(90)]
    made += [how_to(r, row) for row in how if row[0] in _with_wordings() for _ in range(90)]
    made += [lists(r, row, kinds) for row in kinds for _ in range(90 + 50 * (row[1] in other_names()))]
    made += [needs(r, row) for row in need for _ in range(90)]
    made += [animal(r, row, zoo) for row in zoo for _ in range(220)]
    made += [script(r, "scripts") for _ in range(62_000)]
    made += [script(r, "self") for _ in range(26_000)]
    made += [script(r, "chats") for _ in range(18_000)]
    parts: list[tuple[Callable[[random.Random], Chat], int]] = [
        (arithmetic, 34_000), (story, 7_000), (joke, 6_000), (small_fact, 8_000), (authored_fact, 7_000), (unknown, 34_000), (free_remark, 3_000),
        (trip, 12_000), (cook, 9_000), (pet, 6_000),
    ]  # fmt: skip
    for make, count in parts:
        made += [make(r) for _ in range(count)]
    r.shuffle(made)
    return made


@cache
def _with_wordings() -> frozenset[str]:
    return frozenset(row[0] for row in table("howto_more"))


def chain(r: random.Random, first: Chat, rest: Iterator[Chat]) -> Chat:
    """A chat of one to five questions: what depends on the last subject, what may always be said, and new subjects."""
    length = r.choices([1, 2, 3, 4, 5], [38, 20, 26, 11, 5])[0]
    subject, turns = first, []
    ask, reply = opened(r, first.turns[0], first.turns[1], True, first.kind in _GREETED)
    if first.kind in _GREETED and r.random() < 0.12:
        ask, reply = with_a_remark(r, first.turns[0]), first.turns[1]
    turns = [ask, reply, *first.turns[2:]]
    answers, more, asides = list(first.answers), list(first.more), list(first.asides)
    fresh = True
    while len(turns) < 2 * length:
        x = r.random()
        stays = False
        if answers and fresh and x < 0.75:
            asked, said = answers.pop(0)
            stays = True
        elif asides and x < 0.15:
            asked, said = asides.pop(0)
            more.clear()
        elif more and x < 0.7:
            asked, said = more.pop(0)
        elif x < 0.82:
            # Who asks about the demo itself asks on about it.
            subject = script(r, "self") if subject.kind == "identity" and r.random() < 0.7 else next(rest)
            asked, said = subject.turns[:2]
            answers, more, asides = list(subject.answers), list(subject.more), list(subject.asides)
            asked, said = opened(r, asked, said, False, False)
            turns += [asked, said, *subject.turns[2:]]
            fresh = True
            continue
        elif x < 0.84 and len(turns[-1]) < 200:
            asked, said = question(expand(r, _AGAIN)), turns[-1]
        else:
            asked, said = _anytime(r, subject.kind)
            if said.startswith(("Goodbye", "Good night")):
                turns += [asked, said]
                break
        asked, said = opened(r, asked, said, False, False) if r.random() < 0.5 else (asked, said)
        turns += [asked, said]
        fresh = stays
    # A chat's first thought speaks only for itself: a lone question keeps it.
    thought = first.thought if len(turns) == 2 and r.random() < 0.08 else None
    turns = [t if j % 2 else typed(r, t, keep_case="do not know" in turns[j + 1]) for j, t in enumerate(turns)]
    return Chat(turns, first.kind, thought, r.choice(SYSTEMS) if r.random() < 0.08 else None)


def build(r: random.Random) -> Iterator[Chat]:
    made = singles(r)
    rest = iter(made)
    for first in rest:
        try:
            chat = chain(r, first, rest)
        except StopIteration:
            return
        if not any(is_held_out(t) for t in chat.turns[::2]):
            yield chat


def natural_texts() -> Iterator[str]:
    for text in sources.natural_texts():
        kept = [line for line in text.split("\n") if not is_held_out(line[-200:])]
        if kept:
            yield "\n".join(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[31], help="each makes one file of chats")
    CORPUS.mkdir(parents=True, exist_ok=True)
    for seed in parser.parse_args().seeds:
        out = CORPUS / f"rules{seed}.jsonl"
        if out.exists():
            continue
        kinds: Counter = Counter()
        part = out.with_suffix(".part")
        with part.open("w") as f:
            for c in build(random.Random(seed)):
                kinds[c.kind] += 1
                row = {"turns": c.turns, "kind": c.kind}
                row |= ({"thought": c.thought} if c.thought else {}) | ({"system": c.system} if c.system else {})
                f.write(json.dumps(row, ensure_ascii=False) + "\n")
        part.rename(out)
        print(seed, kinds.total(), "chats", dict(kinds), flush=True)
    if not (CORPUS / "natural.txt").exists():
        texts = list(natural_texts())
        random.Random(12).shuffle(texts)
        (CORPUS / "natural.txt").write_text("\x1e".join(texts))
        print(sum(map(len, texts)), "characters of natural text")


if __name__ == "__main__":
    main()
