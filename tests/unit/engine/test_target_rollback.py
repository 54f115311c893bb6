"""Rollback returns every slot to the bytes it had after the kept rows (mlx-lm #1111, omlx #3232)."""

from __future__ import annotations

import mlx.core as mx
import pytest

from engine.arrays import token_array
from engine.loading import Pair
from engine.target import TargetState
from tests.support.rig import state_bytes

PREFIX = [3, 1, 4, 1, 5, 9, 2, 6]
BLOCK = [5, 3, 5, 8, 9]


def fed(pair: Pair, tokens: list[int], replay: bool) -> TargetState:
    state = pair.target.new_state()
    for slot in state.recurrent:
        slot.replay = replay
    mx.eval(pair.target.hidden(token_array(tokens), state), state.arrays())
    return state


@pytest.mark.parametrize("replay", [False, True], ids=["kept states", "replayed inputs"])
@pytest.mark.parametrize("kept", range(1, len(BLOCK) + 1))
def test_rollback_equals_single_steps(pair: Pair, kept: int, replay: bool) -> None:
    """Also the step after a rollback, and a second block after it, equal the chain."""
    chain = fed(pair, PREFIX, replay)
    for t in BLOCK[:kept]:
        mx.eval(pair.target.step(token_array([t]), chain))
    state = fed(pair, PREFIX, replay)
    pair.target.verify(token_array(BLOCK), state)
    pair.target.rollback(state, len(BLOCK), kept)
    assert state.length == chain.length == len(PREFIX) + kept
    assert state_bytes(state) == state_bytes(chain)

    expected = [pair.target.step(token_array([t]), chain).logits for t in (7, 8)]
    got = pair.target.verify(token_array([7, 8]), state).logits
    assert mx.array_equal(got, mx.concatenate(expected))
    assert state_bytes(state) == state_bytes(chain)


def test_a_tape_is_dropped_after_rollback(pair: Pair) -> None:
    """vllm-mlx #196: states of old rows must not stay pinned."""
    state = fed(pair, PREFIX, False)
    pair.target.verify(token_array(BLOCK), state)
    pair.target.rollback(state, len(BLOCK), len(BLOCK))
    assert all(slot.tape is None and not slot.recording for slot in state.recurrent)


def test_an_exception_in_verify_stops_recording(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    state = fed(pair, PREFIX, False)

    def broken(hidden: mx.array) -> mx.array:
        raise MemoryError("injected")

    monkeypatch.setattr(pair.target, "logits", broken)
    with pytest.raises(MemoryError):
        pair.target.verify(token_array(BLOCK), state)
    assert not any(slot.recording for slot in state.recurrent)


@pytest.mark.parametrize("kept", [0, 4])
def test_rollback_refuses_impossible_counts(pair: Pair, kept: int) -> None:
    state = fed(pair, PREFIX, False)
    pair.target.verify(token_array([1, 2, 3]), state)
    with pytest.raises(ValueError, match="kept"):
        pair.target.rollback(state, 3, kept)


def test_snapshots_restore_and_stay_apart(pair: Pair) -> None:
    """A snapshot is not touched by what happens to a state that was restored from it."""
    state = fed(pair, PREFIX, False)
    snapshot = state.snapshot()
    before = state_bytes(state)
    other = pair.target.new_state()
    other.restore(snapshot)
    pair.target.verify(token_array(BLOCK), other)
    pair.target.rollback(other, len(BLOCK), 2)
    mx.eval(other.arrays())
    again = pair.target.new_state()
    again.restore(snapshot)
    assert state_bytes(again) == before == state_bytes(state)
    assert snapshot.nbytes == sum(map(len, before))


def test_a_mark_rewinds_a_step(pair: Pair) -> None:
    state = fed(pair, PREFIX, False)
    before, mark = state_bytes(state), state.mark()
    mx.eval(pair.target.step(token_array([1]), state))
    state.rewind(mark)
    assert state_bytes(state) == before


def test_two_models_do_not_affect_each_other(pair: Pair, tiny_folders) -> None:
    """omlx #3300: loading a second model broke the first through global patching."""
    from tests.support.rig import load_tiny

    def logits() -> mx.array:
        return pair.target.step(token_array([1]), fed(pair, PREFIX, False)).logits

    before = logits()
    mx.eval(before)
    load_tiny(tiny_folders[0], tiny_folders[1], quantize_drafter=False)
    assert mx.array_equal(before, logits())
