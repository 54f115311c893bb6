"""One `gather_qmm` whose every row gathers the same weights: rows become batch elements with M = 1.

On Metal that is gather_qmv(_fast), which has one row's arithmetic except where one row takes a kernel that gathering
does not have: 64 or 128 inputs, or outputs that are no multiple of 8 (found by running MLX 0.32.4's kernels on a CPU).
Such layers go one row at a time, and so do modes other than affine, whose kernels were not compared.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from engine.exactness.kernels.one_row import OneRow
from engine.exactness.routing import QUAD_INPUTS


class Gather:
    name = "gather"
    cost_note = "one launch, weights read once per row"

    def __init__(self) -> None:
        self._rows = OneRow()

    def linear(self, module: Any, x: mx.array) -> mx.array:
        if not isinstance(module, nn.QuantizedLinear | nn.QuantizedEmbedding) or module.mode != "affine":
            return self._rows.linear(module, x)
        if x.shape[-1] in QUAD_INPUTS or module.weight.shape[0] % 8:
            return self._rows.linear(module, x)
        flat = x.reshape(-1, 1, x.shape[-1])
        biases = module.get("biases")
        y = mx.gather_qmm(
            flat,
            module.weight[None],
            module.scales[None],
            biases[None] if biases is not None else None,
            rhs_indices=mx.zeros(flat.shape[0], dtype=mx.uint32),
            transpose=True,
            group_size=module.group_size,
            bits=module.bits,
        )
        y = y.reshape(*x.shape[:-1], y.shape[-1])
        return y + module.bias if "bias" in module else y

    def experts(self, module: Any, x: mx.array, indices: mx.array) -> mx.array:
        return self._rows.experts(module, x, indices)
