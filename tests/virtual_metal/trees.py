"""Expression trees of quantized products, MLX's and ours, compiled from source with floats that remember their past."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from tests.virtual_metal.machine import Machine, scalar, to_numpy
from tests.virtual_metal.products import Weights, strides
from tests.virtual_metal.source import TRACED, Contraction, MetalKernel, flags, leaves, mlx_source

X, SCALES, BIASES = 1, 2, 3
"""Labels of the leaves."""


def _inputs(x: mx.array, w: Weights) -> dict[int, np.ndarray]:
    """Buffers 0 to 3 of MLX's products."""
    return {
        0: to_numpy(w.packed), 1: leaves(to_numpy(w.scales), SCALES), 2: leaves(to_numpy(w.biases), BIASES),
        3: leaves(to_numpy(x), X),
    }  # fmt: skip


def _run(machine: Machine, instance: str, buffers: dict[int, np.ndarray], grid: Sequence[int]) -> None:
    entry = machine.built(mlx_source(instance), *flags(machine.store, Contraction.ON, traced=True))
    machine.dispatch(entry, buffers, grid, (32, 2, 1))


def one_row_trees(machine: Machine, x: mx.array, w: Weights) -> np.ndarray:
    """[M, N] trees of plain qmv_fast, each row on its own."""
    out = np.zeros((x.shape[0], w.outputs), TRACED)
    inputs = _inputs(x, w)
    for j in range(x.shape[0]):
        y = np.zeros(w.outputs, TRACED)
        buffers = inputs | {3: inputs[3][j], 4: y, 5: scalar(w.inputs), 6: scalar(w.outputs)} | strides(x, w, ())
        partial = str(w.outputs % 8 != 0).lower()
        instance = f"affine_qmv_fast<float, {w.group}, {w.bits}, false, {partial}>"
        _run(machine, instance, buffers, (1, -(-w.outputs // 8), 1))
        out[j] = y
    return out["tree"]


def forced_trees(machine: Machine, x: mx.array, w: Weights, chunk: int) -> np.ndarray:
    """[M, N] trees of forced qmv's view: weights [N / c, 1, c, K], x [1, M, 1, K]."""
    cut = Weights(*(a.reshape(-1, 1, chunk, a.shape[-1]) for a in (w.packed, w.scales, w.biases)), w.group, w.bits)
    view = x.reshape(1, -1, 1, w.inputs)
    batch = (w.outputs // chunk, x.shape[0])
    y = np.zeros((*batch, 1, chunk), TRACED)
    buffers = _inputs(view, cut) | {4: y, 5: scalar(w.inputs), 6: scalar(chunk)} | strides(view, cut, batch)
    _run(machine, f"affine_qmv_fast<float, {w.group}, {w.bits}, true>", buffers, (1, chunk // 8, batch[0] * batch[1]))
    return y["tree"].transpose(1, 2, 0, 3).reshape(x.shape[0], w.outputs)


def gather_trees(machine: Machine, x: mx.array, w: Weights) -> np.ndarray:
    """[M, N] trees of gather_qmv_fast with all rows choosing the same weights."""
    rows = x.shape[0]
    one = Weights(w.packed[None], w.scales[None], w.biases[None], w.group, w.bits)
    each = x[:, None]
    y = np.zeros((rows, w.outputs), TRACED)
    inputs = _inputs(each, one) | {4: np.arange(rows, dtype=np.uint32), 5: np.zeros(rows, np.uint32), 6: y}
    inputs |= {7: scalar(w.inputs), 8: scalar(w.outputs)}
    inputs |= {17: scalar(1), 18: scalar(rows), 19: np.array([1], np.int64), 20: np.array([1], np.int64)}
    inputs |= {index + 2: array for index, array in strides(each, one, (rows,)).items()}
    _run(machine, f"affine_gather_qmv_fast<float, {w.group}, {w.bits}>", inputs, (1, -(-w.outputs // 8), rows))
    return y["tree"]


def rows_trees(
    machine: Machine, x: mx.array, w: Weights, *, source: str, header: str, tile: int, fused: bool
) -> np.ndarray:
    """[M, N] trees of a qmv_rows source."""
    kernel = MetalKernel(
        machine, Contraction.ON, name="traced", input_names=["w", "scales", "biases", "x"], output_names=["y"],
        source=source, header=header,
    )  # fmt: skip
    inputs = _inputs(x, w)
    arrays = [inputs[i] for i in range(4)]
    y = np.zeros((x.shape[0], w.outputs), TRACED)
    shapes = [np.array(a.shape, np.int32) for a in arrays]
    template = [("T", mx.float32), ("BITS", w.bits), ("GROUP", w.group), ("ROWS", tile), ("FUSED", fused)]
    kinds = ["uint", "float", "float", "float"]
    entry, buffers = kernel.prepare(arrays, shapes, [y], kinds, ["float"], template, traced=True)
    machine.dispatch(entry, buffers, (-(-x.shape[0] // tile), -(-w.outputs // 8), 1), (32, 2, 1))
    return y["tree"]
