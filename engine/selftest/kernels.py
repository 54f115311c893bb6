"""Which module of a loaded target gets which kernel in a verify block: the outcome of the ladder, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import mlx.nn as nn
from mlx_lm.models.switch_layers import SwitchGLU

from engine.exactness import ladder, routing
from engine.exactness.kernels import ForcedQmv, Gather, MatmulKernel, OneRow, QmvRows, Stock, qmv_rows
from engine.exactness.kernels.forced_qmv import fitting_chunk
from engine.tables import table
from engine.target import Target

HEADER = ("module", "how many", "inputs x outputs", "kernel in a verify block")
WIDTHS = range(2, 6)


def assignments(target: Target, *, speculates: bool) -> list[tuple[str, str, str, str]]:
    """A row per kind of module, with the columns of HEADER. Modules of one kind have the same name in every layer."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for name, module in products(target):
        kind = ".".join(part for part in name.split(".")[-2:] if not part.isdigit())
        counts[
            kind, _weights(module), kernel_of(target.scope.kernel, module) if speculates else "none: classic decode"
        ] += 1
    return [(kind, str(n), weights, kernel) for (kind, weights, kernel), n in counts.items()]


def attention(target: Target) -> str:
    """How a block's queries attend, in words."""
    limit = target.scope.block_limit
    if not limit:
        return "attention: the rows of a block one at a time"
    return f"attention: a block at once up to {limit} keys, beyond that its rows one at a time"


def dispatch(architecture: str, target: Target) -> list[str]:
    """MLX's own choice for this model's quantized products on a GPU, as a table; or why there is none."""
    gpu = routing.Gpu.parse(architecture)
    if gpu is None:
        return [f"routing: no table for {architecture}: it is no Apple GPU, the probe alone decides"]
    shapes = ladder.linear_shapes(target)
    if not shapes:
        return ["routing: the weights are unpacked here, so there are no quantized products to route"]
    header = ("inputs x outputs", "1 row", *(f"{w} rows" for w in WIDTHS), "forced qmv")
    rows = table(header, routing.table(gpu, shapes, WIDTHS))
    return [f"routing of quantized products on {architecture}:", *rows]


def products(target: Target) -> Iterator[tuple[str, Any]]:
    """Named modules that a verify forward multiplies with; of experts the whole, not its parts."""
    tied = target.model.language_model.args.tie_word_embeddings
    for name, module in target.model.named_modules():
        is_head = tied and isinstance(module, nn.Embedding | nn.QuantizedEmbedding)
        if is_head or isinstance(module, nn.Linear | nn.QuantizedLinear | SwitchGLU):
            yield name, module


def _weights(module: Any) -> str:
    if isinstance(module, SwitchGLU):
        return "experts"
    outputs, inputs = module.weight.shape
    if "scales" in module:
        return f"{inputs * 32 // module.bits} x {outputs}, {module.bits} bit"
    return f"{inputs} x {outputs}, {str(module.weight.dtype).removeprefix('mlx.core.')}"


def kernel_of(kernel: MatmulKernel | None, module: Any) -> str:
    """The name of what a block of several rows runs through, where `kernel` is engaged.

    Each kernel leaves the modules that it has no view of to another one; a test compares this with what they do.
    """
    if kernel is None:
        return Stock.name
    if isinstance(kernel, QmvRows):
        if qmv_rows.shape_of(module) in kernel.served:
            return kernel.name
        kernel = ForcedQmv(kernel.chunk)
    if not isinstance(kernel, ForcedQmv | Gather):
        return kernel.name
    if not isinstance(module, nn.QuantizedLinear | nn.QuantizedEmbedding) or module.mode != "affine":
        return OneRow.name
    outputs, inputs = module.weight.shape[0], module.weight.shape[1] * 32 // module.bits
    if isinstance(kernel, ForcedQmv):
        fits = fitting_chunk(outputs, kernel.chunk) is not None
    else:
        fits = inputs not in routing.QUAD_INPUTS and outputs % 8 == 0
    return kernel.name if fits else OneRow.name
