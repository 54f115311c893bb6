"""Which Metal kernel MLX would choose for a quantized product, as a table.

Reproduces the dispatch of `quantized_matmul(transpose=True)` in MLX's mlx/backend/metal/quantized.cpp for the
versions in VERSIONS (reference mtp.md 3.1). It runs anywhere: tests walk every Qwen3.5 shape over every GPU
generation, and on a Mac the ladder asks it before it trusts a probe, because in 16 bit a wrong kernel can
give the right bytes by luck.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

VERSIONS = ((0, 32, 0), (0, 33, 0))
"""MLX versions (from, below) whose dispatch this module reproduces. Outside, routing knows nothing."""

QUAD_INPUTS = (64, 128)
"""Input sizes that have a kernel of their own, whatever the number of rows."""

SORTED_PAIRS = 64
"""(row, expert) pairs from which on mlx-lm's `SwitchGLU` sorts them; MLX may then take a matrix kernel for them."""


class Kernel(StrEnum):
    """The kernels of a transposed quantized product."""

    QMV = "qmv"
    QMV_FAST = "qmv_fast"
    QMV_QUAD = "qmv_quad"
    QMV_WIDE = "qmv_wide"  # reads a weight group once for several rows, and sums in another lane order
    QMM = "qmm"  # tiles; sums in blocks of K


@dataclass(frozen=True, slots=True)
class Gpu:
    """An Apple GPU. generation: 13 (M1) to 17 (M5). size: g base, s Max, d Ultra, as in applegpu_g16s."""

    generation: int
    size: str

    @classmethod
    def parse(cls, architecture: str) -> Gpu | None:
        """From `mx.device_info()["architecture"]`, None for anything that is not an Apple GPU."""
        found = re.fullmatch(r"applegpu_g(\d\d)([a-z])", architecture)
        return cls(int(found[1]), found[2]) if found else None

    @property
    def ultra(self) -> bool:
        return self.size == "d"


ALL_GPUS = tuple(Gpu(generation, size) for generation in range(13, 18) for size in "gsd")


class Weights(NamedTuple):
    """Of a quantized layer, as far as the dispatch looks. inputs, outputs: K and N."""

    inputs: int
    outputs: int
    mode: str = "affine"
    bits: int = 4

    def __str__(self) -> str:
        return f"{self.inputs} x {self.outputs}"


@dataclass(frozen=True, slots=True)
class Product:
    """One call. rows: x.shape[-2] as the dispatch sees it. inputs, outputs: K and N of the weights.

    batched: the weights have a batch axis, so each of its elements is a product of its own. bits: of a packed weight.
    """

    rows: int
    inputs: int
    outputs: int
    mode: str = "affine"
    batched: bool = False
    bits: int = 4


def known(version: str) -> bool:
    """Whether the dispatch of this MLX version is the one reproduced here."""
    parts = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    return VERSIONS[0] <= parts < VERSIONS[1]


def batch_limit(gpu: Gpu, inputs: int, outputs: int) -> int:
    """Rows from which on the tile kernel is used."""
    if gpu.ultra:
        limits = (32, 18, 12)
    elif gpu.generation <= 14:
        limits = (14, 10, 6)
    elif gpu.generation <= 16:
        limits = (13, 15, 13)
    else:
        limits = (33, 25, 13)
    larger = max(inputs, outputs)
    return limits[0] if larger <= 2048 else limits[1] if larger <= 4096 else limits[2]


def route(gpu: Gpu, product: Product) -> Kernel:
    """The kernel that computes a product. Batched or not, the choice is the same; only the name gets a flag."""
    if product.rows >= batch_limit(gpu, product.inputs, product.outputs):
        return Kernel.QMM
    if product.inputs in QUAD_INPUTS and product.bits & (product.bits - 1) == 0:
        return Kernel.QMV_QUAD
    if product.rows >= 2 and (product.mode != "affine" or gpu.generation >= 15):
        return Kernel.QMV_WIDE
    return Kernel.QMV_FAST if product.inputs % fast_block(product.bits) == 0 else Kernel.QMV


def fast_block(bits: int) -> int:
    """Values of K that qmv_fast's 32 lanes take at a time; it is chosen where K is a multiple. Two packs a lane.

    Read from the machine code of MLX 0.32.4's library. Outputs need not be a multiple of 8: it has a form for those.
    """
    pack = {3: 8, 5: 8, 6: 4}.get(bits, 32 // bits)
    return 32 * pack * (1 if bits == 2 else 2)


def decode_kernel(gpu: Gpu, weights: Weights) -> Kernel:
    """What a classic decode step, one row, uses."""
    return block_kernel(gpu, weights, 1)


def block_kernel(gpu: Gpu, weights: Weights, rows: int) -> Kernel:
    """What a plain block of `rows` uses."""
    return route(gpu, Product(rows, weights.inputs, weights.outputs, weights.mode, bits=weights.bits))


def stock_is_decode(gpu: Gpu, weights: Weights, rows: int) -> bool:
    """Whether a plain block of `rows` takes the kernel of one row."""
    return block_kernel(gpu, weights, rows) is decode_kernel(gpu, weights)


def table(gpu: Gpu, shapes: Iterable[Weights], widths: Sequence[int]) -> list[tuple[str, ...]]:
    """For people: per shape the kernel of one row and of each width, stock and forced.

    The last column is what every (chunk, row) pair of forced qmv takes; "row by row" where it has no view.
    """
    rows = []
    for weights in sorted(shapes):
        blocks = [str(block_kernel(gpu, weights, width)) for width in widths]
        chunked = Product(1, weights.inputs, 8, batched=True, bits=weights.bits)
        fits = weights.outputs % 8 == 0 and weights.mode == "affine"
        forced = str(route(gpu, chunked)) if fits else "row by row"
        label = f"{weights}, {weights.bits} bit"
        rows.append((label, str(decode_kernel(gpu, weights)), *blocks, forced))
    return rows
