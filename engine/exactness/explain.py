"""Name the first operation whose bytes depend on the number of rows.

The probe says that a block differs; this says where. Each layer is taken apart into its operations, every
operation gets the chain's own inputs, once as a block and once row by row with whatever kernels the scope has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.gated_delta import normalize_qk
from mlx_lm.models.qwen3_5 import GatedDeltaNet

from engine.arrays import token_array
from engine.exactness.kernels import Attention
from engine.exactness.probe import Context, contexts
from engine.target import Target

Operation = Callable[[mx.array], mx.array]
"""[1, n, ...] -> [1, n, ...], row by row the same function."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One operation whose block differs from its rows. layer counts from 1, 0 is before and above all layers.

    values: how many output values differ, of total. largest: the largest absolute difference.
    """

    layer: int
    operation: str
    values: int
    total: int
    largest: float

    def __str__(self) -> str:
        where = f"layer {self.layer}" if self.layer else "the model's ends"
        return f"{self.operation} of {where}: {self.values} of {self.total} values differ, by up to {self.largest:.2g}"


def explain(target: Target, context: Context, width: int) -> list[Difference]:
    """Every width-dependent operation of a block of `width` rows, in the order data walks through them.

    An empty list with a failing probe means that no single operation depends on the width when it is given
    equal inputs; the difference then lies in the caches.
    """
    state = target.new_state()
    state.restore(context.start)
    found: list[Difference] = []
    x = target.embed(token_array(context.tokens[:width]))[None]
    with target.scope.verifying(context.start.length + width, width):
        for number, (layer, slot) in enumerate(zip(target.layers, state.slots, strict=True), start=1):
            for name, operation, given in _operations(layer, slot, x):
                if difference := _compare(number, name, operation, given):
                    found.append(difference)
            x = _chain_layer(target, layer, slot, x)
        normed = target.final_norm(x)
        for name, operation, given in (
            ("final norm", target.final_norm, x),
            ("LM head", lambda t: target.logits(t[0])[None], normed),
        ):
            if difference := _compare(0, name, operation, given):
                found.append(difference)
    return found


def _compare(layer: int, name: str, operation: Operation, x: mx.array) -> Difference | None:
    block = operation(x)
    rows = mx.concatenate([operation(x[:, j : j + 1]) for j in range(x.shape[1])], axis=1)
    if block.shape != rows.shape:
        raise ValueError(f"{name}: a block gives {block.shape}, its rows {rows.shape}")
    wrong = block.view(mx.uint8).reshape(-1, block.dtype.size) != rows.view(mx.uint8).reshape(-1, block.dtype.size)
    count = cast(int, mx.any(wrong, axis=-1).sum().item())
    if not count:
        return None
    largest = cast(float, mx.abs(block.astype(mx.float32) - rows.astype(mx.float32)).max().item())
    return Difference(layer, name, count, block.size, largest)


def _chain_layer(target: Target, layer: Any, slot: Any, x: mx.array) -> mx.array:
    """The layer's output row by row, as single decode steps give it. Advances the slot."""
    target.scope.active = False
    try:
        out = mx.concatenate([layer(x[:, j : j + 1], mask=None, cache=slot) for j in range(x.shape[1])], axis=1)
        mx.eval(out)
        return out
    finally:
        target.scope.active = True


def _operations(layer: Any, slot: Any, x: mx.array) -> Iterator[tuple[str, Operation, mx.array]]:
    """(name, operation, its input on the chain) of every operation of a decoder layer."""
    normed = layer.input_layernorm(x)
    yield "input norm", layer.input_layernorm, x
    if layer.is_linear:
        yield from _recurrent_operations(layer.linear_attn, slot, normed)
        attended = _rowwise(lambda t, s: layer.linear_attn(t, None, s), normed, slot)
    else:
        yield from _attention_operations(layer.self_attn, slot, normed)
        attended = _rowwise(lambda t, s: layer.self_attn(t, None, s), normed, slot)
    h = x + attended
    yield "post-attention norm", layer.post_attention_layernorm, h
    mixed = layer.post_attention_layernorm(h)
    mlp = layer.mlp
    if hasattr(mlp, "switch_mlp"):
        yield "mixture of experts", mlp, mixed
        return
    yield "gate_proj", mlp.gate_proj, mixed
    yield "up_proj", mlp.up_proj, mixed
    middle = nn.silu(mlp.gate_proj(mixed)) * mlp.up_proj(mixed)
    yield "down_proj", mlp.down_proj, middle


def _rowwise(run: Callable[[mx.array, Any], mx.array], x: mx.array, slot: Any) -> mx.array:
    """Rows through a module with a cache, leaving the cache as it was."""
    saved = _save(slot)
    out = mx.concatenate([run(x[:, j : j + 1], slot) for j in range(x.shape[1])], axis=1)
    mx.eval(out)
    _load(slot, saved)
    return out


def _numbered(operation: Callable[[mx.array, int], mx.array]) -> Operation:
    """Tells an operation at which row it is: 0 for a block, then 0, 1, ... for its rows in order."""
    done = 0

    def run(t: mx.array) -> mx.array:
        nonlocal done
        if t.shape[1] > 1:
            return operation(t, 0)
        done += 1
        return operation(t, done - 1)

    return run


def _save(slot: Any) -> tuple[Any, ...]:
    return tuple(slot.cache) if hasattr(slot, "cache") else (slot.keys, slot.values, slot.offset)


def _load(slot: Any, saved: tuple[Any, ...]) -> None:
    if hasattr(slot, "cache"):
        slot.cache = list(saved)
    else:
        slot.keys, slot.values, slot.offset = saved


def _recurrent_operations(net: GatedDeltaNet, slot: Any, x: mx.array) -> Iterator[tuple[str, Operation, mx.array]]:
    for name in ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"):
        yield name, getattr(net, name), x
    window = net.conv_kernel_size - 1
    inputs = mx.concatenate([slot[0], net.in_proj_qkv(x)], axis=1)
    rows = x.shape[1]
    # A convolution row needs its window: carry the windows as an axis, so that rows can be taken apart.
    windows = mx.stack([inputs[:, j : j + window + 1] for j in range(rows)], axis=1)

    def convolve(w: mx.array) -> mx.array:
        joined = mx.concatenate([w[:, 0, :window], w[:, :, -1]], axis=1)
        return nn.silu(net.conv1d(joined))

    yield "conv1d", convolve, windows
    convolved = convolve(windows)

    def normalized(c: mx.array) -> mx.array:
        q, k, v = mx.split(c, [net.key_dim, 2 * net.key_dim], -1)
        shape = (1, c.shape[1], net.num_k_heads, net.head_k_dim)
        q, k = normalize_qk(q.reshape(shape), k.reshape(shape), inv_scale=net.head_k_dim**-0.5, eps=1e-6)
        return mx.concatenate([q.reshape(1, c.shape[1], -1), k.reshape(1, c.shape[1], -1), v], axis=-1)

    yield "query and key norm", normalized, convolved
    out = _rowwise(lambda t, s: net(t, None, s), x, slot)
    yield (
        "gated norm",
        lambda t: net.norm(t, t).reshape(1, t.shape[1], -1),
        convolved[..., 2 * net.key_dim :].reshape(1, rows, net.num_v_heads, net.head_v_dim),
    )
    yield "out_proj", net.out_proj, convolved[..., 2 * net.key_dim :]
    saved = _save(slot)

    def whole(t: mx.array) -> mx.array:
        """The layer as production runs it: recording for a block, plain for a row. Rows come in order."""
        slot.recording = t.shape[1] > 1
        if t.shape[1] > 1:
            _load(slot, saved)
            y = net(t, None, slot)
            slot.recording = False
            _load(slot, saved)
            return y
        return net(t, None, slot)

    yield "recurrent layer as a whole", whole, x
    _load(slot, saved)
    mx.eval(out)


def _attention_operations(attention: Any, slot: Any, x: mx.array) -> Iterator[tuple[str, Operation, mx.array]]:
    for name in ("q_proj", "k_proj", "v_proj"):
        yield name, getattr(attention, name), x
    heads, dim = attention.num_attention_heads, attention.head_dim

    def query_norm(t: mx.array) -> mx.array:
        return attention.q_norm(t.reshape(1, t.shape[1], heads, -1)[..., :dim]).reshape(1, t.shape[1], -1)

    projected = attention.q_proj(x)
    yield "q_norm", query_norm, projected
    queries = query_norm(projected)
    start = slot.offset

    def split(t: mx.array) -> mx.array:
        return t.reshape(1, t.shape[1], heads, dim).transpose(0, 2, 1, 3)

    def joined(t: mx.array) -> mx.array:
        return t.transpose(0, 2, 1, 3).reshape(1, t.shape[2], heads * dim)

    def rotate(t: mx.array, row: int) -> mx.array:
        return joined(attention.rope(split(t), offset=start + row))

    saved = _save(slot)
    one_row = attention.scope.attention is Attention.ONE_ROW  # then neither ever sees a block
    if not one_row:
        yield "rope", _numbered(rotate), queries
    for row in range(x.shape[1]):
        attention(x[:, row : row + 1], None, slot)
    keys, values = slot.keys, slot.values  # the chain's, all rows
    _load(slot, saved)

    def attend(t: mx.array, row: int) -> mx.array:
        end = start + row + t.shape[1]
        mask = "causal" if t.shape[1] > 1 else None
        q = split(t)
        return joined(
            mx.fast.scaled_dot_product_attention(
                q, keys[..., :end, :], values[..., :end, :], scale=attention.scale, mask=mask
            )
        )

    if not one_row:
        yield "attention", _numbered(attend), queries

    def whole(t: mx.array) -> mx.array:
        if t.shape[1] > 1:
            _load(slot, saved)
            y = attention(t, "causal", slot)
            _load(slot, saved)
            return y
        return attention(t, None, slot)

    yield "attention layer as a whole", whole, x
    _load(slot, saved)
    yield "o_proj", attention.o_proj, mx.broadcast_to(x.mean(axis=-1, keepdims=True), (1, x.shape[1], heads * dim))


def first_context(target: Target, width: int, context_length: int = 2048) -> Context:
    """A context for `explain`: the probe's first."""
    return next(iter(contexts(target, width, context_length)))


def explain_first(target: Target, width: int, context_length: int = 2048) -> tuple[str, list[Difference]]:
    """`explain` in the first of the probe's contexts where an operation depends on the width.

    Kernels change with the number of keys, so a short context can hide what a longer one shows. Returns where
    ("after 130 tokens") and what; ("", []) when no context shows anything.
    """
    for context in contexts(target, width, context_length):
        if found := explain(target, context, width):
            return context.words, found
    return "", []
