"""The probe fails when a block is not the chain, whatever the reason."""

from __future__ import annotations

from collections.abc import Iterator

import mlx.core as mx
import pytest

from engine.exactness import ladder
from engine.exactness import probe as probes
from engine.exactness.probe import contexts, probe, same_bytes
from engine.loading import Pair
from engine.target import Target
from engine.target.recurrence import STATE, RecordingDeltaNet
from tests.support.doubles import qmv_wide


@pytest.fixture
def target(pair: Pair) -> Iterator[Target]:
    """The shared tiny target, with its scope put back afterwards."""
    kernel, limit = pair.target.scope.kernel, pair.target.scope.block_limit
    yield pair.target
    pair.target.scope.kernel, pair.target.scope.block_limit = kernel, limit


@pytest.fixture
def stock(target: Target) -> Target:
    ladder.engage(target, ladder.Engaged("stock", 64, 2**31))
    return target


def test_a_sound_target_passes_in_every_context(stock: Target) -> None:
    found = list(contexts(stock, 5, 2048))
    assert [(c.start.length, c.real) for c in found] == [
        (8, True), (130, True), (8, True), (1013, False), (1025, False),
    ]  # fmt: skip
    assert found[0].tokens != found[2].tokens
    result = probe(stock, (2, 5))
    assert result.passed == (2, 5)
    assert result.failures == ()
    assert result.inputs == 10
    assert result.longest == 1025 + 10


def test_contexts_stay_inside_a_short_model(stock: Target) -> None:
    assert all(c.start.length < 1024 for c in contexts(stock, 4, 1024))


def test_a_block_that_sums_in_another_order_fails_and_is_named(stock: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx, "quantized_matmul", qmv_wide)
    result = probe(stock, (2, 3))
    assert result.passed == ()
    assert result.failures[0][1] == "hidden of row 1, after 8 tokens"


def test_a_difference_that_shows_only_at_long_context_is_found(stock: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """MTPLX #459: an attention kernel that is wrong past a key length only."""
    right = mx.fast.scaled_dot_product_attention

    def splits(q: mx.array, k: mx.array, v: mx.array, **kwargs: object) -> mx.array:
        out = right(q, k, v, **kwargs)
        return out * (1 + 2**-20) if q.shape[2] > 1 and k.shape[2] > 1024 else out

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", splits)
    result = probe(stock, (3,))
    assert result.passed == ()
    assert "synthetic keys" in result.failures[0][1]


@pytest.mark.parametrize("slot", ["attention", "recurrent", "window"])
def test_a_rollback_that_forgets_one_slot_fails(stock: Target, slot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """omlx #3232: a new state slot was not rolled back."""
    right = Target.rollback
    index = {"attention": 3, "recurrent": 0, "window": 1}[slot]

    def forgetful(self: Target, state, rows: int, kept: int) -> None:
        forgotten = state.slots[index]
        if slot == "attention":
            keys, values, offset = forgotten.keys, forgotten.values, forgotten.offset
        else:
            before = list(forgotten.cache)
        right(self, state, rows, kept)
        if slot == "attention":
            forgotten.keys, forgotten.values, forgotten.offset = keys, values, offset
        elif slot == "recurrent":
            forgotten[STATE] = before[STATE]
        else:
            forgotten[0] = before[0]

    monkeypatch.setattr(Target, "rollback", forgetful)
    result = probe(stock, (3,))
    assert result.passed == ()
    part = {"attention": "keys of layer 4", "recurrent": "state of layer 1", "window": "window of layer 2"}[slot]
    assert result.failures[0][1] == f"{part} after rollback to 1 of 3 rows, after 8 tokens"


def test_nan_and_exceptions_are_failures(stock: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock, "logits", lambda hidden: mx.full((hidden.shape[0], 400), float("nan")))
    assert probe(stock, (2,)).failures == ((2, "logits of row 1, after 8 tokens"),)
    monkeypatch.undo()

    def broken(*_: object) -> None:
        raise RuntimeError("no kernel for this shape")

    monkeypatch.setattr(RecordingDeltaNet, "_recording_forward", broken)
    assert probe(stock, (2,)).failures == ((2, "RuntimeError: no kernel for this shape, after 8 tokens"),)


def test_a_chain_that_cannot_run_is_a_failure(stock: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model then loads and declines; memory that is too small for long contexts must not keep it from chatting."""

    def broken(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(probes, "_synthetic", broken)
    result = probe(stock, (2, 3))
    assert result.passed == ()
    assert result.failures == tuple((w, "single steps fail: RuntimeError: out of memory") for w in (2, 3))


def test_bytes_are_compared_not_values() -> None:
    assert same_bytes(mx.array([1.0]), mx.array([1.0]))
    assert not same_bytes(mx.array([0.0]), mx.array([-0.0]))
    assert not same_bytes(mx.array([float("nan")]), mx.array([float("nan")]))
    assert not same_bytes(mx.array([1.0]), mx.array([1.0], dtype=mx.float16))
    assert not same_bytes(mx.array([1.0]), mx.array([[1.0]]))
