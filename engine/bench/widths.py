"""Which width the next round of an arm has: fixed, drawn, or chosen by the pace."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from engine.decode import Line
from engine.events import Round
from engine.pace import Pace


class Widths(Protocol):
    """now: rows of the next round, 1 is a classic step. advance: a round was done."""

    @property
    def now(self) -> int: ...

    def advance(self, round_: Round) -> None: ...


class FixedWidth:
    def __init__(self, width: int) -> None:
        self.now = width

    def advance(self, round_: Round) -> None:
        pass


class RandomWidths:
    """Another width every round, drawn from `choices`. With 1 among them the two loops hand over to each other."""

    def __init__(self, choices: Sequence[int], seed: str) -> None:
        self._choices = choices
        self._random = random.Random(seed)
        self.now = self._random.choice(choices)

    def advance(self, round_: Round) -> None:
        self.now = self._random.choice(self._choices)


class PacedWidths:
    """The pace decides from what it measured, over the life of a loaded pair. Stages are not timed."""

    def __init__(self, pace: Pace, line: Line) -> None:
        self._pace, self._line = pace, line

    @property
    def now(self) -> int:
        return self._pace.width

    def advance(self, round_: Round) -> None:
        line = self._line
        self._pace.observe(round_, waiting=line.waiting, detailed=False, ended=line.ended is not None)
        self._pace.take_notices()
