"""Row norms, rotary embeddings and vector attention of a virtual Mac, through Apple's compiled kernels.

Names, arguments and grids follow mlx/backend/metal (normalization.cpp, rope.cpp, scaled_dot_product_attention.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import mlx.core as mx
import numpy as np

from engine.exactness.routing import Gpu
from tests.virtual_metal.machine import NUMPY, TYPE_NAMES, Machine, scalar, to_mlx, to_numpy

NORM_READS, NORM_LIMIT = 4, 4096
"""Values a thread of the row norm reads at once; rows longer than the limit are walked in a loop."""
HEADS_PER_THREAD = 4
VECTOR_HEADS = (64, 96, 128, 256)
"""Head sizes that the vector attention kernels have and the whole family stays within."""


class RowKernels:
    """host: MLX's own functions. count: told the name of each kernel that runs."""

    def __init__(
        self, machine: Machine, gpu: Gpu, host: Mapping[str, Any], count: Callable[[str, int], object]
    ) -> None:
        self.machine, self.gpu, self.host, self.count = machine, gpu, host, count

    def rms_norm(self, x: mx.array, weight: mx.array | None, eps: float, *, stream: Any = None) -> mx.array:
        """One threadgroup per row."""
        size = x.shape[-1]
        if x.dtype not in TYPE_NAMES:
            return self.host["rms_norm"](x, weight, eps)
        w = mx.ones(1) if weight is None else weight
        y = np.zeros(x.shape, NUMPY[x.dtype])
        looped = size > NORM_LIMIT
        threads = 1024 if looped else 32 * -(-size // (32 * NORM_READS))
        name = f"rms_looped{_plain(x)}" if looped else f"rms{_plain(x)}"
        buffers = {
            0: to_numpy(x), 1: to_numpy(w.astype(x.dtype)), 2: y, 3: scalar(eps, np.float32), 4: scalar(size),
            5: scalar(0 if weight is None else 1),
        }  # fmt: skip
        self.count(name, 0)
        self.machine.apple(name, buffers, (x.size // size, 1, 1), (threads, 1, 1))
        return to_mlx(y, x.dtype)

    def rope(
        self,
        a: mx.array,
        dims: int,
        *,
        traditional: bool,
        base: float | None,
        scale: float,
        offset: int | mx.array,
        freqs: mx.array | None = None,
        stream: Any = None,
    ) -> mx.array:
        """[1, heads, rows, D]: a kernel of its own for one row, another for more."""
        if a.ndim != 4 or a.shape[0] != 1 or base is None or freqs is not None or not isinstance(offset, int):
            raise NotImplementedError("the virtual Mac rotates one sequence by a base and a number only")
        _, heads, rows, size = a.shape
        out = to_numpy(a)  # partial rotation works in place on a copy
        constants = {1: 1, 2: int(traditional), 3: 0}
        buffers = {0: out, 1: out, 2: scalar(offset), 3: scalar(scale, np.float32)}
        buffers[10] = scalar(math.log2(base), np.float32)
        if rows == 1:
            name = f"rope_single_{_plain(a)}"
            buffers[4] = scalar(size, np.int64)
            group, grid = (dims // 2, 1, 1), (1, heads, 1)
        else:
            name = f"rope_{_plain(a)}"
            strides = np.array([rows * size, size, 1], np.int64)
            buffers |= {4: strides, 5: strides, 6: scalar(0, np.int64), 7: scalar(heads)}
            group, grid = (dims // 2, 1, 1), (1, rows, -(-heads // HEADS_PER_THREAD))
        self.count(name, 0)
        self.machine.apple(name, buffers, grid, group, constants)
        return to_mlx(out, a.dtype)

    def attention(
        self,
        q: mx.array,
        k: mx.array,
        v: mx.array,
        *,
        scale: float,
        mask: Any = None,
        sinks: Any = None,
        stream: Any = None,
    ) -> mx.array:
        """Up to 8 query rows of supported head sizes: one pass, or two where the keys are many. Else the host."""
        heads, rows, size = q.shape[1:]
        shared = heads // k.shape[1]
        vector = rows <= 8 and size in VECTOR_HEADS and rows <= k.shape[2] and rows * shared <= 32
        if not vector or mask not in (None, "causal") or sinks is not None or q.shape[0] != 1:
            return self.host["scaled_dot_product_attention"](q, k, v, scale=scale, mask=mask, sinks=sinks)
        causal = int(mask == "causal" and rows > 1)
        keys = k.shape[2]
        large = self.gpu.size in "sd"
        two = (large and keys >= 1024) or (shared > 1 and keys >= 4096)
        return self._two_pass(q, k, v, scale, causal) if two else self._one_pass(q, k, v, scale, causal)

    def _one_pass(self, q: mx.array, k: mx.array, v: mx.array, scale: float, causal: int) -> mx.array:
        heads, rows, size = q.shape[1:]
        out = np.zeros(q.shape, NUMPY[q.dtype])
        name = f"sdpa_vector_{TYPE_NAMES[q.dtype]}_{size}_{size}"
        strides = [scalar(n, np.int64) for n in (k.shape[2] * size, size)]
        buffers = {0: to_numpy(q), 1: to_numpy(k), 2: to_numpy(v), 3: out, 4: scalar(heads // k.shape[1])}
        buffers |= {5: scalar(k.shape[2]), 6: strides[0], 7: strides[1], 8: strides[0], 9: strides[1]}
        buffers[10] = scalar(scale, np.float32)
        self.count(name, 0)
        self.machine.apple(name, buffers, (heads, rows, 1), (1024, 1, 1), {22: causal})
        return to_mlx(out, q.dtype)

    def _two_pass(self, q: mx.array, k: mx.array, v: mx.array, scale: float, causal: int) -> mx.array:
        heads, rows, size = q.shape[1:]
        shared, keys = heads // k.shape[1], k.shape[2]
        blocks = split_count(self.gpu, shared * rows, keys)
        name = f"sdpa_vector_2pass_1_{TYPE_NAMES[q.dtype]}_{size}_{size}"
        parts = np.zeros((heads, rows, blocks, size), NUMPY[q.dtype])
        sums, most = (np.zeros((heads, rows, blocks), np.float32) for _ in range(2))
        strides = [scalar(n, np.int64) for n in (keys * size, size)]
        buffers = {0: to_numpy(q), 1: to_numpy(k), 2: to_numpy(v), 3: parts, 4: sums, 5: most, 7: scalar(keys)}
        buffers |= {8: strides[0], 9: strides[1], 10: strides[0], 11: strides[1], 12: scalar(scale, np.float32)}
        self.count(name, 0)
        self.machine.apple(name, buffers, (k.shape[1], 1, blocks), (32, shared, rows), {22: causal, 26: blocks})
        out = np.zeros(q.shape, NUMPY[q.dtype])
        second = f"sdpa_vector_2pass_2_{TYPE_NAMES[q.dtype]}_{size}"
        self.count(second, 0)
        buffers = {0: parts, 1: sums, 2: most, 3: out, 4: scalar(blocks)}
        self.machine.apple(second, buffers, (heads, rows, 1), (1024, 1, 1))
        return to_mlx(out, q.dtype)


def split_count(gpu: Gpu, simdgroups: int, keys: int) -> int:
    """Blocks into which two-pass attention cuts the keys. simdgroups: query rows times query heads per key head."""
    if gpu.size == "s":
        if keys <= 1024 or simdgroups <= 4:
            return 64
        return 128 if keys <= 8192 else 256 if keys <= 32768 else 512 if keys <= 65536 else 1024
    if gpu.ultra:
        if simdgroups <= 2:
            return 256 if keys > 8192 else 128
        if simdgroups >= 6:
            return 1024 if keys >= 65536 else 512 if keys >= 16384 else 128
        return 128
    return 64 if simdgroups >= 4 else 32


def _plain(a: mx.array) -> str:
    return str(a.dtype).removeprefix("mlx.core.")
