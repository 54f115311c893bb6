"""Time to the first token late in a chat over early in it, and the same chat read from nothing.

    python -m engine.bench.first_token --turns 20 --pairs 30

One chat is written, all turns of equal length. Then turn 2 and turn `--turns` are asked again and again, in an order
drawn anew for every pair, each time with a message that was never read before: what is measured is the restore of a
boundary and the reading of one turn. The same after a regenerated reply and after an edited message, and for
regenerating itself, which reads nothing. Cold: the late turn from an engine that kept nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import random
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from engine.bench.environment import Machine, admit, look
from engine.bench.record import hardware
from engine.bench.statistics import bootstrap_median
from engine.chat.tokenizer import Tokenizer
from engine.engine import Engine
from engine.errors import KnownError
from engine.events import EngineInfo, Finished
from engine.loading import Pair, load_pair
from engine.request import LoadOptions, Message, Request, Sampler
from engine.tables import table

NEVER = threading.Event()
BOUND = 1.3
"""Late over early, at most."""
KINDS = ("next turn", "next turn (A/A)", "regenerate", "turn after a regenerated reply", "turn after an edited message")
READS_NOTHING = "regenerate"
"""Its prompt is kept whole: a few milliseconds of planning, which grow with the chat. Shown, not bound."""
SUBJECTS = "dog cat fox owl bear frog goat hen pig cow ant bee fish bird tree rock lake sea sun moon star rain snow"
ENOUGH = 1000
"""Messages: more than a hundred pairs use."""
VERBS = "like need see hear know want help find hold keep"

Chat = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One first token. fresh: prompt tokens that were read for it."""

    kind: str
    turn: int
    pair: int
    seconds: float
    fresh: int
    prompt: int


def equal_texts(tokenizer: Tokenizer) -> list[str]:
    """Many different messages of one number of tokens."""
    words = SUBJECTS.split()
    choices = list(itertools.product(words, VERBS.split(), words, words))
    random.Random(1).shuffle(choices)
    by_length: dict[int, list[str]] = {}
    for a, verb, b, c in choices:
        text = f"Why does the {a} {verb} the {b}, and what does the {c} say about that when they meet in the evening?"
        texts = by_length.setdefault(len(tokenizer.encode(text)), [])
        texts.append(text)
        if len(texts) == ENOUGH:
            return texts
    return max(by_length.values(), key=len)


class Chatter:
    """Writes replies of one length, and takes the time of first tokens."""

    def __init__(self, pair: Pair, reply: int) -> None:
        self.pair = pair
        self.engine = Engine(pair)
        self.engine.detailed_timing = False
        self._reply = reply
        self._texts = iter(equal_texts(pair.tokenizer))
        self._seeds = itertools.count(1)

    def message(self) -> Message:
        """One that was never read before."""
        return Message("user", next(self._texts))

    def write(self, chat: Chat) -> Chat:
        """The chat with a reply, and with a seed of its own."""
        done = self._generate(self.engine, chat, self._reply)
        return (*chat, Message("assistant", done.answer, done.reasoning, done.segments, last_token=done.tokens[-1]))

    def first_token(self, chat: Chat, engine: Engine | None = None) -> tuple[float, int, int]:
        """(seconds from the call to the first token, tokens read, tokens of the prompt)."""
        stats = self._generate(engine or self.engine, chat, 1).stats
        return stats.prefill_seconds, stats.prompt_tokens - stats.restored_tokens, stats.prompt_tokens

    def _generate(self, engine: Engine, chat: Chat, tokens: int) -> Finished:
        request = Request(chat, Sampler(temperature=0.8), next(self._seeds), tokens, ignore_eos=True)
        *_, done = engine.generate(request, NEVER)
        if not isinstance(done, Finished):
            raise RuntimeError("a generation ended without Finished")
        return done


def measure(chatter: Chatter, turns: int, pairs: int, cold: int, seed: int) -> Iterator[Sample]:
    """Write the chat, then take `pairs` samples of every kind at both turns and `cold` cold ones of the late turn."""
    chat: Chat = ()
    for _ in range(turns):
        chat = chatter.write((*chat, chatter.message()))
    luck = random.Random(seed)
    # Everything runs once before it counts.
    for pair in range(-1, pairs):
        order = [(kind, turn) for kind in KINDS for turn in (2, turns)]
        luck.shuffle(order)
        for kind, turn in order:
            sample = Sample(kind, turn, pair, *chatter.first_token(_asked(chatter, chat, kind, turn)))
            if pair >= 0:
                yield sample
    for pair in range(cold):
        engine = Engine(chatter.pair)
        engine.detailed_timing = False
        asked = (*chat[: 2 * turns - 2], chatter.message())
        yield Sample("cold", turns, pair, *chatter.first_token(asked, engine))


def _asked(chatter: Chatter, chat: Chat, kind: str, turn: int) -> Chat:
    """The messages to answer. What has to happen before, without being timed, happens here."""
    before, last = chat[: 2 * turn - 4], chat[2 * turn - 4]
    if kind == "regenerate":
        return chat[: 2 * turn - 1]
    if kind == "turn after a regenerated reply":
        return (*chatter.write((*before, last)), chatter.message())
    if kind == "turn after an edited message":
        return (*chatter.write((*before, chatter.message())), chatter.message())
    return (*chat[: 2 * turn - 2], chatter.message())


def report(samples: Sequence[Sample], turns: int) -> tuple[list[str], bool]:
    """The figures as Markdown lines, and whether every bound holds."""
    rows, holds = [], True
    for kind in KINDS:
        early, later = ([s for s in samples if s.kind == kind and s.turn == turn] for turn in (2, turns))
        ratios = [b.seconds / a.seconds for a, b in zip(early, later, strict=True)]
        low, high = bootstrap_median(ratios)
        within = median(ratios) <= BOUND
        holds &= within or kind == READS_NOTHING
        verdict = "shown only" if kind == READS_NOTHING else "holds" if within else "falls short"
        rows.append(
            (
                kind, _ms(early), _ms(later), f"{median(ratios):.3f} [{low:.3f}, {high:.3f}]", _range(early),
                _range(later), str(len(ratios)), verdict,
            )
        )  # fmt: skip
    late = f"turn {turns}"
    header = ("kind", "turn 2, ms", f"{late}, ms", f"{turns} over 2", "read, turn 2", f"read, {late}", "pairs")
    lines = table((*header, f"bound {BOUND}"), rows)
    out = [*lines, ""]
    if cold := [s for s in samples if s.kind == "cold"]:
        warm = median(s.seconds for s in samples if s.kind == KINDS[0] and s.turn == turns)
        out.append(
            f"Cold, turn {turns}: {_ms(cold)} ms for {_range(cold)} tokens read ({len(cold)} times): "
            f"{median(s.seconds for s in cold) / warm:.1f} times the warm one."
        )
    return out, holds


def _ms(samples: Sequence[Sample]) -> str:
    times = sorted(s.seconds * 1e3 for s in samples)
    return f"{median(times):.0f} ({times[0]:.0f}-{times[-1]:.0f})"


def _range(samples: Sequence[Sample]) -> str:
    fresh = sorted({s.fresh for s in samples})
    return str(fresh[0]) if len(fresh) == 1 else f"{fresh[0]}-{fresh[-1]}"


def _record(
    asked: argparse.Namespace, info: EngineInfo, machines: Sequence[Machine], stamp: str, lines: Sequence[str]
) -> list[str]:
    here = machines[0].environment
    loads = " / ".join(" ".join(f"{x:.2f}" for x in m.conditions.load) for m in machines)
    return [
        f"# Time to first token, turn {asked.turns} over turn 2",
        "",
        f"{info.name} (weights {info.weights_hash}) on {info.device}, MLX {here.mlx}, {here.cpus} cores, "
        f"{datetime.now(UTC).date().isoformat()}. Policy: {info.policy}. Load before / after: {loads}.",
        *(("", f"**{stamp}**") if stamp else ()),
        "",
        f"One chat of {asked.turns} turns: messages of one number of tokens, replies of {asked.reply} tokens, "
        "temperature 0.8, speculation on. Every sample is a first token: plan, restore, reading, one choice. A pair is "
        "turn 2 and the late turn of one round; rounds run all kinds in an order drawn anew. Medians, (least-most), "
        "95 % bootstrap interval of the median ratio; tokens that were read. One round before them is thrown away.",
        "",
        *lines,
        "",
        "## Not measured",
        "",
        "Other machines and models, longer chats, memory too small for the chat's boundaries, templates that rewrite "
        "history (their turns read the reply again, as text). Of a model on a GPU nothing is known from this.",
        "",
        "## Repeat",
        "",
        "```sh",
        f"python -m engine.bench.first_token --turns {asked.turns} --pairs {asked.pairs} --cold {asked.cold}",
        "```",
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.bench.first_token")
    parser.add_argument("--model", help="folder; the demo pair when absent")
    parser.add_argument("--head")
    parser.add_argument("--turns", type=int, default=20, help="the late turn, 3 or more")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--cold", type=int, default=5)
    parser.add_argument("--reply", type=int, default=16, help="tokens of every reply, 2 or more")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--anyway", action="store_true", help="measure on a busy machine; the record says so")
    parser.add_argument("--out", type=Path, help="folder for the record")
    asked = parser.parse_args(argv)
    try:
        before = look()
        stamp = admit(before, anyway=asked.anyway)
        pair = load_pair(LoadOptions(asked.model, asked.head), lambda _: None, NEVER)
    except KnownError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    samples = list(measure(Chatter(pair, asked.reply), asked.turns, asked.pairs, asked.cold, asked.seed))
    lines, holds = report(samples, asked.turns)
    text = "\n".join(_record(asked, pair.info, (before, look()), stamp, lines)) + "\n"
    sys.stdout.write(text)
    if asked.out:
        _write(asked.out, pair.info, before, text, [dataclasses.asdict(s) for s in samples])
    return 0 if holds else 1


def _write(folder: Path, info: EngineInfo, machine: Machine, text: str, raw: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    day = datetime.now(UTC).date().isoformat()
    path = folder / f"first-token-{hardware(info.device, machine.environment.cpus)}-{day}.md"
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(raw) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
