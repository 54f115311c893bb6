"""The decision: which kernels a verify forward uses, at which widths, and why. Fails closed.

Rungs: stock, forced qmv, on Apple GPUs qmv_rows for the shapes it passed its self-check on, gather, one row at a
time; each first with block attention, then with one query row at a time. Stock is engaged as soon as it passes, since
nothing can be cheaper than no change; otherwise the exact candidate that measures fastest here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from time import perf_counter

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.switch_layers import SwitchGLU

from engine.arrays import token_array
from engine.backend import Device, mlx_version
from engine.events import ExactnessState, Verdict
from engine.exactness import routing
from engine.exactness.kernels import Attention, ForcedQmv, Gather, MatmulKernel, OneRow, QmvRows, Stock, qmv_rows
from engine.exactness.kernels.forced_qmv import CHUNKS
from engine.exactness.probe import ProbeResult, probe
from engine.target import Target
from engine.timing import least_ms

TIMED_WIDTH = 3
WIDTHS = tuple(range(2, qmv_rows.MOST_ROWS + 1))
"""All block sizes (docs/adr/0001)."""


@dataclass(frozen=True)
class Candidate:
    """A matmul kernel and a way to attend. name as in verdicts: "forced_qmv", "stock + one-row attention"."""

    kernel: MatmulKernel
    attention: Attention

    @property
    def name(self) -> str:
        return self.kernel.name + (" + one-row attention" if self.attention is Attention.ONE_ROW else "")


@dataclass(frozen=True)
class Engaged:
    """What the scope of a target is set to. block_limit: keys up to which a block may attend as a block.

    served: the shapes that qmv_rows computes; forced qmv computes the others.
    """

    kernel: str
    chunk: int
    block_limit: int
    served: tuple[qmv_rows.Served, ...] = ()

    def __post_init__(self) -> None:
        # A verdict kept as JSON comes back with lists.
        object.__setattr__(self, "served", tuple(qmv_rows.Served(*s) for s in self.served))


@dataclass(frozen=True)
class Decision:
    """A verdict, and the setting that goes with it (None: no speculation)."""

    verdict: Verdict
    engaged: Engaged | None


def linear_shapes(target: Target) -> set[routing.Weights]:
    """Of every quantized product of a verify forward, experts left out."""
    shapes = set()
    for module in target.modules():
        if isinstance(module, nn.QuantizedLinear | nn.QuantizedEmbedding):
            inputs = module.weight.shape[-1] * 32 // module.bits
            shapes.add(routing.Weights(inputs, module.weight.shape[0], module.mode, module.bits))
    return shapes


def dense_product(target: Target) -> str:
    """A product of a verify forward with unpacked weights, as "inputs x outputs"; "" when there is none."""
    tied = target.model.language_model.args.tie_word_embeddings
    dense = nn.Linear | nn.Embedding if tied else nn.Linear
    for module in target.modules():
        if isinstance(module, dense) and not isinstance(module, nn.QuantizedEmbedding):
            outputs, inputs = module.weight.shape
            return f"{inputs} x {outputs}"
    return ""


def stock_by_routing(target: Target, widths: Sequence[int], version: str | None = None) -> tuple[tuple[int, ...], str]:
    """Widths at which MLX's dispatch takes the kernel of one row for every product, and what stands against others.

    Off Apple GPUs there is no such table: all widths, and the probe alone decides.
    """
    architecture = target.backend.architecture
    gpu = routing.Gpu.parse(architecture)
    if gpu is None:
        if target.backend.device is Device.METAL:
            return (), f"The routing table does not know {architecture}, so stock kernels are not trusted."
        return tuple(widths), ""
    if not routing.known(version or mlx_version()):
        return (), f"MLX {mlx_version()} is newer than the routing table, so stock kernels are not trusted."
    allowed, why = [], ""
    for width in widths:
        against = _against_stock(target, gpu, width)
        if not against:
            allowed.append(width)
        why = why or against
    return tuple(allowed), why


def _against_stock(target: Target, gpu: routing.Gpu, width: int) -> str:
    """Which product of a stock block of `width` rows takes another kernel than one row, in words; "" for none."""
    for weights in sorted(linear_shapes(target)):
        if not routing.stock_is_decode(gpu, weights, width):
            kernel = routing.block_kernel(gpu, weights, width)
            return f"MLX runs {width} rows of {weights} through {kernel}, one row through another kernel."
    if dense := dense_product(target):
        return f"MLX runs {width} rows of {dense}, which is not quantized, as matrices, one row as a vector."
    if any(isinstance(module, SwitchGLU) for module in target.modules()):
        pairs = width * int(target.text_config["num_experts_per_tok"])
        if pairs >= routing.SORTED_PAIRS:
            return f"mlx-lm sorts the {pairs} experts of {width} rows, and MLX may run them through another kernel."
    return ""


def engage(target: Target, engaged: Engaged | None) -> None:
    """Set the target's scope. None: verify forwards run on stock kernels, and nobody may call them exact."""
    scope = target.scope
    if engaged is None:
        scope.kernel, scope.block_limit = Stock(), 0
        return
    forced, rows = ForcedQmv(engaged.chunk), QmvRows(engaged.chunk, engaged.served)
    kernels: dict[str, MatmulKernel] = {k.name: k for k in (Stock(), forced, rows, Gather(), OneRow())}
    scope.kernel, scope.block_limit = kernels[engaged.kernel], engaged.block_limit


def holds(target: Target, decision: Decision, widths: Sequence[int]) -> bool:
    """Whether a kept decision may be used again: what qmv_rows serves is checked on the device at every load."""
    served = decision.engaged.served if decision.engaged else ()
    return not served or qmv_rows.still_exact(target.modules(), served, widths)


def decide(
    target: Target, widths: Sequence[int], context_length: int = 2048, cancel: threading.Event | None = None
) -> Decision:
    """Climb the ladder on a loaded target and engage what it finds.

    Raises:
        LoadCancelled: `cancel` was set meanwhile. The target's scope is then undefined.
    """
    started = perf_counter()
    trusted, against = stock_by_routing(target, widths)
    reasons = [against] if against else []
    inputs = 0
    exact: list[tuple[Candidate, ProbeResult]] = []
    for candidate in candidates(target, widths, reasons.append, cancel):
        wanted = trusted if isinstance(candidate.kernel, Stock) else tuple(widths)
        if not wanted:
            continue
        try_on(target, candidate)
        result = probe(target, wanted, context_length, cancel=cancel)
        inputs += result.inputs
        if result.failures:
            width, what = result.failures[0]
            reasons.append(f"{candidate.name}: bytes differ at width {width}, {what}.")
        if result.passed:
            exact.append((candidate, result))
            if candidate.name == Stock.name and result.passed == tuple(widths):
                break
    seconds = perf_counter() - started
    if not exact:
        engage(target, None)
        verdict = Verdict(
            ExactnessState.DECLINED,
            "",
            " ".join([*reasons, "Replies are written by classic decode."]),
            inputs=inputs,
            seconds=seconds,
        )
        return Decision(verdict, None)
    (candidate, result), cost = _fastest(target, exact)
    block = candidate.attention is Attention.BLOCK
    chunk = getattr(candidate.kernel, "chunk", CHUNKS[0])
    served = tuple(candidate.kernel.served.values()) if isinstance(candidate.kernel, QmvRows) else ()
    engaged = Engaged(candidate.kernel.name, chunk, result.longest if block else 0, served)
    engage(target, engaged)
    stock = isinstance(candidate.kernel, Stock)
    words = f"Block = chain on {result.inputs} inputs at widths {', '.join(map(str, result.passed))}."
    verdict = Verdict(
        ExactnessState.EXACT_STOCK if stock else ExactnessState.EXACT_FORCED,
        candidate.name,
        " ".join([words, *reasons]),
        widths=result.passed,
        inputs=result.inputs,
        cost=cost,
        seconds=perf_counter() - started,
    )
    return Decision(verdict, engaged)


def allow_inexact(decision: Decision, target: Target, widths: Sequence[int]) -> Decision:
    """The user's explicit override of a decline."""
    if decision.engaged is not None:
        return decision
    engaged = Engaged("stock", CHUNKS[0], 2**31)
    engage(target, engaged)
    reason = f"{decision.verdict.reason} You chose to speculate all the same: text may differ from classic decode."
    verdict = replace(
        decision.verdict,
        state=ExactnessState.INEXACT_ALLOWED,
        kernel="stock",
        reason=reason,
        widths=tuple(widths),
    )
    return Decision(verdict, engaged)


def candidates(
    target: Target,
    widths: Sequence[int] = WIDTHS,
    note: Callable[[str], object] = lambda _: None,
    cancel: threading.Event | None = None,
) -> Iterator[Candidate]:
    """The rungs in order, with forced qmv's chunk tuned on this device and qmv_rows surveyed for these widths.

    note: told why qmv_rows does not serve a shape.

    Raises:
        LoadCancelled: `cancel` was set during the survey.
    """
    yield from (Candidate(Stock(), attention) for attention in Attention)
    kernels: list[MatmulKernel] = []
    if linear_shapes(target):
        chunk = tuned_chunk(target)
        kernels.append(ForcedQmv(chunk))
        if target.backend.device is Device.METAL:
            found = qmv_rows.survey(target.modules(), widths, chunk, cancel)
            if found.note:
                note(found.note)
            if found.served:
                kernels.append(QmvRows(chunk, found.served))
        kernels.append(Gather())
    kernels.append(OneRow())
    for kernel in kernels:
        for attention in Attention:
            yield Candidate(kernel, attention)


def try_on(target: Target, candidate: Candidate) -> None:
    """Set the target's scope for a probe or a measurement, at any key length."""
    block = candidate.attention is Attention.BLOCK
    target.scope.kernel, target.scope.block_limit = candidate.kernel, 2**31 if block else 0


def tuned_chunk(target: Target) -> int:
    """The chunk size with the fastest forced-qmv product on the target's largest quantized layer."""
    modules = [m for m in target.modules() if isinstance(m, nn.QuantizedLinear | nn.QuantizedEmbedding)]
    largest = max(modules, key=lambda m: m.weight.size)
    x = mx.zeros((1, TIMED_WIDTH, largest.weight.shape[1] * 32 // largest.bits), dtype=target.dtype)

    def product(chunk: int) -> None:
        mx.eval(ForcedQmv(chunk).linear(largest, x))

    # A grid that this device cannot launch (CUDA: more than 65,535 chunks) is the slowest. The probe will say so.
    times = least_ms([partial(product, chunk) for chunk in CHUNKS])
    return CHUNKS[times.index(min(times))]


def verify_ms(target: Target, candidates: Sequence[Candidate], width: int = TIMED_WIDTH) -> list[float]:
    """Milliseconds of a verify forward with each of them, on a short context, endless for kernels that cannot run."""
    prompt, block = token_array(range(16)), token_array([1] * width)

    def forwards(candidate: Candidate) -> Callable[[], None]:
        state = target.new_state()
        mx.eval(target.hidden(prompt, state), state.arrays())
        mark = state.mark()

        def forward() -> None:
            try_on(target, candidate)
            mx.eval(target.verify(block, state).logits)
            target.rollback(state, width, width)
            state.rewind(mark)

        return forward

    return least_ms([forwards(candidate) for candidate in candidates])


def _fastest(target: Target, exact: list[tuple[Candidate, ProbeResult]]) -> tuple[tuple[Candidate, ProbeResult], float]:
    """The exact candidate with the most widths, and among those the fastest; its cost relative to stock."""
    if len(exact) == 1 and isinstance(exact[0][0].kernel, Stock) and exact[0][0].attention is Attention.BLOCK:
        return exact[0], 1.0
    most = max(len(result.passed) for _, result in exact)
    best = [(c, r) for c, r in exact if len(r.passed) == most]
    # Stock kernels may have failed the probe because they cannot run.
    *times, stock = verify_ms(target, [*(candidate for candidate, _ in best), Candidate(Stock(), Attention.BLOCK)])
    fastest = times.index(min(times))
    return best[fastest], times[fastest] / stock if isfinite(stock) else 1.0
