"""A virtual Mac: MLX's functions as one GPU generation would run them, for the length of a test.

Quantized products go through Apple's compiled kernels, chosen by engine/exactness/routing; row norms, rotary embeddings
and vector attention likewise; `metal_kernel` sources are compiled from source. Tile kernels and everything else stay on
MLX's CPU. The seams are MLX's own functions, so the views that forced qmv and gather make are routed as views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import mlx.core as mx
import pytest

from engine.backend import Backend, Compute, Device
from engine.exactness import routing
from engine.exactness.kernels import qmv_rows
from engine.exactness.routing import Gpu, Kernel, Product
from tests.virtual_metal import products
from tests.virtual_metal.machine import TYPE_NAMES, Machine
from tests.virtual_metal.rowwise import RowKernels
from tests.virtual_metal.source import Contraction, MetalKernel

MACS = {"M1": Gpu(13, "g"), "M3": Gpu(15, "g"), "M4": Gpu(16, "g"), "M5 Max": Gpu(17, "s")}

HOST = {
    "quantized_matmul": mx.quantized_matmul,
    "gather_qmm": mx.gather_qmm,
    "rms_norm": mx.fast.rms_norm,
    "rope": mx.fast.rope,
    "scaled_dot_product_attention": mx.fast.scaled_dot_product_attention,
}
"""MLX's own, for what is not emulated."""
MAKE_KERNEL = qmv_rows._kernel.__wrapped__
"""Uncached: the product keeps its kernel for the life of a process, which has one device; tests have several."""
LAUNCH = 4096
"""Bytes that a kernel launch is taken to cost in the virtual time."""


class VirtualMac:
    """One GPU.

    contraction: what its run-time compiler does to `metal_kernel` sources. rowwise: norms, rotary embeddings and vector
    attention are emulated too; they take most of the time, and what they do to a verdict one Mac shows.
    weight_bytes: what its quantized products have read so far. used: kernels by name, with counts.
    """

    def __init__(
        self, machine: Machine, gpu: Gpu, contraction: Contraction = Contraction.ON, *, rowwise: bool = False
    ) -> None:
        self.machine, self.gpu, self.contraction, self.rowwise = machine, gpu, contraction, rowwise
        self.weight_bytes = 0
        self.used: dict[str, int] = {}
        self._rowwise = RowKernels(machine, gpu, HOST, self._count)

    @property
    def architecture(self) -> str:
        return f"applegpu_g{self.gpu.generation}{self.gpu.size}"

    def backend(self, host: Backend, *, compute: Compute = Compute.STORED) -> Backend:
        """What engine.backend would decide there, with this machine's memory."""
        return replace(
            host, device=Device.METAL, name=f"virtual {self.architecture}", architecture=self.architecture,
            compute=compute, prefill_chunk=2048, replay_recurrence=True,
        )  # fmt: skip

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Become the machine that MLX runs on, until the test ends."""
        patch.setattr(mx, "quantized_matmul", self.quantized_matmul)
        patch.setattr(mx, "gather_qmm", self.gather_qmm)
        if self.rowwise:
            patch.setattr(mx.fast, "rms_norm", self._rowwise.rms_norm)
            patch.setattr(mx.fast, "rope", self._rowwise.rope)
            patch.setattr(mx.fast, "scaled_dot_product_attention", self._rowwise.attention)
        patch.setattr(mx.fast, "metal_kernel", self.metal_kernel)
        patch.setattr(qmv_rows, "_kernel", MAKE_KERNEL)

    def virtual_ms(self, runs: Sequence[Callable[[], object]]) -> list[float]:
        """For `least_ms`: not time, but bytes of weights read and launches, so that decisions do not vary."""
        times: list[float] = []
        for run in runs:
            before = self.weight_bytes
            run()
            times.append((self.weight_bytes - before) / 1e6)
        return times

    def quantized_matmul(
        self,
        x: mx.array,
        w: mx.array,
        /,
        scales: mx.array,
        biases: mx.array | None = None,
        *,
        transpose: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        stream: Any = None,
    ) -> mx.array:
        if not transpose or mode != "affine" or biases is None or scales.dtype not in TYPE_NAMES:
            raise NotImplementedError("the virtual Mac has affine products with transposed weights only")
        x = x.astype(mx.result_type(x, scales))
        inputs, outputs = x.shape[-1], w.shape[-2]
        rows = x.size // inputs if w.ndim == 2 else x.shape[-2]
        kernel = routing.route(self.gpu, Product(rows, inputs, outputs, mode, batched=w.ndim > 2, bits=bits))
        if kernel is Kernel.QMM:
            # In float32, as tile kernels add up, and because 16 bit is slow on the host.
            self._count(kernel, 0)
            wide = [a.astype(mx.float32) for a in (x, scales, biases)]
            y = HOST["quantized_matmul"](wide[0], w, *wide[1:], transpose=True, group_size=group_size, bits=bits)
            return y.astype(x.dtype)
        weights = products.Weights(w, scales.astype(x.dtype), biases.astype(x.dtype), group_size, bits)
        passes = x.size // inputs * (w.shape[0] if w.ndim > 2 else 1)
        if kernel is Kernel.QMV_WIDE:
            if w.ndim > 2:
                raise NotImplementedError("no batched qmv_wide on the virtual Mac")
            self._count(kernel, -(-rows // 5) * w.nbytes)
            return products.qmv_wide(self.machine, x, weights)
        self._count(kernel, passes * outputs * w.shape[-1] * 4)
        return products.qmv(self.machine, x, weights)

    def gather_qmm(
        self,
        x: mx.array,
        w: mx.array,
        /,
        scales: mx.array,
        biases: mx.array | None = None,
        lhs_indices: mx.array | None = None,
        rhs_indices: mx.array | None = None,
        transpose: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        *,
        sorted_indices: bool = False,
        stream: Any = None,
    ) -> mx.array:
        one_row_each = x.ndim == 3 and x.shape[1] == 1 and lhs_indices is None and rhs_indices is not None
        if not (one_row_each and transpose and mode == "affine" and biases is not None):
            raise NotImplementedError("the virtual Mac gathers one row for each choice of weights only")
        x = x.astype(mx.result_type(x, scales))
        weights = products.Weights(w, scales.astype(x.dtype), biases.astype(x.dtype), group_size, bits)
        self._count("gather_qmv", x.shape[0] * w.shape[-2] * w.shape[-1] * 4)
        return products.gather_qmv(self.machine, x, weights, rhs_indices)

    def metal_kernel(self, **definition: Any) -> Callable[..., list[mx.array]]:
        return partial(self._run_source, MetalKernel(self.machine, self.contraction, **definition))

    def _run_source(self, kernel: MetalKernel, **call: Any) -> list[mx.array]:
        tiles = call["grid"][0] // call["threadgroup"][0]
        self._count(kernel.name, tiles * call["inputs"][0].nbytes)
        return kernel(**call)

    def _count(self, kernel: str, read: int) -> None:
        self.weight_bytes += read + LAUNCH
        self.used[str(kernel)] = self.used.get(str(kernel), 0) + 1
