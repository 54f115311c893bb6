"""Drive the decode loops of a loaded pair directly, without chat text around them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mlx.core as mx

from engine.arrays import token
from engine.decode import Line, classic, prefill, speculative
from engine.drafter import Drafter, HeadState
from engine.events import EndReason, Round
from engine.loading import Pair, load_pair
from engine.request import LoadOptions, Sampler
from engine.sampling import Chooser
from engine.target import Rows, Target, TargetState

NEVER = threading.Event()


def load_tiny(target: Path, head: Path | None, **options: object) -> Pair:
    """Load a pair from folders, quietly."""
    asked = LoadOptions(target=str(target), head=str(head) if head else None, **options)  # type: ignore[arg-type]
    return load_pair(asked, lambda _: None, threading.Event())


@dataclass
class Reply:
    tokens: list[int]
    rounds: list[Round]
    line: Line
    prompt: tuple[int, ...]

    @property
    def accepted(self) -> int:
        return sum(r.accepted for r in self.rounds)

    @property
    def drafted(self) -> int:
        return sum(r.drafted for r in self.rounds)


@dataclass
class Rig:
    """Writes replies with one target and drafter.

    ends: (tokens so far) -> reason, on top of the length limit.
    """

    target: Target
    drafter: Drafter
    sampler: Sampler = field(default_factory=Sampler)
    seed: int = 7
    length: int = 40
    ends: Callable[[list[int]], EndReason | None] = field(default=lambda _: None)

    def start(self, prompt: Sequence[int]) -> tuple[Line, list[int]]:
        state, head = self.target.new_state(), HeadState()
        rows = last_rows(prefill(self.target, prompt, state, head, NEVER))
        chooser = Chooser(self.sampler, self.seed, self.target.vocab_size, prompt)
        chosen = chooser.row(rows.logits[0], state.length)
        chooser.emit(chosen)
        head.tell(chosen, rows.hidden)
        tokens = [token(chosen)]

        def ends(new: int) -> EndReason | None:
            tokens.append(new)
            return self.ends(tokens) or (EndReason.BUDGET if len(tokens) >= self.length else None)

        return Line(state, head, chooser, ends, tokens[0]), tokens

    def classic(self, prompt: Sequence[int], stop: threading.Event = NEVER) -> Reply:
        line, tokens = self.start(prompt)
        rounds = list(classic(self.target, line, stop, lambda: False))
        return Reply(tokens, rounds, line, tuple(prompt))

    def speculative(
        self, prompt: Sequence[int], width: int | Callable[[], int], stop: threading.Event = NEVER
    ) -> Reply:
        line, tokens = self.start(prompt)
        widths = width if callable(width) else lambda: width
        rounds = list(speculative(self.target, self.drafter, line, stop, widths, detailed=True))
        return Reply(tokens, rounds, line, tuple(prompt))


def last_rows(parts: Iterator[int | Rows]) -> Rows:
    *_, rows = parts
    assert isinstance(rows, Rows)
    return rows


def state_bytes(state: TargetState) -> list[bytes]:
    """The bytes of every cache, for comparisons that forgive nothing."""
    pairs = state.snapshot().arrays
    return [bytes(memoryview(mx.contiguous(a).view(mx.uint8))) for pair in pairs for a in pair]
