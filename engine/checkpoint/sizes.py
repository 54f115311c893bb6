"""How many bytes a checkpoint's language model takes in memory, from its headers alone; no weight is loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.checkpoint import fp8
from engine.checkpoint.safetensors_header import TensorEntry

PACKED = "U32"
_COMPANIONS = (".scales", ".biases", fp8.SCALE)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of the tensors that are loaded.

    parameters: what they stand for, packed or not. packed: how many of these lie packed. packed_bytes: the packed
    matrices. companions: entries of scales and biases. stored: bytes in memory when nothing is converted; fp8
    becomes bfloat16.
    """

    parameters: int
    packed: int
    packed_bytes: int
    companions: int
    stored: int

    @property
    def quantized(self) -> bool:
        return self.packed > 0

    @property
    def dense_bf16(self) -> int:
        return 2 * self.parameters

    @property
    def dense_float32(self) -> int:
        return 4 * self.parameters

    @property
    def float32(self) -> int:
        """Packed matrices stay packed, everything else becomes float32."""
        return self.packed_bytes + 4 * self.companions + 4 * (self.parameters - self.packed)


def sizes(tensors: Mapping[str, TensorEntry], quantization: Mapping[str, Any] | None) -> Sizes:
    """Of all the given tensors. quantization: the configuration's block, see `Checkpoint.quantization`."""
    parameters = packed = packed_bytes = companions = stored = 0
    for name, entry in tensors.items():
        size = math.prod(entry.shape)
        if name.endswith(_COMPANIONS):
            if not name.endswith(fp8.SCALE):
                companions += size
                stored += entry.nbytes
            continue
        stem = name.removesuffix(".weight")
        if entry.dtype == PACKED and f"{stem}.scales" in tensors:
            size = size * 32 // _bits(stem, quantization or {})
            packed += size
            packed_bytes += entry.nbytes
        stored += 2 * size if entry.dtype == fp8.DTYPE else entry.nbytes
        parameters += size
    return Sizes(parameters, packed, packed_bytes, companions, stored)


def _bits(stem: str, block: Mapping[str, Any]) -> int:
    own = block.get(stem)
    return int((own if isinstance(own, dict) else block).get("bits", 4))
