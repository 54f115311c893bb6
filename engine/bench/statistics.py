"""Medians, ratios of pairs, bootstrap intervals, and the verdict that takes noise into account."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

RESAMPLES = 10_000
CONFIDENCE = 0.95
QUIET_BAND = 0.05
"""An A/A band above this is no ground for "holds": this much slower could be noise."""


LEAST_PAIRS = 6
"""The range of n samples covers the median with a probability of 1 - 2^(1 - n): 0.94 for 5, 0.97 for 6. With fewer
there is no interval of CONFIDENCE, and the bootstrap's is too narrow; of one pair it is a point."""


class Verdict(StrEnum):
    HOLDS = "holds"
    FALLS_SHORT = "falls short"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one arm's samples, in their unit."""

    median: float
    minimum: float
    maximum: float
    n: int


@dataclass(frozen=True, slots=True)
class Ratio:
    """Median of the pairs' ratios with its bootstrap interval (percentile, CONFIDENCE)."""

    median: float
    low: float
    high: float
    n: int


def spread(values: Sequence[float]) -> Spread:
    """Raises ValueError without values."""
    if not values:
        raise ValueError("no samples")
    return Spread(median(values), min(values), max(values), len(values))


def speed_ratio(seconds: Sequence[float], against: Sequence[float], *, seed: int = 0) -> Ratio:
    """How many times faster than `against`, pair by pair: above 1 is faster.

    Args:
        seconds, against: of the same work, one pair per block, in the same order.

    Raises:
        ValueError: no pairs, or not as many on both sides.
    """
    if not seconds or len(seconds) != len(against):
        raise ValueError(f"{len(seconds)} samples cannot be paired with {len(against)}")
    ratios = [theirs / ours for ours, theirs in zip(seconds, against, strict=True)]
    low, high = bootstrap_median(ratios, seed=seed)
    return Ratio(median(ratios), low, high, len(ratios))


def bootstrap_median(
    values: Sequence[float], *, resamples: int = RESAMPLES, confidence: float = CONFIDENCE, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the median (Efron 1979). Deterministic for a seed."""
    draw = random.Random(seed)
    n = len(values)
    medians = sorted(median(draw.choices(values, k=n)) for _ in range(resamples))
    tail = (1.0 - confidence) / 2.0
    return medians[int(tail * resamples)], medians[min(resamples - 1, int((1.0 - tail) * resamples))]


def change(before: Sequence[float], after: Sequence[float], *, seed: int = 0) -> Ratio:
    """Median of `after` over that of `before`, of two runs that no pairs join: both are resampled on their own.

    Raises:
        ValueError: no values on a side, or a median of 0 before.
    """
    if not before or not after or median(before) <= 0:
        raise ValueError("nothing to compare with")
    draw = random.Random(seed)
    ratios = sorted(
        median(draw.choices(after, k=len(after))) / median(draw.choices(before, k=len(before)))
        for _ in range(RESAMPLES)
    )
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = ratios[int(tail * RESAMPLES)], ratios[min(RESAMPLES - 1, int((1.0 - tail) * RESAMPLES))]
    return Ratio(median(after) / median(before), low, high, min(len(before), len(after)))


def noise_band(control: Ratio) -> float:
    """How far from 1 an A/A control, an arm against itself, reaches: what this machine's noise can fake."""
    return max(abs(1.0 - control.low), abs(control.high - 1.0))


def judge(ratio: Ratio, bound: float, band: float) -> Verdict:
    """Falls short: the interval's upper end is under the bound less the A/A band, so noise cannot explain it.

    Otherwise it holds, unless the band is so wide that a real loss would hide in it: then the interval's lower end
    has to be above the bound by the band. Of fewer pairs than LEAST_PAIRS nothing can be said.
    """
    if ratio.n < LEAST_PAIRS:
        return Verdict.UNDECIDED
    if ratio.high < bound - band:
        return Verdict.FALLS_SHORT
    return Verdict.HOLDS if band <= QUIET_BAND or ratio.low >= bound + band else Verdict.UNDECIDED
