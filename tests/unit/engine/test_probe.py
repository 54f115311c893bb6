"""The probe fails when a block is not the chain, whatever the reason, and nothing speculates then."""

from __future__ import annotations

import mlx.core as mx
import pytest

from engine.events import ExactnessState
from engine.exactness import ladder
from engine.exactness.probe import probe, same_bytes
from engine.loading import Pair
from engine.target import Target
from engine.target.recurrence import STATE, RecordingDeltaNet


def test_a_sound_target_passes(pair: Pair) -> None:
    result = probe(pair.target, (2, 5))
    assert result.passed == (2, 5)
    assert result.inputs == 6


def test_a_block_that_sums_in_another_order_fails(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """As qmv_wide does on M3 and later: the last bit differs, for two rows and more only."""
    right = pair.target.logits

    def wide(hidden: mx.array) -> mx.array:
        return right(hidden) * (1 + 2**-22) if hidden.shape[0] >= 3 else right(hidden)

    monkeypatch.setattr(pair.target, "logits", wide)
    verdict = ladder.decide(pair.target, (2, 3, 4), allow_inexact=False)
    assert verdict.widths == (2,)
    assert "At width 3 the bytes differ: logits of row 1" in verdict.reason
    assert ladder.decide(pair.target, (3, 4), allow_inexact=False).state is ExactnessState.DECLINED
    allowed = ladder.decide(pair.target, (3, 4), allow_inexact=True)
    assert allowed.state is ExactnessState.INEXACT_ALLOWED
    assert "may differ" in allowed.reason


@pytest.mark.parametrize("slot", ["attention", "recurrent", "window"])
def test_a_rollback_that_forgets_one_slot_fails(pair: Pair, slot: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    result = probe(pair.target, (3,))
    assert result.passed == ()
    assert "rollback" in result.failures[0][1]


def test_nan_and_exceptions_are_failures(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair.target, "logits", lambda hidden: mx.full((hidden.shape[0], 400), float("nan")))
    assert probe(pair.target, (2,)).failures == ((2, "logits of row 1"),)
    monkeypatch.undo()

    def broken(*_: object) -> None:
        raise RuntimeError("no kernel for this shape")

    monkeypatch.setattr(RecordingDeltaNet, "_recording_forward", broken)
    assert probe(pair.target, (2,)).failures == ((2, "RuntimeError: no kernel for this shape"),)


def test_bytes_are_compared_not_values() -> None:
    assert same_bytes(mx.array([1.0]), mx.array([1.0]))
    assert not same_bytes(mx.array([0.0]), mx.array([-0.0]))
    assert not same_bytes(mx.array([float("nan")]), mx.array([float("nan")]))
    assert not same_bytes(mx.array([1.0]), mx.array([1.0], dtype=mx.float16))
    assert not same_bytes(mx.array([1.0]), mx.array([[1.0]]))
