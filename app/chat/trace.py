"""Which text of a reply came of which round: what the speculation view marks. Kept with every reply."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from app import figures
from engine import Round

Channel = Literal["answer", "reasoning"]
AT_ONCE = 2000
"""Rounds packed in one turn of the event loop, 10 ms of work at most. The pump brings fewer at a time."""
_FORMAT = 1
_TIMES = ("draft_ms", "verify_ms", "rollback_ms", "hook_ms", "host_ms")
_times_of = attrgetter(*_TIMES)


class Origin(StrEnum):
    """Where a token came from. Every one of them is the target's own choice."""

    ACCEPTED = "accepted"  # drafted, and the target chose the same
    CORRECTED = "corrected"  # drafted otherwise: the target's choice stands
    OWN = "own"  # nothing was drafted for it


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters start <= n < end of a channel, and the round they came of (an index into `Trace.rounds`)."""

    start: int
    end: int
    origin: Origin
    round: int


class Traced(NamedTuple):
    """What the view needs of a `Round`."""

    width: int
    accepted: int
    ends: tuple[tuple[int, int], ...]
    times: tuple[float, ...]
    parked: bool

    @property
    def emitted(self) -> int:
        return len(self.ends) - 1

    def origin(self, token: int) -> Origin:
        """Of a token of the round, from 0."""
        if self.width == 1:
            return Origin.OWN
        if token < self.accepted:
            return Origin.ACCEPTED
        return Origin.CORRECTED if self.accepted < self.width - 1 else Origin.OWN


class Trace:
    """Grows round by round while a reply is written."""

    def __init__(self) -> None:
        self.rounds: list[Traced] = []
        self._counts = dict.fromkeys(Origin, 0)
        self._counted = 0

    def add(self, round_: Round) -> None:
        """Rounds that do not say where their text is are left out."""
        if round_.ends:
            times = tuple([round(ms, 2) for ms in _times_of(round_)])
            self.rounds.append(Traced(round_.width, round_.accepted, round_.ends, times, round_.parked))

    def marks(self, channel: Channel, first: int = 0) -> Iterator[Mark]:
        """In order, from round `first` on. Tokens without characters of this channel have none."""
        which = 0 if channel == "answer" else 1
        for number in range(first, len(self.rounds)):
            round_ = self.rounds[number]
            for token in range(round_.emitted):
                start, end = round_.ends[token][which], round_.ends[token + 1][which]
                if end > start:
                    yield Mark(start, end, round_.origin(token), number)

    def count(self, origin: Origin) -> int:
        """Tokens of this origin. Asked for with every drawing, so each round is looked at once."""
        for round_ in self.rounds[self._counted :]:
            for token in range(round_.emitted):
                self._counts[round_.origin(token)] += 1
        self._counted = len(self.rounds)
        return self._counts[origin]

    def tip(self, number: int) -> str:
        """A round in words."""
        round_ = self.rounds[number]
        total = f"{figures.milliseconds(sum(round_.times))} ms"
        if round_.width == 1:
            how = "parked: one token by a classic step" if round_.parked else "one token by a classic step"
            return f"Round {number + 1:,}: {how}\n{total}"
        drafted = round_.width - 1
        lines = [f"Round {number + 1:,}: block {round_.width}, {drafted} drafted, {round_.accepted} accepted"]
        if round_.accepted < drafted:
            lines.append(f"The target corrected draft {round_.accepted + 1}")
        stages = zip(_TIMES, round_.times, strict=True)
        parts = ", ".join(f"{name.removesuffix('_ms')} {figures.milliseconds(ms)}" for name, ms in stages if ms >= 0.05)
        return "\n".join([*lines, f"{total}: {parts}"])


class Packer:
    """A trace as it is stored: zlib of JSON, about 12 bytes a round.

    Packed as it grows: all of a long reply's at its end held the window for 0.1 s.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.packed = 0
        """Rounds packed so far."""
        self._at = (0, 0)
        self._zlib = zlib.compressobj()
        self._parts: list[bytes] = []

    def catch_up(self) -> None:
        """Pack rounds that came since, `AT_ONCE` at most."""
        new = self._trace.rounds[self.packed : self.packed + AT_ONCE]
        if not new:
            return
        rows: list[Any] = []
        if not self.packed:
            self._at = new[0].ends[0]
            rows.append(self._at)
        at = self._at
        for width, accepted, ends, times, parked in new:
            # Only differences: the rounds follow one another.
            steps = []
            for end in ends if ends[0] != at else ends[1:]:
                steps += [end[0] - at[0], end[1] - at[1]]
                at = end
            rows.append([width, accepted, int(parked), len(ends), *times, *steps])
        self._at = at
        text = json.dumps(rows, separators=(",", ":"))
        # One list in several pieces: the first begins it, the others go on after a comma.
        self._parts.append(self._zlib.compress((text[:-1] if not self.packed else "," + text[1:-1]).encode()))
        self.packed += len(new)

    def finish(self) -> bytes | None:
        """All of it; nothing can be packed afterwards. None when there is nothing."""
        while self.packed < len(self._trace.rounds):
            self.catch_up()
        if not self.packed:
            return None
        return bytes([_FORMAT]) + b"".join(self._parts) + self._zlib.compress(b"]") + self._zlib.flush()


def pack(trace: Trace) -> bytes | None:
    """A whole trace at once."""
    return Packer(trace).finish()


def unpack(blob: bytes | None) -> Trace | None:
    """None for what is not there or cannot be read: the view can do without, the text is not touched by it."""
    if not blob or blob[0] != _FORMAT:
        return None
    trace = Trace()
    try:
        start, *rows = json.loads(zlib.decompress(blob[1:]))
        at = (int(start[0]), int(start[1]))
        for width, accepted, parked, count, *rest in rows:
            times, steps = tuple(float(t) for t in rest[: len(_TIMES)]), rest[len(_TIMES) :]
            ends = [] if len(steps) == 2 * count else [at]
            for n in range(0, len(steps), 2):
                at = (at[0] + int(steps[n]), at[1] + int(steps[n + 1]))
                ends.append(at)
            if len(ends) != count:
                return None
            trace.rounds.append(Traced(int(width), int(accepted), tuple(ends), times, bool(parked)))
    except (ValueError, TypeError, IndexError, zlib.error):
        return None
    return trace
