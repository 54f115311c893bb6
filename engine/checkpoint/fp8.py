"""Weights in fp8 with one scale per block, as Qwen publishes them: `x.weight` and `x.weight_scale_inv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mlx.core as mx

SCALE = "_scale_inv"
"""Behind the weight's full name. Despite its name it multiplies."""
DTYPE = "F8_E4M3"
BLOCK = (128, 128)
"""Rows and columns under one scale where the configuration does not say."""


def block_size(config: Mapping[str, Any]) -> tuple[int, int]:
    """`weight_block_size` of a checkpoint's fp8 block, at the top level or inside `text_config`.

    Raises:
        TypeError, ValueError, OverflowError: it is there and cannot be understood.
    """
    inner = config.get("text_config")
    for place in (config, inner if isinstance(inner, dict) else {}):
        block = place.get("quantization_config")
        if isinstance(block, dict) and block.get("quant_method") == "fp8":
            rows, columns = block.get("weight_block_size") or BLOCK
            if int(rows) < 1 or int(columns) < 1:
                raise ValueError(f"weight_block_size {[rows, columns]}")
            return int(rows), int(columns)
    return BLOCK


def scale_shape(shape: tuple[int, ...], block: tuple[int, int]) -> tuple[int, ...]:
    """Of the scales of a weight [..., out, in]; the last block of a row or column may be a part."""
    *lead, rows, columns = shape
    return (*lead, -(-rows // block[0]), -(-columns // block[1]))


def dequantize(weight: mx.array, scale: mx.array, block: tuple[int, int]) -> mx.array:
    """[..., out, in] uint8 (the bits of E4M3) -> bfloat16, each block times its scale, in float32 until the end."""
    rows, columns = weight.shape[-2:]
    spread = mx.repeat(mx.repeat(scale.astype(mx.float32), block[0], axis=-2), block[1], axis=-1)
    return (mx.from_fp8(weight, dtype=mx.float32) * spread[..., :rows, :columns]).astype(mx.bfloat16)


def dequantize_all(weights: Mapping[str, mx.array], block: tuple[int, int]) -> dict[str, mx.array]:
    """Every weight that has block scales, dequantized; the scales are gone. The others as they are."""
    return {
        name: dequantize(w, weights[name + SCALE], block) if name + SCALE in weights else w
        for name, w in weights.items()
        if not name.endswith(SCALE)
    }
