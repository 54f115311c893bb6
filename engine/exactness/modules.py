"""mlx-lm's modules with a scope: the same weights, and a switch that only a verify forward turns.

`wrap` replaces the instances of one loaded model by twins that share their weights. Classes and other
models stay as they are (omlx #3300: global patching broke a second model).
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.qwen3_5 import GatedDeltaNet
from mlx_lm.models.qwen3_next import Qwen3NextAttention
from mlx_lm.models.switch_layers import SwitchGLU

from engine.exactness.kernels.base import Attention, Scope
from engine.target.recurrence import RecordingDeltaNet


def _adopt(cls: Any, module: nn.Module, scope: Scope) -> nn.Module:
    """A twin of `module` in class `cls`: the same arrays, the same sizes."""
    mine = cls.__new__(cls)
    nn.Module.__init__(mine)
    for name, value in vars(module).items():
        object.__setattr__(mine, name, value)
    dict.update(mine, module)
    object.__setattr__(mine, "scope", scope)
    return mine


class _Product:
    """A product with weights that the scope may re-route. stock: the call that mlx-lm would make."""

    scope: Scope

    def stock(self, x: mx.array) -> mx.array:
        raise NotImplementedError

    def product(self, x: mx.array) -> mx.array:
        kernel = self.scope.for_rows(x.shape[-2])
        return kernel.linear(self, x) if kernel else self.stock(x)


class ScopedQuantizedLinear(_Product, nn.QuantizedLinear):
    def stock(self, x: mx.array) -> mx.array:
        return nn.QuantizedLinear.__call__(self, x)

    def __call__(self, x: mx.array) -> mx.array:
        return self.product(x)


class ScopedLinear(_Product, nn.Linear):
    def stock(self, x: mx.array) -> mx.array:
        return nn.Linear.__call__(self, x)

    def __call__(self, x: mx.array) -> mx.array:
        return self.product(x)


class ScopedQuantizedEmbedding(_Product, nn.QuantizedEmbedding):
    """Its `as_linear` is the LM head of a tied model."""

    def stock(self, x: mx.array) -> mx.array:
        return nn.QuantizedEmbedding.as_linear(self, x)

    def as_linear(self, x: mx.array) -> mx.array:
        return self.product(x)


class ScopedEmbedding(_Product, nn.Embedding):
    def stock(self, x: mx.array) -> mx.array:
        return nn.Embedding.as_linear(self, x)

    def as_linear(self, x: mx.array) -> mx.array:
        return self.product(x)


class ScopedExperts(SwitchGLU):
    scope: Scope

    def stock(self, x: mx.array, indices: mx.array) -> mx.array:
        return super().__call__(x, indices)

    def __call__(self, x: mx.array, indices: mx.array) -> mx.array:
        kernel = self.scope.for_rows(x.shape[-2])
        return kernel.experts(self, x, indices) if kernel else super().__call__(x, indices)


class ScopedAttention(Qwen3NextAttention):
    scope: Scope

    def __call__(self, x: mx.array, mask: Any = None, cache: Any = None) -> mx.array:
        one_row = self.scope.active and self.scope.attention is Attention.ONE_ROW
        if not one_row or x.shape[1] == 1 or cache is None:
            return super().__call__(x, mask, cache)
        return self._one_row_at_a_time(x, cache)

    def _one_row_at_a_time(self, x: mx.array, cache: Any) -> mx.array:
        """Projections on the block; rotation, cache and attention as single decode steps would run them."""
        batch, rows, _ = x.shape
        heads = self.num_attention_heads
        queries, gate = mx.split(self.q_proj(x).reshape(batch, rows, heads, -1), 2, axis=-1)
        keys = self.k_norm(self.k_proj(x).reshape(batch, rows, self.num_key_value_heads, -1))
        values = self.v_proj(x).reshape(batch, rows, self.num_key_value_heads, -1)
        queries = self.q_norm(queries)
        outs = []
        for row in range(rows):
            here = slice(row, row + 1)
            q, k, v = (t[:, here].transpose(0, 2, 1, 3) for t in (queries, keys, values))
            q, k = self.rope(q, offset=cache.offset), self.rope(k, offset=cache.offset)
            all_keys, all_values = cache.update_and_fetch(k, v)
            out = mx.fast.scaled_dot_product_attention(q, all_keys, all_values, scale=self.scale)
            outs.append(out.transpose(0, 2, 1, 3).reshape(batch, 1, -1))
        attended = mx.concatenate(outs, axis=1)
        return self.o_proj(attended * mx.sigmoid(gate.reshape(batch, rows, -1)))


_TWINS: dict[type, type] = {
    nn.QuantizedLinear: ScopedQuantizedLinear,
    nn.Linear: ScopedLinear,
    nn.QuantizedEmbedding: ScopedQuantizedEmbedding,
    nn.Embedding: ScopedEmbedding,
    SwitchGLU: ScopedExperts,
    Qwen3NextAttention: ScopedAttention,
    GatedDeltaNet: RecordingDeltaNet,
}


def wrap(module: nn.Module, scope: Scope) -> None:
    """Replace every known module below `module` by its twin, in place."""
    for name, child in list(module.items()):
        module[name] = _wrapped(child, scope)


def _wrapped(value: Any, scope: Scope) -> Any:
    if isinstance(value, list):
        return [_wrapped(v, scope) for v in value]
    if not isinstance(value, nn.Module):
        return value
    if type(value) in _TWINS:
        value = _adopt(_TWINS[type(value)], value, scope)
    wrap(value, scope)
    return value
