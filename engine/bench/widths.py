"""Which width the next round of an arm has."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol


class Widths(Protocol):
    """now: rows of the next round, 1 is a classic step. advance: a round was done."""

    now: int

    def advance(self) -> None: ...


class FixedWidth:
    def __init__(self, width: int) -> None:
        self.now = width

    def advance(self) -> None:
        pass


class RandomWidths:
    """Another width every round, drawn from `choices`. With 1 among them the two loops hand over to each other."""

    def __init__(self, choices: Sequence[int], seed: str) -> None:
        self._choices = choices
        self._random = random.Random(seed)
        self.advance()

    def advance(self) -> None:
        self.now = self._random.choice(self._choices)
