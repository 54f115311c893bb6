"""Token for token: do two arms write the same ids?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two replies part. ours / theirs: the ids there, None where a reply has ended."""

    position: int
    expected: int | None
    found: int | None

    def __str__(self) -> str:
        return f"token {self.position + 1} is {_word(self.found)} where the reference has {_word(self.expected)}"


def first_difference(expected: Sequence[int], found: Sequence[int]) -> Difference | None:
    """None when the ids and their number are equal."""
    for position, (a, b) in enumerate(zip(expected, found, strict=False)):
        if a != b:
            return Difference(position, a, b)
    if len(expected) == len(found):
        return None
    position = min(len(expected), len(found))
    return Difference(
        position,
        expected[position] if position < len(expected) else None,
        found[position] if position < len(found) else None,
    )


def differing_ids(expected: Sequence[int], found: Sequence[int]) -> int:
    """At how many positions the replies differ, missing tokens included."""
    same = sum(a == b for a, b in zip(expected, found, strict=False))
    return max(len(expected), len(found)) - same


def _word(token: int | None) -> str:
    return "missing" if token is None else str(token)
