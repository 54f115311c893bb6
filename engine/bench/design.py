"""The order of runs: randomised complete blocks.

Every block runs every arm once, on one prompt, in an order drawn anew. Slow drifts of the machine (heat,
clock, other programs) then hit all arms alike, and two arms are compared within a block, never across.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def blocks(arms: Sequence[T], count: int, seed: int) -> Iterator[list[T]]:
    """`count` blocks, each a permutation of `arms`. The same seed gives the same order."""
    draw = random.Random(seed)
    for _ in range(count):
        yield draw.sample(arms, len(arms))
