"""Acceptance at a temperature: shared noise against independent draws, and what theory allows.

    python -m engine.bench.noise --temperature 0.8 --tokens 120

With position-keyed noise the drafter is given the target's own Gumbel noise. Two samplers that share Gumbel noise
agree less often than the best coupling, 1 - TV, but far more often than two independent ones. Both arms emit the
target's tokens, which are the same; only the drafts differ.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mlx.core as mx

from engine.bench.arms import Task, begin
from engine.bench.prompts import CHECK, read_prompts
from engine.bench.rig import Rig, load_rig
from engine.decode import speculative
from engine.drafter import Drafter
from engine.request import LoadOptions, Sampler
from engine.sampling import Chooser
from engine.tables import table

OTHER_SEED = 0x9E3779B9
"""Added to the reply's seed for the independent drafter; any other stream would do."""


@dataclass
class Position:
    """Of one draft position: rounds that reached it, drafts accepted, and the sum of 1 - TV."""

    reached: int = 0
    accepted: int = 0
    overlap: float = 0.0

    @property
    def rate(self) -> float:
        return self.accepted / self.reached if self.reached else 0.0

    @property
    def mean_overlap(self) -> float:
        return self.overlap / self.reached if self.reached else 0.0


@dataclass
class Watched:
    """What one arm did: per position, and the tokens it emitted."""

    positions: list[Position]
    tokens: list[tuple[int, ...]] = field(default_factory=list)


class _Watching(Drafter):
    """Keeps the drafter's distributions of this round and the last; draws from its own noise when given a chooser."""

    def __init__(self, drafter: Drafter, own: Chooser | None) -> None:
        super().__init__(drafter.head, drafter._target, drafter.info)
        self._own = own
        self.drafts: list[mx.array] = []
        self.last_round: list[mx.array] = []

    def choose(self, hidden: mx.array, chooser: Chooser, position: int, drafted: list[mx.array]) -> mx.array:
        if not drafted:  # a seed: the accept hook has begun the next round
            self.last_round, self.drafts = self.drafts, []
        logits = self._target.logits(hidden)[0]
        self.drafts.append(mx.exp(chooser.log_probs(logits)))
        return (self._own or chooser).row(logits, position, drafted)


class _WatchingChooser(Chooser):
    """Keeps the target's distributions of a verify block."""

    targets: tuple[mx.array, ...] = ()

    def rows(self, logits: mx.array, position: int, drafted: Sequence[mx.array]) -> mx.array:
        self.targets = tuple(mx.exp(self.log_probs(logits[j])) for j in range(logits.shape[0]))
        return super().rows(logits, position, drafted)


def watch(rig: Rig, task: Task, drafter: str, width: int, *, shared: bool, most_prompts: int | None = None) -> Watched:
    """Write every prompt's reply with blocks of `width`, and watch the drafts. most_prompts: only the first so many.

    The sampler must have no penalties: distributions are taken without the drafts' history.
    """
    seen = Watched([Position() for _ in range(width - 1)])
    for prompt in read_prompts(CHECK, rig.pair.tokenizer)[:most_prompts]:
        line = begin(rig, task, prompt, threading.Event(), follow=True)
        chooser = _WatchingChooser(task.sampler, task.seed, rig.target.vocab_size, prompt.tokens)
        line.chooser = chooser
        seed = (task.seed + OTHER_SEED) % 2**32
        own = None if shared else Chooser(task.sampler, seed, rig.target.vocab_size, prompt.tokens)
        watching = _Watching(rig.drafters[drafter], own)
        tokens = [line.last]
        for round_ in speculative(rig.target, watching, line, threading.Event(), lambda: width, False):
            tokens.extend(round_.tokens)
            drafts = watching.last_round if line.ended is None else watching.drafts
            for j in range(min(round_.accepted + 1, round_.drafted)):
                place = seen.positions[j]
                place.reached += 1
                place.accepted += j < round_.accepted
                place.overlap += float(mx.minimum(chooser.targets[j], drafts[j]).sum())
        seen.tokens.append(tuple(tokens))
    return seen


def report(shared: Watched, independent: Watched, temperature: float) -> list[str]:
    rows = []
    for j, (a, b) in enumerate(zip(shared.positions, independent.positions, strict=True), start=1):
        rows.append(
            (
                str(j), f"{a.rate:.3f}", f"{b.rate:.3f}", f"{a.mean_overlap:.3f}",
                f"{a.rate / a.mean_overlap:.3f}" if a.mean_overlap else "", f"{a.rate / b.rate:.2f}" if b.rate else "",
                f"{a.reached} / {b.reached}",
            )
        )  # fmt: skip
    header = ("position", "shared", "independent", "mean(1 - TV)", "shared / (1 - TV)", "shared / independent", "n")
    equal = sum(a == b for a, b in zip(shared.tokens, independent.tokens, strict=True))
    count = sum(map(len, shared.tokens))
    return [
        f"Acceptance at temperature {temperature}, given that all earlier drafts were accepted.",
        "",
        *table(header, rows),
        "",
        f"Token ids of the two arms: equal in {equal} of {len(shared.tokens)} replies ({count} tokens).",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.bench.noise")
    parser.add_argument("--model")
    parser.add_argument("--head")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--tokens", type=int, default=120)
    parser.add_argument("--width", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prompts", type=int, help="only the first so many of the check's prompts")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(argv)
    options = LoadOptions(target=asked.model, head=asked.head)
    rig = load_rig(options, lambda _: None, threading.Event(), both_heads=False)
    task = Task(asked.tokens, Sampler(temperature=asked.temperature), asked.seed)
    drafter = next(iter(rig.drafters))
    shared = watch(rig, task, drafter, asked.width, shared=True, most_prompts=asked.prompts)
    independent = watch(rig, task, drafter, asked.width, shared=False, most_prompts=asked.prompts)
    text = "\n".join(report(shared, independent, asked.temperature)) + "\n"
    sys.stdout.write(text)
    if asked.out:
        asked.out.write_text(text, encoding="utf-8")
    return 0 if shared.tokens == independent.tokens else 1


if __name__ == "__main__":
    sys.exit(main())
