"""Every candidate computes the stock product, row for row, on packed and dense weights and experts."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models.switch_layers import SwitchGLU

from engine.exactness.kernels import ForcedQmv, Gather, OneRow, QmvRows, Scope
from engine.exactness.kernels.forced_qmv import fitting_chunk
from engine.exactness.modules import wrap

KERNELS = [OneRow(), Gather(), ForcedQmv(8), ForcedQmv(32), ForcedQmv(256), QmvRows(16, [])]
"""The last one serves no shape, as everywhere but on Apple GPUs; tests/virtual_metal has it at work."""

INPUTS = 192
"""Not 64 or 128: gather leaves those to one-row calls."""


class Holder(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layers = [layer]


def scoped(layer: nn.Module) -> tuple[nn.Module, Scope]:
    holder, scope = Holder(layer), Scope()
    wrap(holder, scope)
    return holder.layers[0], scope


def rows_alone(layer: nn.Module, x: mx.array) -> mx.array:
    return mx.concatenate([layer(x[:, j : j + 1]) for j in range(x.shape[1])], axis=1)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}{getattr(k, 'chunk', '')}")
@pytest.mark.parametrize("outputs", [8, 40, 64, 100, 256])
@pytest.mark.parametrize("packed", [True, False], ids=["4-bit", "dense"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_linear(kernel, outputs: int, packed: bool, bias: bool) -> None:
    """Ragged outputs (100) have no chunk and fall back to rows."""
    linear: nn.Module = nn.Linear(INPUTS, outputs, bias=bias)
    if packed:
        linear = nn.QuantizedLinear.from_linear(linear, group_size=32, bits=4)
    layer, scope = scoped(linear)
    x = mx.random.normal((1, 3, INPUTS))
    expected = rows_alone(layer, x)
    scope.kernel = kernel
    with scope.verifying(3, 3):
        got = layer(x)
    assert got.shape == (1, 3, outputs)
    assert mx.array_equal(got, expected)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("mode", ["mxfp4", "nvfp4"])
def test_other_modes_than_affine_go_one_row_at_a_time(kernel, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has compared their batched or gathered kernels with one row's, and 16 bit can hide a difference."""
    group = 32 if mode == "mxfp4" else 16
    layer, scope = scoped(nn.QuantizedLinear.from_linear(nn.Linear(INPUTS, 64, bias=False), group, 4, mode=mode))
    x = mx.random.normal((1, 3, INPUTS))
    expected = rows_alone(layer, x)
    shapes: list[tuple[int, ...]] = []
    right = mx.quantized_matmul

    def watching(x: mx.array, w: mx.array, *rest: mx.array, **kwargs: object) -> mx.array:
        shapes.append((w.ndim, x.shape[-2]))
        return right(x, w, *rest, **kwargs)

    monkeypatch.setattr(mx, "quantized_matmul", watching)
    monkeypatch.setattr(mx, "gather_qmm", lambda *_, **__: pytest.fail("gathered"))
    scope.kernel = kernel
    with scope.verifying(3, 3):
        assert mx.array_equal(layer(x), expected)
    assert shapes == [(2, 1)] * 3


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=lambda k: k.name)
def test_tied_head(kernel) -> None:
    layer, scope = scoped(nn.QuantizedEmbedding.from_embedding(nn.Embedding(96, INPUTS), group_size=32, bits=4))
    x = mx.random.normal((4, INPUTS))
    expected = mx.concatenate([layer.as_linear(x[j : j + 1]) for j in range(4)])
    scope.kernel = kernel
    with scope.verifying(4, 4):
        assert mx.array_equal(layer.as_linear(x), expected)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=lambda k: k.name)
def test_experts_do_not_depend_on_how_many_tokens_are_routed_together(kernel) -> None:
    """mlx-lm sorts tokens by expert from 64 pairs on; a block of 8 rows with 8 experts reaches that, a row does not."""
    layer, scope = scoped(SwitchGLU(64, 32, 16))
    x = mx.random.normal((1, 8, 64))
    indices = mx.random.randint(0, 16, (1, 8, 8))
    expected = mx.concatenate([layer(x[:, j : j + 1], indices[:, j : j + 1]) for j in range(8)], axis=1)
    scope.kernel = kernel
    with scope.verifying(8, 8):
        got = layer(x, indices)
    assert got.shape == (1, 8, 8, 64)
    assert mx.array_equal(got, expected)


@given(outputs=st.integers(1, 5000), wanted=st.sampled_from([8, 16, 32, 64, 128, 256]))
@settings(deadline=None)
def test_chunks_divide(outputs: int, wanted: int) -> None:
    chunk = fitting_chunk(outputs, wanted)
    if outputs % 8:
        assert chunk is None
    else:
        assert chunk is not None
        assert outputs % chunk == 0
        assert 8 <= chunk <= wanted


def test_scope_counts_what_ran_through_a_kernel() -> None:
    layer, scope = scoped(nn.Linear(8, 8))
    scope.kernel = OneRow()
    layer(mx.zeros((1, 3, 8)))
    assert scope.calls == 0
    with scope.verifying(3, 3):
        layer(mx.zeros((1, 3, 8)))
        layer(mx.zeros((1, 1, 8)))
    assert scope.calls == 1
    with pytest.raises(RuntimeError), scope.verifying(3, 3):
        raise RuntimeError
    assert not scope.active
