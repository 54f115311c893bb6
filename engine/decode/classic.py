"""Classic decode: one token a forward. The reference that speculation must equal, and its fallback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import perf_counter

from engine.arrays import queue, token, token_array
from engine.decode.line import Line
from engine.events import Round
from engine.target import Target


def classic(target: Target, line: Line, stop: threading.Event, leave: Callable[[], bool]) -> Iterator[Round]:
    """Decode until the reply ends, `stop` is set or `leave` says so. Yields a width-1 round per token.

    The next step is queued before this one's token is read, so the device never waits for Python. Whatever
    way the loop is left, the state goes back to the mark before that step: everything but the last token.
    """
    started = perf_counter()
    state, head = line.state, line.head
    rows = target.step(token_array([line.last]), state)
    chosen = line.chooser.row(rows.logits[0], state.length)
    queue(chosen)
    mark = state.mark()
    try:
        while True:
            line.chooser.emit(chosen)
            ahead_rows = target.step(chosen, state)
            ahead = line.chooser.row(ahead_rows.logits[0], state.length)
            built = perf_counter()
            queue(ahead)
            line.last = token(chosen)
            read = perf_counter()
            if head is not None:
                head.tell(chosen, rows.hidden)
            line.ended = line.ends(line.last)
            line.rounds += 1
            yield Round(
                index=line.rounds - 1, position=mark.length, width=1, drafted=0, accepted=0, emitted=1, cut=0,
                draft_ms=0.0, verify_ms=(read - built) * 1e3, rollback_ms=0.0, hook_ms=0.0,
                host_ms=(built - started) * 1e3, tokens=(line.last,),
            )  # fmt: skip
            if line.ended is not None or stop.is_set() or leave():
                return
            started = perf_counter()
            rows, chosen, mark = ahead_rows, ahead, state.mark()
    finally:
        state.rewind(mark)
