"""A cross-row verify kernel: the bytes of one-row products, the weights read once for up to five rows.

Forced qmv reads the weights once per row, if from cache; this reads them once. Both must give the bytes of a decode
step, and here nothing guarantees that by construction: a compiler may fuse or reorder what it likes (others met a build
with 174,072 wrong outputs of 174,080). So it serves a shape only after it gave, on this device and with the layer's own
weights, the bytes of one-row products in float32, where a wrong order shows (in 16 bit it rarely does), and only where
it measures faster than forced qmv. Every other shape goes to forced qmv. Apple GPUs only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, cast

import mlx.core as mx
import mlx.nn as nn

from engine.errors import LoadCancelled
from engine.exactness.kernels.forced_qmv import ForcedQmv
from engine.exactness.kernels.qmv_rows_source import HEADER, SOURCE
from engine.timing import least_ms

TILE = 5
"""Rows that share one pass over the weights: 4 outputs x 5 rows of totals stay in a lane's registers."""
MOST_ROWS = 8
"""Block sizes end here (docs/adr/0001)."""
BITS = (4, 8)
GROUPS = (32, 64, 128)
K_STEP = 512
"""qmv_fast, whose arithmetic this has, is what one row takes when K is a multiple of it."""
DRAWS = 2
"""Inputs per number of rows that the self-check compares."""
TIMED_ROWS = 3


class Shape(NamedTuple):
    """What decides the arithmetic of a layer. inputs, outputs: K and N."""

    inputs: int
    outputs: int
    bits: int
    group: int

    def __str__(self) -> str:
        return f"{self.inputs} x {self.outputs} ({self.bits}-bit group {self.group})"


class Served(NamedTuple):
    """A shape and the form of the source that serves it: fused has explicit fma."""

    inputs: int
    outputs: int
    bits: int
    group: int
    fused: bool

    @property
    def shape(self) -> Shape:
        return Shape(*self[:4])


@dataclass(frozen=True)
class Survey:
    """What `survey` found. note: why shapes are not served, for the verdict; "" when all are."""

    served: tuple[Served, ...]
    note: str


def shape_of(module: Any) -> Shape | None:
    """The shape of a quantized layer, None for layers that this kernel does not know."""
    if not isinstance(module, nn.QuantizedLinear | nn.QuantizedEmbedding) or module.mode != "affine":
        return None
    inputs = module.weight.shape[-1] * 32 // module.bits
    known = module.bits in BITS and module.group_size in GROUPS and inputs % K_STEP == 0
    return Shape(inputs, module.weight.shape[0], module.bits, module.group_size) if known else None


@cache
def _kernel() -> Any:
    return mx.fast.metal_kernel(
        name="pacenote_qmv_rows",
        input_names=["w", "scales", "biases", "x"],
        output_names=["y"],
        source=SOURCE,
        header=HEADER,
    )


def product(
    x: mx.array, w: mx.array, scales: mx.array, biases: mx.array, *, bits: int, group: int, fused: bool
) -> mx.array:
    """[M, K] x [N, K / pack] -> [M, N], M up to 8, all of x, scales and biases in one type.

    Each row of the result is meant to have the bytes of `quantized_matmul` on that row alone: the caller checks.
    """
    rows, outputs = x.shape[0], w.shape[0]
    tiles = -(-rows // TILE)
    tile = -(-rows // tiles)
    (y,) = _kernel()(
        inputs=[w, scales, biases, x],
        template=[("T", x.dtype), ("BITS", bits), ("GROUP", group), ("ROWS", tile), ("FUSED", fused)],
        grid=(32 * tiles, 2 * -(-outputs // 8), 1),
        threadgroup=(32, 2, 1),
        output_shapes=[(rows, outputs)],
        output_dtypes=[x.dtype],
    )
    return y


class QmvRows:
    """served: the shapes that passed the self-check and are faster than forced qmv here. chunk: of forced qmv."""

    name = "qmv_rows"
    cost_note = "one launch, weights read once for up to five rows"

    def __init__(self, chunk: int, served: Iterable[Served]) -> None:
        self.chunk = chunk
        self.served: Mapping[Shape, Served] = {s.shape: s for s in served}
        self._forced = ForcedQmv(chunk)

    def linear(self, module: Any, x: mx.array) -> mx.array:
        shape = shape_of(module)
        served = self.served.get(shape) if shape else None
        rows = x.size // x.shape[-1]
        if served is None or rows > MOST_ROWS or x.dtype != module.scales.dtype:
            return self._forced.linear(module, x)
        flat = x.reshape(rows, x.shape[-1])
        y = product(
            flat, module.weight, module.scales, module.biases, bits=module.bits, group=module.group_size,
            fused=served.fused,
        )  # fmt: skip
        y = y.reshape(*x.shape[:-1], y.shape[-1])
        return y + module.bias if "bias" in module else y

    def experts(self, module: Any, x: mx.array, indices: mx.array) -> mx.array:
        return self._forced.experts(module, x, indices)


def gives_the_bytes_of_one_row(module: Any, shape: Shape, widths: Sequence[int], *, fused: bool) -> str:
    """Compare with one-row products of the layer's own weights, at every width. "" when all bytes agree.

    In float32, and in the layer's own type as well: that is another instance of the source.
    """
    for dtype in dict.fromkeys((mx.float32, module.scales.dtype)):
        w, scales, biases = module.weight, module.scales.astype(dtype), module.biases.astype(dtype)
        for width in widths:
            for draw in range(DRAWS):
                x = mx.random.normal((width, shape.inputs), key=mx.random.key(16 * width + draw)).astype(dtype)
                got = product(x, w, scales, biases, bits=shape.bits, group=shape.group, fused=fused)
                alone = [
                    mx.quantized_matmul(
                        x[j : j + 1], w, scales, biases, transpose=True, group_size=shape.group, bits=shape.bits
                    )
                    for j in range(width)
                ]
                bits = mx.uint32 if dtype.size == 4 else mx.uint16
                wrong = mx.sum(got.view(bits) != mx.concatenate(alone).view(bits))
                if count := cast(int, wrong.item()):
                    kind = str(dtype).removeprefix("mlx.core.")
                    return f"{count} of {got.size} values differ from one row's in {kind} at {width} rows"
    return ""


def _one_of_each(modules: Iterable[Any]) -> dict[Shape, Any]:
    """A layer of each shape that this kernel knows: the shape decides the arithmetic, not the weights."""
    layers: dict[Shape, Any] = {}
    for module in modules:
        if (shape := shape_of(module)) and module.scales.dtype == module.biases.dtype:
            layers.setdefault(shape, module)
    return layers


def survey(modules: Iterable[Any], widths: Sequence[int], chunk: int, cancel: threading.Event | None = None) -> Survey:
    """Which shapes this kernel may serve on this device, in which form, and why it does not serve the others.

    widths: numbers of rows it must be exact for. chunk: of the forced qmv it must beat.

    Raises:
        LoadCancelled: `cancel` was set between two shapes.
    """
    layers = _one_of_each(modules)
    if not layers:
        return Survey((), "qmv_rows: no layer has a shape that it knows.")
    served, reasons = [], []
    for shape, module in sorted(layers.items()):
        if cancel is not None and cancel.is_set():
            raise LoadCancelled
        found, why = _best(module, shape, [w for w in widths if w <= MOST_ROWS], chunk)
        if found:
            served.append(found)
        else:
            reasons.append(f"{shape}: {why}")
    left = f"qmv_rows leaves {len(reasons)} of {len(layers)} shapes to forced qmv: {'; '.join(reasons)}."
    return Survey(tuple(served), left if reasons else "")


def _best(module: Any, shape: Shape, widths: Sequence[int], chunk: int) -> tuple[Served | None, str]:
    """The fastest form that is exact and faster than forced qmv, or why there is none."""
    x = mx.random.normal((1, TIMED_ROWS, shape.inputs), key=mx.random.key(0)).astype(module.scales.dtype)
    exact: list[Served] = []
    reasons = []
    for fused in (False, True):
        candidate = Served(*shape, fused)
        form = "with explicit fma" if fused else "plain"
        try:
            difference = gives_the_bytes_of_one_row(module, shape, widths, fused=fused)
        except (RuntimeError, ValueError) as e:  # a source that this device's compiler refuses
            difference = str(e).splitlines()[0]
        if difference:
            reasons.append(f"{form}, {difference}")
        else:
            exact.append(candidate)
    if not exact:
        return None, " and ".join(reasons)
    kernels: list[QmvRows | ForcedQmv] = [*(QmvRows(chunk, [candidate]) for candidate in exact), ForcedQmv(chunk)]
    *times, forced = least_ms([partial(_run, kernel.linear, module, x) for kernel in kernels])
    if min(times) >= forced:
        return None, f"{min(times):.3f} ms for {TIMED_ROWS} rows, forced qmv takes {forced:.3f}"
    return exact[times.index(min(times))], ""


def _run(linear: Callable[[Any, mx.array], mx.array], module: Any, x: mx.array) -> None:
    mx.eval(linear(module, x))


def still_exact(modules: Iterable[Any], served: Iterable[Served], widths: Sequence[int]) -> bool:
    """Whether every served shape still passes the self-check: asked when a kept verdict is used again."""
    layers = _one_of_each(modules)
    try:
        return all(
            s.shape in layers and not gives_the_bytes_of_one_row(layers[s.shape], s.shape, widths, fused=s.fused)
            for s in served
        )
    except (RuntimeError, ValueError):
        return False
