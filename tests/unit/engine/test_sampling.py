"""Choosing a token is a pure function of (logits, history, seed, position), and samples the right distribution."""

from __future__ import annotations

import math

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arrays import token, token_list
from engine.request import Sampler
from engine.sampling import Chooser

V = 50

SAMPLERS = st.builds(
    Sampler,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 5, 100]),
    top_p=st.sampled_from([1.0, 0.5, 0.95]),
    min_p=st.sampled_from([0.0, 0.1]),
    repetition_penalty=st.sampled_from([1.0, 1.5]),
    presence_penalty=st.sampled_from([0.0, 0.7]),
    logit_bias=st.sampled_from([(), ((4, 3.0), (7, -100.0))]),
)


def logits(seed: int, rows: int = 1) -> mx.array:
    return mx.random.normal((rows, V), key=mx.random.key(seed)) * 3


@given(SAMPLERS, st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_a_row_of_a_block_chooses_what_it_would_choose_alone(
    sampler: Sampler, seed: int, rows: int, position: int
) -> None:
    """mlx-lm #1175 (processor history off by one in the draft), MTPLX #120 (penalties dropped under MTP)."""
    block = logits(seed % 1000, rows)
    drafts = [mx.array([n * 7 % V], dtype=mx.uint32) for n in range(rows - 1)]
    together = token_list(Chooser(sampler, seed, V, [1, 2]).rows(block, position, drafts))
    alone = []
    chooser = Chooser(sampler, seed, V, [1, 2])
    for j in range(rows):
        alone.append(token(chooser.row(block[j], position + j)))
        if j < rows - 1:
            chooser.emit(drafts[j])
    assert together == alone


def reference(x: np.ndarray, sampler: Sampler, prompt: list[int], reply: list[int]) -> np.ndarray:
    """The documented order, written plainly in numpy. Returns probabilities."""
    x = x.astype(np.float64)
    for i, b in sampler.logit_bias:
        x[i] += b
    for i in {*prompt, *reply}:
        x[i] = x[i] / sampler.repetition_penalty if x[i] > 0 else x[i] * sampler.repetition_penalty
    for i in set(reply):
        x[i] -= sampler.presence_penalty
    x = x / sampler.temperature
    if 0 < sampler.top_k < V:
        x[x < np.sort(x)[-sampler.top_k]] = -np.inf
    order = np.argsort(-x)
    p = np.exp(x - x.max())
    p /= p.sum()
    if sampler.top_p < 1:
        before = np.cumsum(p[order]) - p[order]
        x[order[before >= sampler.top_p]] = -np.inf
    if sampler.min_p > 0:
        x[x < x.max() + math.log(sampler.min_p)] = -np.inf
    p = np.exp(x - x.max())
    return p / p.sum()


@given(SAMPLERS.filter(lambda s: s.temperature > 0), st.integers(0, 500))
@settings(max_examples=60, deadline=None)
def test_processing_equals_a_plain_reference(sampler: Sampler, seed: int) -> None:
    row = logits(seed)[0]
    chooser = Chooser(sampler, 0, V, [3, 4, 5])
    chooser.emit(mx.array([5, 6], dtype=mx.uint32))
    got = np.exp(np.array(chooser.log_probs(row)))
    np.testing.assert_allclose(got, reference(np.array(row), sampler, [3, 4, 5], [5, 6]), atol=2e-5)


def test_position_keyed_noise_samples_the_softmax() -> None:
    """4,000 positions against the exact probabilities: within five standard deviations everywhere."""
    row = logits(1)[0] * 0.5
    chooser = Chooser(Sampler(temperature=1.0), 12345, V, [])
    n = 4000
    counts = np.bincount(token_list(chooser.rows(mx.broadcast_to(row, (n, V)), 0, [None] * n)), minlength=V)
    p = np.array(mx.softmax(row))
    assert np.all(np.abs(counts - n * p) < 5 * np.sqrt(n * p * (1 - p)) + 1)


def test_noise_differs_by_seed_and_by_position_only() -> None:
    a, b = Chooser(Sampler(temperature=1.0), 1, V, []), Chooser(Sampler(temperature=1.0), 2, V, [7])
    assert mx.array_equal(a.noise(5), Chooser(Sampler(temperature=0.1), 1, V, [9]).noise(5))
    assert not mx.array_equal(a.noise(5), a.noise(6))
    assert not mx.array_equal(a.noise(5), b.noise(5))


def test_greedy_is_the_first_maximum() -> None:
    row = mx.array([0.0, 2.0, 2.0, 1.0])
    assert token(Chooser(Sampler(), 0, 4, []).row(row, 0)) == 1


def test_a_bias_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="logit_bias"):
        Chooser(Sampler(logit_bias=((V, 1.0),)), 0, V, [])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -1),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("min_p", 2.0),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", math.inf),
        ("presence_penalty", math.nan),
        ("logit_bias", ((1, 2.0), (2, math.nan))),
    ],
)
def test_settings_out_of_range_are_refused_early(field: str, value: object) -> None:
    """Was: a penalty that is no number made every token the first of the vocabulary."""
    with pytest.raises(ValueError, match=field):
        Sampler(**{field: value})  # type: ignore[arg-type]
