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
    """As in a chat without stage times: the pace decides from what it measured, over the life of a loaded pair."""

    def __init__(self, pace: Pace, line: Line) -> None:
        self._pace, self._line = pace, line

    @property
    def now(self) -> int:
        return self._pace.next_width(self._line.waiting)

    def advance(self, round_: Round) -> None:
        self._pace.observe(round_, detailed=False)
