"""Wordings written short: "{a|b} x" chooses, "<name>" takes a value. And the scripted dialogues that are written in them."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
# A parsed text: literal strings, and tuples of alternatives that are parsed texts themselves.
Parsed = list["str | tuple[Parsed, ...]"]


@cache
def parse(text: str) -> Parsed:
    """Raises ValueError where a brace has no partner."""
    stack: list[list[Parsed]] = [[[]]]
    for part in re.split(r"([{|}])", text):
        if part == "{":
            stack.append([[]])
        elif part == "|" and len(stack) > 1:
            stack[-1].append([])
        elif part == "}":
            if len(stack) == 1:
                raise ValueError(f"a closing brace too many: {text}")
            options = tuple(stack.pop())
            stack[-1][-1].append(options)
        elif part:
            stack[-1][-1].append(part)
    if len(stack) > 1:
        raise ValueError(f"an open brace: {text}")
    return stack[0][0]


def _draw(r: random.Random, parsed: Parsed) -> str:
    return "".join(p if isinstance(p, str) else _draw(r, r.choice(p)) for p in parsed)


def expand(r: random.Random, text: str, values: Mapping[str, str] | None = None) -> str:
    """One wording. `values` fill the <names>; spaces are tidied and the first letter is made large."""
    text = _draw(r, parse("{" + text + "}"))
    if values and "<" in text:
        text = re.sub(r"<(\w+)>", lambda m: values[m[1]], text)
    text = re.sub(r" {2,}", " ", text).replace(" ,", ",").replace(" .", ".").replace(" ?", "?").strip()
    return text[:1].upper() + text[1:]


@dataclass
class Block:
    """What may be said, what is replied (the first reply is the usual one), and what may come after."""

    kind: str
    asks: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)  # to the reply's own question: directly after it
    later: list[tuple[str, str]] = field(default_factory=list)


@cache
def read_scripts(name: str) -> tuple[list[Block], dict[str, list[str]]]:
    """The blocks and the values of `authored_NAME.txt`."""
    blocks: list[Block] = []
    values: dict[str, list[str]] = {}
    kind, replied = "talk", True
    for line in (HERE / f"authored_{name}.txt").read_text().splitlines():
        if line.startswith("@"):
            key, _, options = line[1:].partition(" = ")
            values[key] = [v.strip() for v in options.split("|")]
        elif line.startswith("kind "):
            kind = line[5:]
        elif line.startswith("? "):
            if replied:
                blocks.append(Block(kind))
                replied = False
            blocks[-1].asks.append(line[2:])
        elif line.startswith("> "):
            blocks[-1].replies.append(line[2:].replace(" / ", "\n"))
            replied = True
        elif line.startswith("+"):
            into = blocks[-1].answers if line.startswith("+! ") else blocks[-1].later
            asked, _, reply = line.removeprefix("+!").removeprefix("+").strip().partition(" => ")
            into.append((asked, reply.replace(" / ", "\n")))
    return blocks, values


@cache
def variety(text: str) -> float:
    """How many wordings a text stands for."""

    def count(parsed: Parsed) -> float:
        n = 1.0
        for p in parsed:
            if not isinstance(p, str):
                n *= sum(count(option) for option in p)
        return n

    return count(parse(text))
