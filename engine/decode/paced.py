"""A reply by both loops: speculative while it pays, classic while it does not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from engine.decode.classic import classic
from engine.decode.line import Line
from engine.decode.speculative import speculative
from engine.drafter import Drafter
from engine.events import Notice, Round
from engine.pace import Pace
from engine.target import Target


def loops(
    target: Target,
    drafter: Drafter | None,
    line: Line,
    stop: threading.Event,
    next_width: Callable[[], int],
    detailed: bool,
) -> Iterator[Iterator[Round]]:
    """The loops that write a reply, one after the other: they hand over where `next_width` crosses 1.

    Each must be read to its end before the next is asked for. Until the reply ends or `stop` is set.

    Args:
        next_width: rows of the next round, asked before each one, more than once where loops hand over; without a
            drafter every round has one row.
        detailed: synchronise between the stages of a speculative round.
    """
    while line.ended is None and not stop.is_set():
        if drafter is not None and next_width() > 1:
            yield speculative(target, drafter, line, stop, next_width, detailed)
        else:
            yield classic(target, line, stop, lambda: next_width() > 1)


def paced(
    target: Target, drafter: Drafter | None, line: Line, stop: threading.Event, pace: Pace | None, detailed: bool
) -> Iterator[Round | Notice]:
    """Alternate between the two loops as the pace decides.

    Args:
        pace: begun for this reply; it learns from every round and tells its decisions. None: classic decode only.
        detailed: see `loops`.
    """
    if pace is None:
        for rounds in loops(target, None, line, stop, lambda: 1, detailed):
            yield from rounds
        return
    for rounds in loops(target, drafter, line, stop, lambda: pace.width, detailed):
        yield from pace.take_notices()
        for round_ in rounds:
            parked = round_.width == 1 and pace.parked
            pace.observe(round_, waiting=line.waiting, detailed=detailed, ended=line.ended is not None)
            yield replace(round_, parked=True) if parked else round_
            yield from pace.take_notices()
