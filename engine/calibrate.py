"""Measure what a forward of each kind costs here, at load, within a small budget of time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter

import mlx.core as mx

from engine import power
from engine.drafter import Drafter, HeadState
from engine.events import Notice
from engine.pace import Costs
from engine.request import Sampler
from engine.sampling import Chooser
from engine.target import Target
from engine.timing import median_ms

BUDGET = 2.0  # seconds, all widths together


def measure_costs(target: Target, drafter: Drafter, widths: Sequence[int]) -> Costs:
    """Classic step, verify at each width, draft step, accept hook: milliseconds on a short context."""
    state = target.new_state()
    hidden = target.hidden(mx.arange(16, dtype=mx.uint32) % target.vocab_size, state)
    mx.eval(hidden, state.arrays())
    started = perf_counter()
    slots = len(widths) + 3
    one = mx.array([1], dtype=mx.uint32)

    def forward(width: int) -> None:
        mark = state.mark()
        if width == 1:
            mx.eval(mx.argmax(target.step(one, state).logits, axis=-1))
        else:
            mx.eval(mx.argmax(target.verify(mx.broadcast_to(one, (width,)), state).logits, axis=-1))
            target.rollback(state, width, width)
        state.rewind(mark)

    verify: dict[int, float] = {}
    for n, width in enumerate((1, *widths), start=1):
        verify[width] = median_ms(partial(forward, width), deadline=started + BUDGET * n / slots)

    head = HeadState()
    head.tell(mx.arange(16, dtype=mx.uint32) % target.vocab_size, hidden)
    seed_hidden = drafter.accept_hook(head)
    chooser = Chooser(Sampler(), 0, target.vocab_size, ())
    mx.eval(seed_hidden)

    def draft() -> None:
        entries = head.cache.offset
        mx.eval(drafter.draft_block(one, seed_hidden, 2, chooser, 17, head))
        head.drop_after(entries)

    def hook() -> None:
        entries = head.cache.offset
        head.tell(mx.broadcast_to(one, (2,)), hidden[:2])
        mx.eval(drafter.choose(drafter.accept_hook(head), chooser, 17, []))
        head.drop_after(entries)

    return Costs(verify, median_ms(draft, deadline=started + BUDGET), median_ms(hook, deadline=started + BUDGET * 1.1))


class CostWatch:
    """Measures the costs afresh when power or heat are not as they were at the last measurement."""

    def __init__(self, target: Target, drafter: Drafter, widths: Sequence[int]) -> None:
        self._target, self._drafter, self._widths = target, drafter, tuple(widths)
        self._state = power.state()

    def look(self) -> tuple[Costs, Notice] | None:
        """Between two replies. None: nothing has changed. Otherwise new costs, which take up to `BUDGET` seconds."""
        now = power.state()
        if now == self._state:
            return None
        before, self._state = self._state, now
        text = f"Power is now {now}, was {before}: costs are measured afresh."
        return measure_costs(self._target, self._drafter, self._widths), Notice("pace", text)
