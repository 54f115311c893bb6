"""Quantized products as MLX's host code dispatches them, through Apple's compiled kernels.

Argument order, grids and names follow mlx/backend/metal/quantized.cpp; what the released library really does was read
from its machine code (test_kernel_facts.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from tests.virtual_metal.machine import NUMPY, TYPE_NAMES, Machine, scalar, to_mlx, to_numpy


@dataclass(frozen=True)
class Weights:
    """Packed weights of one layer, [N, K / pack], batch axes may come before; scales and biases in x's type."""

    packed: mx.array
    scales: mx.array
    biases: mx.array
    group: int
    bits: int

    @property
    def outputs(self) -> int:
        return self.packed.shape[-2]

    @property
    def inputs(self) -> int:
        return self.packed.shape[-1] * 32 // self.bits

    def kernel(self, kind: str, *rest: str) -> str:
        return "_".join(
            ["affine", kind, TYPE_NAMES[self.scales.dtype], "gs", str(self.group), "b", str(self.bits), *rest]
        )

    def buffers(self) -> dict[int, np.ndarray]:
        return {0: to_numpy(self.packed), 1: to_numpy(self.scales), 2: to_numpy(self.biases)}


def qmv(machine: Machine, x: mx.array, w: Weights) -> mx.array:
    """x [..., M, K], one product with all weights or, when those have batch axes, one per element of the batch.

    qmv_fast where K is a multiple of its block, else qmv. M is the grid's x axis: each row is a product of its own.
    """
    batch = np.broadcast_shapes(x.shape[:-2], w.packed.shape[:-2])
    rows = x.shape[-2]
    if w.packed.ndim == 2:  # the dispatch folds x's batch into the rows
        rows, batch = x.size // w.inputs, ()
    fast = w.inputs % (64 if w.bits == 1 else 2048 // w.bits) == 0
    count = int(np.prod(batch, dtype=int))
    partial = fast and w.outputs % 8 != 0
    name = w.kernel("qmv_fast" if fast else "qmv", f"batch_{int(count > 1)}", f"pr_{int(partial)}", "hgs_0", "r_4")
    y = np.zeros((count, rows, w.outputs), NUMPY[x.dtype])
    buffers = w.buffers() | {3: to_numpy(x), 4: y, 5: scalar(w.inputs), 6: scalar(w.outputs)}
    machine.apple(name, buffers | _strides(x, w, batch), (rows, -(-w.outputs // 8), count), (32, 2, 1))
    shape = (*x.shape[:-1], w.outputs) if not batch else (*batch, rows, w.outputs)
    return to_mlx(y.reshape(shape), x.dtype)


def qmv_quad(machine: Machine, x: mx.array, w: Weights) -> mx.array:
    """K of 64 or 128."""
    rows = x.size // w.inputs
    y = np.zeros((rows, w.outputs), NUMPY[x.dtype])
    buffers = w.buffers() | {3: to_numpy(x), 4: y, 5: scalar(w.inputs), 6: scalar(w.outputs)}
    name = w.kernel("qmv_quad", "d", str(w.inputs), "batch_0")
    machine.apple(name, buffers | _strides(x, w, ()), (rows, -(-w.outputs // 64), 1), (32, 1, 1))
    return to_mlx(y.reshape(*x.shape[:-1], w.outputs), x.dtype)


def qmv_wide(machine: Machine, x: mx.array, w: Weights) -> mx.array:
    """Up to five rows share one pass over the weights; more rows are cut into as few tiles as possible."""
    rows = x.size // w.inputs
    tile = -(-rows // -(-rows // 5))
    y = np.zeros((rows, w.outputs), NUMPY[x.dtype])
    buffers = w.buffers() | {3: to_numpy(x), 4: y, 5: scalar(w.inputs), 6: scalar(w.outputs), 7: scalar(rows)}
    buffers |= {index + 1: array for index, array in _strides(x, w, ()).items()}
    name = w.kernel("qmv_wide", "nv", str(tile), "kl", "8", "batch_0")
    machine.apple(name, buffers, (-(-rows // tile), -(-w.outputs // 8), 1), (32, 2, 1))
    return to_mlx(y.reshape(*x.shape[:-1], w.outputs), x.dtype)


def gather_qmv(machine: Machine, x: mx.array, w: Weights, chosen: mx.array) -> mx.array:
    """x [B, 1, K], weights [E, N, K / pack], chosen [B]: each row with the weights it chose."""
    rows = x.shape[0]
    fast = w.inputs % (2048 // w.bits) == 0 and w.outputs % 8 == 0
    y = np.zeros((rows, 1, w.outputs), NUMPY[x.dtype])
    lhs, one = np.arange(rows, dtype=np.uint32), np.array([1], np.int64)
    buffers = w.buffers() | {
        3: to_numpy(x), 4: lhs, 5: to_numpy(chosen.astype(mx.uint32)), 6: y, 7: scalar(w.inputs), 8: scalar(w.outputs),
        17: scalar(1), 18: scalar(rows), 19: one, 20: one,
    }  # fmt: skip
    buffers |= {index + 2: array for index, array in _strides(x, w, (rows,)).items()}
    name = w.kernel("gather_qmv_fast" if fast else "gather_qmv")
    machine.apple(name, buffers, (1, -(-w.outputs // 8), rows), (32, 2, 1))
    return to_mlx(y, x.dtype)


def _strides(x: mx.array, w: Weights, batch: tuple[int, ...]) -> dict[int, np.ndarray]:
    """Shapes and strides of the batch axes, broadcast axes with stride 0; x_shape ends with the rows."""

    def steps(array: mx.array) -> np.ndarray:
        own = array.shape[:-2]
        own = (1,) * (len(batch) - len(own)) + own
        out, step = [], array.shape[-1] * array.shape[-2]
        for size in reversed(own):
            out.append(0 if size == 1 else step)
            step *= size
        return np.array(out[::-1] or [0], np.int64)

    shape = np.array([*batch, x.shape[-2], x.shape[-1]], np.int32)
    own = np.array(w.packed.shape[:-2] or (1,), np.int32)
    if not batch:
        return {i: np.zeros(4, np.int64) for i in (7, 8, 9, 10, 11, 12, 13, 14)}
    gathers = w.packed.ndim == 3 and x.ndim == 3 and w.packed.shape[0] != batch[0]
    over = own if gathers else np.array(batch, np.int32)
    return {
        7: scalar(len(batch)), 8: shape, 9: steps(x), 10: scalar(len(over)), 11: over,
        12: steps(w.packed), 13: steps(w.scales), 14: steps(w.biases),
    }  # fmt: skip
