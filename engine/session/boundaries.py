"""The store of boundaries: a tree keyed by the segment schedule, with a byte budget.

Recurrent state cannot be trimmed, so a chat can only go back to places that were kept. A place is named by the
whole schedule that led there, tokens and kinds, not by the tokens alone: on Metal the same tokens have other
cache bytes when they were prefilled than when they were decoded. Names are chained (each segment's name is a
digest of its parent's name and itself), which makes the store a tree in which branches share their stem.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal, NamedTuple

from engine.request import Segment
from engine.session.boundary import Boundary

ROOT = b""
"""Name of the empty cache."""
Kind = Literal["prefill", "decode"]


class Found(NamedTuple):
    """The deepest kept place on a schedule: after `segments` whole ones and `tokens` of the next."""

    segments: int
    tokens: int
    boundary: Boundary | None


def name(parent: bytes, segment: Segment) -> bytes:
    """Name of the place after a segment that starts at `parent`."""
    return _name(parent, segment.kind, segment.tokens, "")


def part_name(parent: bytes, kind: Kind, tokens: Sequence[int]) -> bytes:
    """Name of a place inside a segment.

    It differs from that of a segment which ends there: a prefill computes its last token alone.
    """
    return _name(parent, kind, tokens, " part")


def schedule_key(segments: Sequence[Segment]) -> bytes:
    """Name of the place after all these segments."""
    place = ROOT
    for segment in segments:
        place = name(place, segment)
    return place


def _name(parent: bytes, kind: Kind, tokens: Sequence[int], more: str) -> bytes:
    digest = hashlib.sha256(parent)
    digest.update(f"{kind}{more} {len(tokens)} ".encode())
    digest.update(array("q", tokens).tobytes())
    return digest.digest()


class Boundaries:
    """Boundaries within a budget of bytes; the least recently used one goes first.

    Arrays that several boundaries share are counted once.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self.nbytes = 0
        """Bytes of all kept boundaries."""
        self._kept: OrderedDict[bytes, Boundary] = OrderedDict()
        self._users: dict[int, int] = {}  # of each array, by identity; a kept boundary keeps it alive
        self._parts: dict[bytes, _Part] = {}  # the kept places that lie inside a segment

    @property
    def budget(self) -> int:
        """Bytes at most. A smaller one drops boundaries at once."""
        return self._budget

    @budget.setter
    def budget(self, budget: int) -> None:
        self._budget = budget
        self._fit()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, place: bytes) -> Boundary | None:
        """What is kept at a place. Does not count as use."""
        return self._kept.get(place)

    def keep(self, place: bytes, boundary: Boundary, *, expendable: bool = False) -> bool:
        """Keep a boundary, dropping others until the budget holds. False: it alone exceeds the budget.

        expendable: nothing is known that would come back to it, so it is the first to go.
        """
        if boundary.nbytes > self.budget:
            return False
        if place in self._kept:
            # The same place has the same bytes; those that are there are shared with its neighbours. Only the
            # head's history may differ: it depends on when the head was followed.
            there = self._take_out(place)
            boundary = boundary if _told(boundary) > _told(there) else there
        self._kept[place] = boundary
        self._count(boundary)
        if expendable:
            self._kept.move_to_end(place, last=False)
        self._fit()
        return True

    def keep_part(self, parent: bytes, kind: Kind, tokens: Sequence[int], boundary: Boundary) -> bool:
        """Keep a place inside a segment that starts at `parent`: these tokens of it were read."""
        place = part_name(parent, kind, tokens)
        kept = self.keep(place, boundary)
        if kept:
            self._parts[place] = _Part(parent, kind, len(tokens))
        return kept

    def deepest(self, segments: Sequence[Segment]) -> Found:
        """The deepest kept place that the schedule passes. It becomes the most recently used one."""
        places = [ROOT]
        for segment in segments:
            places.append(name(places[-1], segment))
        for count in range(len(segments), -1, -1):
            if count < len(segments) and (part := self._deepest_part(places[count], segments[count])):
                self._kept.move_to_end(part[0])
                return Found(count, part[1], self._kept[part[0]])
            if places[count] in self._kept:
                self._kept.move_to_end(places[count])
                return Found(count, 0, self._kept[places[count]])
        return Found(0, 0, None)

    def clear(self) -> None:
        self._kept.clear()
        self._users.clear()
        self._parts.clear()
        self.nbytes = 0

    def _deepest_part(self, parent: bytes, segment: Segment) -> tuple[bytes, int] | None:
        """The deepest kept place inside this segment, and how many of its tokens lie before it."""
        found: tuple[bytes, int] | None = None
        for place, part in self._parts.items():
            if (part.parent, part.kind) != (parent, segment.kind) or (found and part.length <= found[1]):
                continue
            # Shorter than the segment: its last token goes alone, so a chunk that held it would be another one.
            if part.length < len(segment.tokens) and place == part_name(
                parent, part.kind, segment.tokens[: part.length]
            ):
                found = place, part.length
        return found

    def _count(self, boundary: Boundary) -> None:
        for a in boundary.arrays():
            users = self._users.get(id(a), 0)
            self._users[id(a)] = users + 1
            if not users:
                self.nbytes += a.nbytes

    def _fit(self) -> None:
        while self.nbytes > self._budget:
            oldest = next(iter(self._kept))
            self._take_out(oldest)
            self._parts.pop(oldest, None)

    def _take_out(self, place: bytes) -> Boundary:
        boundary = self._kept.pop(place)
        for a in boundary.arrays():
            users = self._users.pop(id(a)) - 1
            if users:
                self._users[id(a)] = users
            else:
                self.nbytes -= a.nbytes
        return boundary


class _Part(NamedTuple):
    parent: bytes
    kind: Kind
    length: int


def _told(boundary: Boundary) -> int:
    return boundary.head.told if boundary.head is not None else 0
