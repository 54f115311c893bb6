"""Small measurements at load: which of several ways to do the same is the fastest here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter

LEAST_TURNS, MOST_TURNS, BUDGET = 6, 20, 1.0
"""Turns, and seconds after which there are no more than the least."""


def least_ms(runs: Sequence[Callable[[], object]]) -> list[float]:
    """Milliseconds of each run: the least of several, in turn, so that no one meets a slower machine than the others.

    Nothing makes a run faster than its work is. Much makes one slower: what a GPU prepares for the first few runs of a
    kernel, a clock that rises, other programs.

    Args:
        runs: each must wait for its own work.

    Returns:
        In the order of `runs`; endless for one that raises RuntimeError, as kernels do that a device cannot launch.
    """
    least: list[float] = [inf] * len(runs)
    able = list(range(len(runs)))
    started = perf_counter()
    for turn in range(MOST_TURNS):
        if turn >= LEAST_TURNS and perf_counter() > started + BUDGET:
            break
        for i in list(able):
            begun = perf_counter()
            try:
                runs[i]()
            except RuntimeError:
                able.remove(i)
                least[i] = inf
            else:
                least[i] = min(least[i], (perf_counter() - begun) * 1e3)
    return least
