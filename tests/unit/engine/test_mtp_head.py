"""The head makes of a row only what is read of it later, and gives what its whole layer would have given."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models.cache import KVCache

from engine.arrays import token_array
from engine.drafter import HeadState
from engine.drafter.head import MTPHead
from engine.loading import Pair
from tests.support.rig import load_tiny
from tests.support.tiny_pair import Shape, write_head, write_target

CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def load(folder: Path, shape: Shape) -> Pair:
    pair = load_tiny(write_target(folder / "target", shape), write_head(folder / "head", shape), max_block=3)
    assert pair.drafter is not None, pair.info.drafter_reason
    return pair


@pytest.fixture(scope="module", params=[0, 8], ids=["dense", "experts"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return load(tmp_path_factory.mktemp("pair"), Shape(experts=request.param))


def whole_layer(head: MTPHead, embedding: mx.array, hidden: mx.array, cache: KVCache) -> mx.array:
    """All rows through all of the layer, as mlx-lm runs it; the output of the last. [1, H]."""
    pair = mx.concatenate([head.pre_fc_norm_embedding(embedding), head.pre_fc_norm_hidden(hidden)], axis=-1)
    mask = "causal" if hidden.shape[0] > 1 else None
    return head.norm(head.layers[0](head.fc(pair)[None], mask=mask, cache=cache))[0, -1:]


def told(pair: Pair, count: int, seed: int) -> tuple[mx.array, mx.array]:
    mx.random.seed(seed)
    ids = mx.random.randint(0, pair.target.vocab_size, (count,)).astype(mx.uint32)
    return ids, mx.random.normal((count, pair.target.hidden_size)).astype(pair.target.dtype)


@settings(max_examples=25, deadline=None)
@given(counts=st.lists(st.integers(1, 9), min_size=1, max_size=5), seed=st.integers(0, 2**16))
def test_the_output_and_the_history_are_those_of_the_whole_layer(pair: Pair, counts: list[int], seed: int) -> None:
    assert pair.drafter is not None
    head, ours, theirs = pair.drafter.head, KVCache(), KVCache()
    for n, count in enumerate(counts):
        ids, hidden = told(pair, count, seed + n)
        embedding = pair.target.embed(ids)
        out, expected = head(embedding, hidden, ours), whole_layer(head, embedding, hidden, theirs)
        assert out.shape == expected.shape
        assert mx.allclose(out, expected, **CLOSE)
        assert ours.offset == theirs.offset
    for mine, other in zip(ours.keys_and_values(), theirs.keys_and_values(), strict=True):
        assert mx.allclose(mine, other, **CLOSE)


def test_a_long_history_in_chunks_is_the_same_as_at_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pair.drafter is not None
    ids, hidden = told(pair, 50, 3)
    outputs = []
    for chunk in (7, 25, 64):
        monkeypatch.setattr(pair.target, "backend", dataclasses.replace(pair.target.backend, prefill_chunk=chunk))
        state = HeadState()
        state.tell(ids, hidden)
        outputs.append(pair.drafter.accept_hook(state))
        assert (state.cache.offset, state.waiting) == (50, 0)
    assert mx.allclose(outputs[0], outputs[2], **CLOSE)
    assert mx.allclose(outputs[1], outputs[2], **CLOSE)


def test_only_the_last_row_goes_through_the_feed_forward(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a prompt of 40 tokens costs their keys and values: no queries, no attention, no experts."""
    assert pair.drafter is not None
    rows = []
    layer = pair.drafter.head.layers[0]

    class Counting(type(layer.mlp)):  # type: ignore[misc]
        def __call__(self, x: mx.array) -> mx.array:
            rows.append(x.shape[1])
            return super().__call__(x)

    monkeypatch.setattr(layer.mlp, "__class__", Counting)
    state = HeadState()
    state.tell(*told(pair, 40, 5))
    mx.eval(pair.drafter.accept_hook(state))
    state.tell(token_array([1, 2, 3]), told(pair, 3, 6)[1])
    mx.eval(pair.drafter.accept_hook(state))
    assert rows == [1, 1]
