"""Time one phase of one run, and read the counters around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import mlx.core as mx

from engine.bench.rig import Rig


class Measured:
    """seconds: from entering `measured` to `stop`, wall time. counts: what moved meanwhile (see `tally`)."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.counts: dict[str, int] = {}
        self._started = perf_counter()

    def stop(self) -> None:
        self.seconds = perf_counter() - self._started


@contextmanager
def measured(rig: Rig) -> Iterator[Measured]:
    """Start the clock on a quiet device. `stop` it inside; counts are there after the block."""
    mx.synchronize()
    before = rig.tally.counts.copy()
    clock = Measured()
    yield clock
    clock.counts = dict(rig.tally.counts - before)
    # A loop that looks ahead leaves a forward in flight. It must not run into the next clock.
    mx.synchronize()
