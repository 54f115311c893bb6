"""Which text of a reply came of which round: what the speculation view marks. Kept with every reply."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from app import figures
from engine import Round

Channel = Literal["answer", "reasoning"]
_FORMAT = 1
_TIMES = ("draft_ms", "verify_ms", "rollback_ms", "hook_ms", "host_ms")


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


@dataclass(frozen=True, slots=True)
class Traced:
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

    def add(self, round_: Round) -> None:
        """Rounds that do not say where their text is are left out."""
        if round_.ends:
            times = tuple(round(getattr(round_, name), 2) for name in _TIMES)
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
        """Tokens of this origin."""
        return sum(r.origin(token) is origin for r in self.rounds for token in range(r.emitted))

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


def pack(trace: Trace) -> bytes | None:
    """As it is stored: zlib of JSON, about 12 bytes a round. None when there is nothing."""
    if not trace.rounds:
        return None
    rows: list[Any] = [trace.rounds[0].ends[0]]
    at = trace.rounds[0].ends[0]
    for r in trace.rounds:
        # Only differences: the rounds follow one another.
        steps = []
        for end in r.ends if r.ends[0] != at else r.ends[1:]:
            steps += [end[0] - at[0], end[1] - at[1]]
            at = end
        rows.append([r.width, r.accepted, int(r.parked), len(r.ends), *r.times, *steps])
    return bytes([_FORMAT]) + zlib.compress(json.dumps(rows, separators=(",", ":")).encode())


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
