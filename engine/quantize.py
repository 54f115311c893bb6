"""Drafter quantization: one function, called at load and by the offline converter.

It cannot change the text: the drafter only proposes. It changes how many bytes each drafted token reads.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx

_SHARED = (".mlp.gate.", ".mlp.shared_expert_gate.", ".mlp.shared_expert.")
_SHARED_BITS = 8
"""Router and shared expert serve every token and are small: they stay dense, or at 8 bit where a scheme names them."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """An affine quantization scheme. Defaults are what MLX checkpoints mean when they are silent."""

    group_size: int = 64
    bits: int = 4
    mode: str = "affine"

    def __post_init__(self) -> None:
        if self.group_size < 1 or not 1 <= self.bits <= 16:
            raise ValueError(f"there is no quantization at {self}")

    @classmethod
    def from_block(cls, block: Mapping[str, Any] | None) -> Scheme:
        """From a config's quantization block. Keys that are absent take the defaults.

        Raises:
            TypeError, ValueError, OverflowError: a value is no number, or none that can be.
        """
        block = block or {}
        return cls(int(block.get("group_size", 64)), int(block.get("bits", 4)), str(block.get("mode", "affine")))

    def nbytes(self, size: int, itemsize: int = 2) -> int:
        """Of a matrix of so many entries, with scales and biases of `itemsize` bytes."""
        return size * self.bits // 8 + 2 * itemsize * size // self.group_size

    def as_block(self) -> dict[str, Any]:
        return {"group_size": self.group_size, "bits": self.bits, "mode": self.mode}

    def __str__(self) -> str:
        return f"{self.bits}-bit group {self.group_size}"


@dataclass(frozen=True)
class Plan:
    """Which scheme each projection gets: `named` ones their own (None: stays dense), all others the default."""

    default: Scheme = Scheme()
    named: Mapping[str, Scheme | None] = field(default_factory=dict)

    @classmethod
    def from_block(cls, block: Mapping[str, Any] | None, prefix: str = "") -> Plan:
        """From a config's quantization block, whose entries for single projections carry `prefix`."""
        named: dict[str, Scheme | None] = {}
        for name, own in (block or {}).items():
            if name.startswith(prefix) and (isinstance(own, dict) or own is False):
                named[name.removeprefix(prefix)] = Scheme.from_block(own) if isinstance(own, dict) else None
        return cls(Scheme.from_block(block), named)

    def of(self, projection: str) -> Scheme | None:
        """None: it stays dense, see `why_dense`."""
        scheme = self.named.get(projection, self.default)
        if scheme is None or not _is_shared(projection):
            return scheme
        return scheme if projection in self.named and scheme.bits >= _SHARED_BITS else None

    def why_dense(self, projection: str) -> str:
        """The reason where `of` gives None."""
        if projection in self.named and self.named[projection] is None:
            return "the scheme keeps it dense"
        return "router and shared expert keep their precision"


def _is_shared(projection: str) -> bool:
    return any(part in f".{projection}." for part in _SHARED)


def scheme_of(name: str, shape: Sequence[int], names: Container[str], plan: Plan) -> tuple[Scheme | None, str]:
    """How a dense tensor is to be quantized. The one rule; all who count or quantize ask it.

    Args:
        name: with `.weight` where it is the matrix of a projection.
        names: all of the head's, which tell packed projections.

    Returns:
        The scheme and "", or None and why a matrix stays as it is; None and "" for what is no matrix.
    """
    projection = name.removesuffix(".weight")
    if projection == name or len(shape) < 2:
        return None, ""
    if f"{projection}.scales" in names:
        return None, "already quantized in the checkpoint"
    if (scheme := plan.of(projection)) is None:
        return None, plan.why_dense(projection)
    if shape[-1] % scheme.group_size:
        return None, f"its {shape[-1]} inputs are no multiple of the group size {scheme.group_size}"
    return scheme, ""


def quantized_nbytes(weights: Mapping[str, mx.array], plan: Plan) -> int:
    """Bytes that `quantize_weights` would leave, without doing it. 16-bit scales and biases."""
    total = 0
    for name, weight in weights.items():
        scheme, _ = scheme_of(name, weight.shape, weights, plan)
        total += weight.nbytes if scheme is None else scheme.nbytes(weight.size)
    return total


@dataclass(frozen=True)
class Quantized:
    """Result of `quantize_weights`. skipped: (projection, reason) of matrices that stay as they were."""

    weights: dict[str, mx.array]
    skipped: tuple[tuple[str, str], ...]


def quantize_weights(weights: Mapping[str, mx.array], plan: Plan) -> Quantized:
    """Quantize every matrix, except packed ones and those whose last axis the group does not divide.

    Must run before any change of dtype: scales and biases take the dtype of the weights they come from.

    Args:
        weights: tensors by name. Matrices are `.weight`s of [out, in], or [experts, out, in].
        plan: which scheme each gets.

    Raises:
        ValueError: a mode other than affine, or a group size or number of bits that MLX does not have.
    """
    out: dict[str, mx.array] = {}
    skipped: list[tuple[str, str]] = []
    for name, weight in weights.items():
        out[name], projection = weight, name.removesuffix(".weight")
        scheme, reason = scheme_of(name, weight.shape, weights, plan)
        if reason:
            skipped.append((projection, reason))
        if scheme is None:
            continue
        if scheme.mode != "affine":
            raise ValueError(f"a drafter cannot be quantized in mode {scheme.mode!r}, only affine ({projection})")
        packed, scales, biases = mx.quantize(weight, group_size=scheme.group_size, bits=scheme.bits)
        out[name], out[f"{projection}.scales"], out[f"{projection}.biases"] = packed, scales, biases
    return Quantized(out, tuple(skipped))
