"""Small measurements at load: medians of a few synchronous runs."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter


def median_ms(run: Callable[[], object], repeats: int = 5, deadline: float | None = None) -> float:
    """Median milliseconds of `run` after one warm-up.

    Args:
        run: must wait for its own work.
        repeats: runs that count.
        deadline: `perf_counter` time after which no further run starts; at least one counts.
    """
    run()
    times: list[float] = []
    while len(times) < repeats and (not times or deadline is None or perf_counter() < deadline):
        started = perf_counter()
        run()
        times.append((perf_counter() - started) * 1e3)
    return median(times)
