"""`explain` names the operation that depends on the width, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import mlx.core as mx
import pytest

from engine.exactness import ladder
from engine.exactness.explain import explain, explain_first, first_context
from engine.loading import Pair
from engine.target import Target
from tests.support.doubles import qmv_wide


@pytest.fixture
def target(pair: Pair) -> Iterator[Target]:
    kernel, limit = pair.target.scope.kernel, pair.target.scope.block_limit
    ladder.engage(pair.target, ladder.Engaged("stock", 64, 2**31))
    yield pair.target
    pair.target.scope.kernel, pair.target.scope.block_limit = kernel, limit


def test_a_sound_target_has_nothing_to_explain(target: Target) -> None:
    for width in (2, 4):
        assert explain(target, first_context(target, width), width) == []


def test_products_are_named_first(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx, "quantized_matmul", qmv_wide)
    found = explain(target, first_context(target, 3), 3)
    assert (found[0].layer, found[0].operation) == (1, "in_proj_qkv")
    assert 0 < found[0].values <= found[0].total
    assert str(found[0]).startswith(f"in_proj_qkv of layer 1: {found[0].values} of ")
    assert not any("norm" in d.operation or d.operation in ("rope", "conv1d", "attention") for d in found)


def test_attention_is_named(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    right = mx.fast.scaled_dot_product_attention

    def width_dependent(q: mx.array, k: mx.array, v: mx.array, **kwargs: object) -> mx.array:
        out = right(q, k, v, **kwargs)
        return out * (1 + 2**-20) if q.shape[2] > 1 else out

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", width_dependent)
    found = explain(target, first_context(target, 3), 3)
    assert [(d.layer, d.operation) for d in found] == [(4, "attention"), (4, "attention layer as a whole")]


def test_a_kernel_that_changes_with_the_number_of_keys_is_found_where_it_does(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short context hides it: CUDA's attention differs at 138 keys and not at 16."""
    right = mx.fast.scaled_dot_product_attention

    def long_blocks_differ(q: mx.array, k: mx.array, v: mx.array, **kwargs: object) -> mx.array:
        out = right(q, k, v, **kwargs)
        return out * (1 + 2**-20) if q.shape[2] > 1 and k.shape[2] > 100 else out

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", long_blocks_differ)
    assert explain(target, first_context(target, 2), 2) == []
    where, found = explain_first(target, 2, 512)
    assert where == "after 130 tokens"
    assert found[0].operation == "attention"
    target.scope.block_limit = 0  # one query row at a time: no block is attended, so nothing depends on the width
    assert explain_first(target, 2, 512) == ("", [])


def test_rope_is_named(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    right = mx.fast.rope

    def width_dependent(x: mx.array, *args: object, **kwargs: object) -> mx.array:
        out = right(x, *args, **kwargs)
        return out * (1 + 2**-20) if x.shape[2] > 1 else out

    monkeypatch.setattr(mx.fast, "rope", width_dependent)
    found = explain(target, first_context(target, 2), 2)
    assert (found[0].layer, found[0].operation) == (4, "rope")


def test_the_first_difference_of_a_block_is_in_the_chain_too(target: Target) -> None:
    """explain() leaves the caches as it found them: a second run sees the same."""
    context = first_context(target, 3)
    explain(target, context, 3)
    assert explain(target, context, 3) == []
