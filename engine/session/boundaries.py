"""Boundaries: snapshots of everything at the end of a segment, keyed by the schedule that led there.

Recurrent state cannot be trimmed, so a chat can only go back to places that were kept. The key is the whole
segment schedule, not the tokens alone: on Metal the same tokens have other cache bytes when they were
prefilled than when they were decoded.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx

from engine.drafter import HeadSnapshot
from engine.request import Segment
from engine.target import Snapshot


@dataclass(frozen=True)
class Boundary:
    """Everything at one position.

    logits: [1, V] of the last fed token; hidden: [1, H] of it. Kept at the end of a prefill, so that a
    regenerated reply starts without any forward. None at the end of a reply.
    """

    target: Snapshot
    head: HeadSnapshot | None
    logits: mx.array | None = None
    hidden: mx.array | None = None

    @property
    def nbytes(self) -> int:
        extra = sum(a.nbytes for a in (self.logits, self.hidden) if a is not None)
        return self.target.nbytes + (self.head.nbytes if self.head else 0) + extra


def schedule_key(segments: Sequence[Segment]) -> bytes:
    """Digest of a schedule: kinds, lengths and tokens of every segment in order."""
    digest = hashlib.sha256()
    for segment in segments:
        digest.update(f"{segment.kind} {len(segment.tokens)} ".encode())
        digest.update(array("q", segment.tokens).tobytes())
    return digest.digest()


class Boundaries:
    """A store with a byte budget; the least recently used boundary goes first."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[bytes, Boundary] = OrderedDict()

    @property
    def nbytes(self) -> int:
        return sum(b.nbytes for b in self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, segments: Sequence[Segment], boundary: Boundary) -> None:
        """Keep a boundary, dropping others until the budget holds. One that alone exceeds it is not kept."""
        key = schedule_key(segments)
        self._kept.pop(key, None)
        if boundary.nbytes > self.budget:
            return
        self._kept[key] = boundary
        while self.nbytes > self.budget:
            self._kept.popitem(last=False)

    def deepest(self, segments: Sequence[Segment]) -> tuple[int, Boundary | None]:
        """The longest prefix of a schedule that is kept: (number of its segments, boundary)."""
        for count in range(len(segments), 0, -1):
            key = schedule_key(segments[:count])
            if key in self._kept:
                self._kept.move_to_end(key)
                return count, self._kept[key]
        return 0, None

    def clear(self) -> None:
        self._kept.clear()
