"""Drafter quantization: one function, called at load and by the offline converter.

It cannot change the text: the drafter only proposes. It changes how many bytes each drafted token reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Scheme:
    """An affine quantization scheme. Defaults are what MLX checkpoints mean when they are silent."""

    group_size: int = 64
    bits: int = 4
    mode: str = "affine"

    @classmethod
    def from_block(cls, block: Mapping[str, Any] | None) -> Scheme:
        """From a config's quantization block. Keys that are absent take the defaults."""
        block = block or {}
        return cls(int(block.get("group_size", 64)), int(block.get("bits", 4)), str(block.get("mode", "affine")))

    def __str__(self) -> str:
        return f"{self.bits}-bit group {self.group_size}"


@dataclass(frozen=True)
class Quantized:
    """Result of `quantize_weights`. skipped: (tensor, reason) of 2-D weights that stay as they were."""

    weights: dict[str, mx.array]
    skipped: tuple[tuple[str, str], ...]


def quantize_weights(weights: Mapping[str, mx.array], scheme: Scheme) -> Quantized:
    """Quantize every 2-D `.weight`, except packed ones and those whose last axis the group does not divide.

    Must run before any change of dtype: scales and biases take the dtype of the weights they come from.

    Args:
        weights: tensors by name. 2-D weights are [out, in].
        scheme: group size and bits, affine.

    Raises:
        ValueError: a mode other than affine.
    """
    if scheme.mode != "affine":
        raise ValueError(f"a drafter cannot be quantized in mode {scheme.mode!r}, only affine")
    out: dict[str, mx.array] = {}
    skipped: list[tuple[str, str]] = []
    for name, weight in weights.items():
        stem = name.removesuffix(".weight")
        if not name.endswith(".weight") or weight.ndim != 2:
            out[name] = weight
        elif f"{stem}.scales" in weights:
            out[name] = weight
            skipped.append((stem, "already quantized in the checkpoint"))
        elif weight.shape[1] % scheme.group_size:
            out[name] = weight
            skipped.append(
                (stem, f"its {weight.shape[1]} inputs are no multiple of the group size {scheme.group_size}")
            )
        else:
            packed, scales, biases = mx.quantize(weight, group_size=scheme.group_size, bits=scheme.bits)
            out[name], out[f"{stem}.scales"], out[f"{stem}.biases"] = packed, scales, biases
    return Quantized(out, tuple(skipped))
