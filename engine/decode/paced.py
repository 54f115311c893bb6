"""A reply by both loops: speculative while it pays, classic while it does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

from engine.decode.classic import classic
from engine.decode.line import Line
from engine.decode.speculative import speculative
from engine.drafter import Drafter
from engine.events import Notice, Round
from engine.pace import Pace
from engine.target import Target


def paced(
    target: Target, drafter: Drafter | None, line: Line, stop: threading.Event, pace: Pace, detailed: bool
) -> Iterator[Round | Notice]:
    """Alternate between the two loops as the pace decides, until the reply ends or `stop` is set.

    Args:
        pace: begun for this reply; it learns from every round and tells its decisions.
        detailed: synchronise between the stages of a speculative round.
    """
    while line.ended is None and not stop.is_set():
        if drafter is not None and pace.next_width() > 1:
            rounds = speculative(target, drafter, line, stop, pace.next_width, detailed)
        else:
            rounds = classic(target, line, stop, pace.leave_classic)
        yield from pace.take_notices()
        for round_ in rounds:
            pace.observe(round_)
            yield replace(round_, parked=True) if round_.width == 1 and pace.parked else round_
            yield from pace.take_notices()
