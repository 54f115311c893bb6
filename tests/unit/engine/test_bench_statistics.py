"""Ratios, intervals and verdicts: properties that hold for any samples, and cases with known answers."""

from __future__ import annotations

import random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.bench.statistics import (
    QUIET_BAND,
    Ratio,
    Verdict,
    bootstrap_median,
    judge,
    noise_band,
    speed_ratio,
    spread,
)

SECONDS = st.floats(0.001, 1000.0)
SAMPLES = st.lists(SECONDS, min_size=1, max_size=40)


@given(samples=SAMPLES, factor=st.floats(0.1, 10.0))
@settings(max_examples=10, deadline=None)
def test_a_constant_ratio_has_an_interval_of_one_point(samples: list[float], factor: float) -> None:
    """Prompts may differ in length as they like: pairs that all have one ratio leave no doubt about it."""
    ratio = speed_ratio(samples, [s * factor for s in samples])
    for figure in (ratio.median, ratio.low, ratio.high):
        assert figure == pytest.approx(factor)
    assert ratio.n == len(samples)


@given(samples=SAMPLES)
@settings(max_examples=10, deadline=None)
def test_an_arm_against_its_own_samples_is_1_with_no_band(samples: list[float]) -> None:
    """A/A of identical samples: nothing is noise."""
    control = speed_ratio(samples, samples)
    assert control == Ratio(1.0, 1.0, 1.0, len(samples))
    assert noise_band(control) == 0.0


@given(values=st.lists(SECONDS, min_size=3, max_size=40), seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_the_interval_lies_in_the_samples_and_around_their_median(values: list[float], seed: int) -> None:
    low, high = bootstrap_median(values, resamples=500, seed=seed)
    assert min(values) <= low <= median(values) <= high <= max(values)
    assert (low, high) == bootstrap_median(values, resamples=500, seed=seed), "one seed, one interval"


def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    """95 % intervals of 60 sets from a known distribution: the number that miss is in the binomial's bulk."""
    draw = random.Random(7)
    missed = 0
    for n in range(60):
        low, high = bootstrap_median([draw.gauss(1.0, 0.1) for _ in range(30)], resamples=400, seed=n)
        missed += not low <= 1.0 <= high
    assert missed <= 9  # 3 expected; 10 or more has a chance below 1 in 1000


def test_faster_is_above_1() -> None:
    """The arm took half the time: its speed is 2 x, not 0.5 x."""
    assert speed_ratio([1.0, 1.0], [2.0, 2.0]).median == 2.0


def test_a_single_outlier_does_not_move_the_median() -> None:
    assert speed_ratio([1.0] * 9 + [50.0], [1.0] * 10).median == 1.0


@pytest.mark.parametrize(
    ("high", "band", "verdict"),
    [
        (1.01, 0.01, Verdict.HOLDS),
        (0.995, 0.01, Verdict.HOLDS),  # under the bound, but not by more than noise
        (0.98, 0.01, Verdict.FALLS_SHORT),
        (1.01, 2 * QUIET_BAND, Verdict.UNDECIDED),
        (0.5, 2 * QUIET_BAND, Verdict.FALLS_SHORT),  # so slow that even this noise cannot explain it
        (1.3, 2 * QUIET_BAND, Verdict.HOLDS),  # so fast that even this noise cannot explain it
    ],
)
def test_verdict(high: float, band: float, verdict: Verdict) -> None:
    """Falls short when the upper end is under the bound less the band; no "holds" where noise hides a loss."""
    assert judge(Ratio(high - 0.01, high - 0.02, high, 30), 1.0, band) is verdict


def test_spread_and_pairs_need_samples() -> None:
    assert spread([3.0, 1.0, 2.0]).median == 2.0
    with pytest.raises(ValueError, match="no samples"):
        spread([])
    with pytest.raises(ValueError, match="cannot be paired"):
        speed_ratio([1.0], [1.0, 2.0])
