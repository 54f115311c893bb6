"""Weights in fp8 with a scale per block, as files. MLX can compute them and save them as plain bytes only."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx

from engine.checkpoint import fp8

CONFIG = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}}
KEPT = ("fc.", "mlp.gate.", "shared_expert_gate", "lm_head", "embed", "conv1d")
"""What real checkpoints leave in 16 bit."""


def in_fp8(weights: dict[str, mx.array]) -> tuple[dict[str, mx.array], dict[str, mx.array]]:
    """(as stored, what it stands for): every matrix in E4M3 with one scale per block of 128 x 128."""
    stored, meant = {}, {}
    for name, w in weights.items():
        if w.ndim < 2 or any(part in name for part in KEPT):
            stored[name] = meant[name] = w
            continue
        rows, columns = w.shape[-2:]
        scale = mx.random.uniform(0.5, 2.0, fp8.scale_shape(w.shape, fp8.BLOCK)) / 64
        spread = mx.repeat(mx.repeat(scale, 128, axis=-2), 128, axis=-1)[..., :rows, :columns]
        bits = mx.to_fp8(w.astype(mx.float32) / spread)
        stored[name], stored[name + "_scale_inv"] = bits, scale
        meant[name] = (mx.from_fp8(bits, dtype=mx.float32) * spread).astype(mx.bfloat16)
    return stored, meant


def save(path: Path, weights: dict[str, mx.array]) -> None:
    """As safetensors, bytes declared as what they are."""
    mx.save_safetensors(str(path), weights)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + length].replace(b'"U8"', b'"F8_E4M3"')
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + length :])
