"""Measure what each kind of round costs here, at load, within a small budget of time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import monotonic, perf_counter

import mlx.core as mx

from engine import power
from engine.decode import Line, classic, speculative
from engine.drafter import Drafter, HeadState
from engine.events import EndReason, Notice, Round
from engine.pace import Costs
from engine.request import Sampler
from engine.sampling import Chooser
from engine.target import Target

BUDGET = 2.0
"""Seconds, all widths together. A device on which two rounds of each kind take longer takes longer."""
CONTEXT = 16
ROUNDS = 6
"""Rounds of each kind, at most. The first one of a loop fills its pipeline and does not count."""
READ_TILES, READS = 4, 2
"""Catch-ups of `CONTEXT` rows and of this many times as many, each read so often; the quickest counts."""

ASK_EVERY, MEASURE_EVERY = 30.0, 120.0
"""Seconds between two questions about power and heat, some 20 ms each, and between two measurements."""


def measure_costs(target: Target, drafter: Drafter, widths: Sequence[int]) -> Costs:
    """Milliseconds of a classic step and of a round at each width, on a short context.

    The decode loops themselves run: on a GPU classic decode builds the next step while this one runs, so a step
    that is waited for costs more than a step of a reply, and speculation would look better than it is.
    """
    started = perf_counter()
    read = mx.arange(CONTEXT, dtype=mx.uint32) % target.vocab_size
    state = target.new_state()
    hidden = target.hidden(read, state)
    mx.eval(hidden, state.arrays())
    mark = state.mark()
    # Whole rounds as replies have them, and once more, of the widest, with a synchronisation after each stage: what
    # the head's share is. The synchronisations themselves must not count.
    kinds = [(1, False), *((width, False) for width in widths), (max(widths), True)]
    runs: list[list[Round]] = []
    for n, (width, detailed) in enumerate(kinds, start=1):
        head = HeadState()
        head.tell(read, hidden)
        line = Line(state, head, Chooser(Sampler(), 0, target.vocab_size, ()), _never, 1)
        runs.append(_few(target, drafter, line, width, detailed, started + BUDGET * n / len(kinds)))
        state.rewind(mark)
    *whole, staged = runs
    drafting = [r.draft_ms / (r.width - 2) for r in staged if r.width > 2]
    return Costs(
        {width: median(r.total_ms for r in rounds) for (width, _), rounds in zip(kinds[:-1], whole, strict=True)},
        draft=median(drafting) if drafting else 0.0,
        hook=min(r.hook_ms for r in staged),
        read=_read_ms(drafter, read, hidden),
    )


def _read_ms(drafter: Drafter, ids: mx.array, hidden: mx.array) -> float:
    """Milliseconds of one more row that the head catches up with. ids [n], hidden [n, H]."""

    def spent(ids: mx.array, hidden: mx.array) -> float:
        head = HeadState()
        head.tell(ids, hidden)
        started = perf_counter()
        mx.eval(drafter.accept_hook(head))
        return (perf_counter() - started) * 1e3

    many = mx.tile(ids, READ_TILES), mx.tile(hidden, (READ_TILES, 1))
    mx.eval(many)
    least, most = min(spent(ids, hidden) for _ in range(READS)), min(spent(*many) for _ in range(READS))
    return max(0.0, most - least) / (many[0].shape[0] - ids.shape[0])


def _few(target: Target, drafter: Drafter, line: Line, width: int, detailed: bool, deadline: float) -> list[Round]:
    """Up to `ROUNDS` rounds of one width; at least two, of which the first does not count."""
    never, rounds = threading.Event(), list[Round]()

    def enough() -> bool:
        return len(rounds) > ROUNDS or (len(rounds) > 1 and perf_counter() > deadline)

    loop: Iterator[Round]
    if width == 1:
        loop = classic(target, line, never, enough)
    else:
        loop = speculative(target, drafter, line, never, lambda: 1 if enough() else width, detailed)
    for round_ in loop:  # not extend: `enough` looks at them on the way
        rounds.append(round_)
    return rounds[1:]


def _never(_: int) -> EndReason | None:
    return None


class CostWatch:
    """Measures the costs afresh when power or heat are not as they were at the last measurement.

    clock: seconds, for tests.
    """

    def __init__(
        self, target: Target, drafter: Drafter, widths: Sequence[int], clock: Callable[[], float] = monotonic
    ) -> None:
        self._target, self._drafter, self._widths = target, drafter, tuple(widths)
        self._clock = clock
        self._state = power.state()
        self._looked = self._measured = clock()

    def look(self) -> tuple[Costs, Notice] | None:
        """Before a reply's second token. None: nothing has changed, or it is too soon to ask or to measure again.

        Otherwise new costs, which take `BUDGET` seconds: a machine that is at the limit of its heat all the time must
        not measure all the time.
        """
        if (clock := self._clock()) < self._looked + ASK_EVERY:
            return None
        self._looked = clock
        now = power.state()
        if now == self._state or clock < self._measured + MEASURE_EVERY:
            return None
        self._measured = clock
        before, self._state = self._state, now
        text = f"Power is now {now}, was {before}: costs are measured afresh."
        return measure_costs(self._target, self._drafter, self._widths), Notice("pace", text)
