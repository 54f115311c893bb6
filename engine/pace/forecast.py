"""How many tokens a reply is going to have yet."""

from __future__ import annotations

USUAL_REPLY = 128.0
"""Tokens of a reply, before any was seen."""


class Forecast:
    """Learns how long replies are. In proportions: one of a thousand tokens says little about the next one."""

    def __init__(self) -> None:
        self._budget, self.done = 1, 0
        self._usual, self._replies = USUAL_REPLY, 0

    def begin(self, budget: int) -> None:
        """A new reply of at most `budget` tokens."""
        if self.done:
            self._replies += 1
            self._usual *= (self.done / self._usual) ** max(0.2, 1.0 / (self._replies + 1))
        self._budget, self.done = budget, 0

    def add(self, tokens: int) -> None:
        self.done += tokens

    @property
    def left(self) -> float:
        """Tokens to come. A reply that is longer than usual already is taken to be half done."""
        return max(1.0, min(self._budget - self.done, max(self._usual, self.done)))
