"""Forced qmv with the stock wheel: every (weight chunk, row) pair becomes a one-row product.

MLX's dispatch reads the number of rows from x.shape[-2] when the weights are not 2-D. Given

    w [out, in / pack] -> [out / c, 1, c, in / pack]      x [K, in] -> [1, K, 1, in]

`quantized_matmul` broadcasts to [out / c, K, 1, c], and each element is a plain one-row qmv or qmv_fast with
a batch flag that only moves pointers: the very reduction of a decode step, so equal bytes by construction.
The row index varies faster than the chunk index, so the K passes over one chunk of c weight rows are
neighbours in the grid and find it in cache. Reference mtp.md 3.2.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from engine.exactness.kernels.one_row import OneRow

CHUNKS = (64, 32, 128, 16, 256, 8)
"""Chunk sizes c, in the order they are tried when none was tuned. Multiples of 8: qmv's rows per threadgroup."""


def fitting_chunk(outputs: int, wanted: int) -> int | None:
    """The wanted chunk if it divides the outputs, else the largest power of two below it that does (8 or more)."""
    c = wanted
    while c >= 8:
        if outputs % c == 0:
            return c
        c //= 2
    return None


class ForcedQmv:
    """chunk: c above, tuned at load."""

    name = "forced_qmv"
    cost_note = "one launch, weights read once per row from cache"

    def __init__(self, chunk: int = CHUNKS[0]) -> None:
        if chunk % 8:
            raise ValueError("chunk must be a multiple of 8")
        self.chunk = chunk
        self._rows = OneRow()

    def linear(self, module: Any, x: mx.array) -> mx.array:
        if not isinstance(module, nn.QuantizedLinear | nn.QuantizedEmbedding) or module.mode != "affine":
            # Dense layers have no such view; other modes take another tile on newer chips (reference 3.2).
            return self._rows.linear(module, x)
        outputs = module.weight.shape[0]
        chunk = fitting_chunk(outputs, self.chunk)
        if chunk is None:
            return self._rows.linear(module, x)

        def view(a: mx.array) -> mx.array:
            return a.reshape(outputs // chunk, 1, chunk, a.shape[-1])

        flat = x.reshape(1, -1, 1, x.shape[-1])
        biases = module.get("biases")
        y = mx.quantized_matmul(
            flat,
            view(module.weight),
            view(module.scales),
            view(biases) if biases is not None else None,
            transpose=True,
            group_size=module.group_size,
            bits=module.bits,
        )
        y = y.transpose(1, 2, 0, 3).reshape(*x.shape[:-1], outputs)
        return y + module.bias if "bias" in module else y

    def experts(self, module: Any, x: mx.array, indices: mx.array) -> mx.array:
        # gather_qmm already gives each (token, expert) pair M = 1; only its sorting depends on the block.
        return self._rows.experts(module, x, indices)
