"""Small measurements at load: medians of a few synchronous runs."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter


def median_ms(run: Callable[[], object], repeats: int = 5) -> float:
    """Median milliseconds of `run` after one warm-up.

    Args:
        run: must wait for its own work.
        repeats: runs that count.
    """
    run()
    times: list[float] = []
    for _ in range(repeats):
        started = perf_counter()
        run()
        times.append((perf_counter() - started) * 1e3)
    return median(times)
