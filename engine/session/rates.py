"""How long reading will take: seconds a token, by kind of segment, learned while reading."""

from __future__ import annotations

from collections.abc import Sequence

from engine.request import Segment
from engine.session.boundaries import Kind

MEMORY = 0.7
"""Weight that earlier measurements keep: the last few chunks decide, since other programs come and go."""


class Rates:
    """One per loaded pair; what one turn measured serves the next turn's first estimate."""

    def __init__(self) -> None:
        self._seconds: dict[Kind, float] = {}

    def observe(self, kind: Kind, tokens: int, seconds: float) -> None:
        """These tokens were just read in this time."""
        now = seconds / tokens
        before = self._seconds.get(kind)
        self._seconds[kind] = now if before is None else MEMORY * before + (1 - MEMORY) * now

    def remaining(self, segments: Sequence[Segment], done: int) -> float | None:
        """Seconds for these segments less `done` tokens of the first. None while nothing is known.

        A kind that was not measured yet is taken to cost what the other one does.
        """
        if not self._seconds:
            return None
        other = next(iter(self._seconds.values()))
        left = [len(s.tokens) for s in segments]
        if left:
            left[0] -= done
        return sum(n * self._seconds.get(s.kind, other) for n, s in zip(left, segments, strict=True))
