"""The source way: Metal source compiled as C++ under native/shim, MLX's headers and our own kernels alike."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import mlx.core as mx
import numpy as np

from tests.virtual_metal.machine import NUMPY, Machine, to_mlx, to_numpy
from tests.virtual_metal.toolchain import NATIVE, Store

CPP_TYPES = {
    mx.float32: "float", mx.float16: "half", mx.bfloat16: "bfloat", mx.uint32: "uint", mx.int32: "int",
}  # fmt: skip
POSITIONS = ("threadgroup_position_in_grid", "simdgroup_index_in_threadgroup", "thread_index_in_simdgroup")
TRACED = np.dtype([("value", np.float32), ("padding", np.uint32), ("tree", np.uint64)])
"""A float that carries a hash of the expression tree that made it (native/shim/metal_stdlib)."""
MLX_HEADERS = ("utils.h", "steel/utils.h", "quantized_utils.h", "steel/gemm/gemm.h", "quantized.h")


class Contraction(StrEnum):
    """What a compiler may fuse: nothing, a * b + c within an expression, or across expressions."""

    OFF = "off"
    ON = "on"
    FAST = "fast"


def flags(store: Store, contraction: Contraction, *, traced: bool = False) -> tuple[str | Path, ...]:
    include = ("-I", NATIVE / "shim", "-I", store.headers())
    trace = ("-DTRACED",) if traced else ()
    shim = hashlib.sha256((NATIVE / "shim/metal_stdlib").read_bytes()).hexdigest()[
        :16
    ]  # so that a new shim builds anew
    return (
        f"-ffp-contract={contraction}",
        "-fexcess-precision=16",
        "-Wno-everything",
        f"-DSHIM=0x{shim}",
        *trace,
        *include,
    )


def mlx_source(instance: str) -> str:
    """MLX's quantized kernels, verbatim, with an entry for one instance, "affine_qmv_fast<float, 64, 4, false>"."""
    includes = "\n".join(f'#include "mlx/backend/metal/kernels/{name}"' for name in MLX_HEADERS)
    roles = ", ".join(f"{p}_" for p in POSITIONS)
    return (
        f"{includes}\n"
        f'extern "C" void vm_entry(void** buffers, const uint32_t* position) {{\n'
        f"    vm_call<{roles}>({instance}, buffers, position);\n}}\n"
    )


def custom_source(
    header: str, body: str, inputs: Sequence[tuple[str, str]], outputs: Sequence[tuple[str, str]], template: str
) -> tuple[str, int]:
    """C++ of a `mx.fast.metal_kernel`, as MLX wraps its body; inputs and outputs as (name, type).

    The buffers are the inputs, each followed by its shape where the body names it, then the outputs. Returns the source
    and how many buffers it takes.
    """
    parameters = []
    for name, kind in inputs:
        parameters.append(f"const device {kind}* {name}")
        for what, type_ in (("shape", "int"), ("strides", "int64_t")):
            if f"{name}_{what}" in body:
                parameters.append(f"const constant {type_}* {name}_{what}")
    parameters += [f"device {kind}* {name}" for name, kind in outputs]
    count = len(parameters)
    used = [p for p in POSITIONS if p in body]
    parameters += [f"{'uint3' if p.endswith('grid') else 'uint'} {p}" for p in used]
    strange = set(re.findall(r"\b\w+_(?:in|per)_(?:grid|threadgroup|simdgroup)\b", body)) - set(POSITIONS)
    if strange:
        raise ValueError(f"the virtual Metal has no {', '.join(sorted(strange))}")
    names, values = zip(*(part.split("=") for part in template.split(";")), strict=True)
    roles = ", ".join(f"{p}_" for p in used)
    source = (
        f"#include <metal_stdlib>\nusing namespace metal;\n{header}\n"
        f"template <{', '.join(names)}>\nvoid custom({', '.join(parameters)}) {{\n{body}\n}}\n"
        f'extern "C" void vm_entry(void** buffers, const uint32_t* position) {{\n'
        f"    vm_call<{roles}>(custom<{', '.join(values)}>, buffers, position);\n}}\n"
    )
    return source, count


class Guarded:
    """An output that starts as NaN, with memory around it that nothing may write."""

    WIDTH = 4096

    def __init__(self, shape: Sequence[int], dtype: type) -> None:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self._all = np.full(size + 2 * self.WIDTH, 0xFF, np.uint8)  # all ones are a NaN in each of our types
        self.array = self._all[self.WIDTH : self.WIDTH + size].view(dtype).reshape(shape)

    def untouched_around(self) -> bool:
        return bool((self._all[: self.WIDTH] == 0xFF).all() and (self._all[-self.WIDTH :] == 0xFF).all())


class MetalKernel:
    """Stands in for what `mx.fast.metal_kernel` returns. contraction: what the run-time compiler is taken to do."""

    def __init__(
        self,
        machine: Machine,
        contraction: Contraction,
        *,
        name: str,
        input_names: Sequence[str],
        output_names: Sequence[str],
        source: str,
        header: str = "",
    ) -> None:
        self.machine, self.contraction, self.name = machine, contraction, name
        self.input_names, self.output_names, self.body, self.header = input_names, output_names, source, header

    def __call__(
        self,
        *,
        inputs: Sequence[mx.array],
        template: Sequence[tuple[str, object]],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[mx.Dtype],
    ) -> list[mx.array]:
        if any(g % t for g, t in zip(grid, threadgroup, strict=True)):
            raise ValueError("a grid that is no multiple of its threadgroup has threadgroups of several sizes")
        arrays = [to_numpy(a) for a in inputs]
        outs = [Guarded(s, NUMPY[d]) for s, d in zip(output_shapes, output_dtypes, strict=True)]
        shapes = [np.array(a.shape, np.int32) for a in inputs]
        kinds = [CPP_TYPES[a.dtype] for a in inputs]
        entry, buffers = self.prepare(
            arrays, shapes, [o.array for o in outs], kinds, [CPP_TYPES[d] for d in output_dtypes], template
        )
        groups = [g // t for g, t in zip(grid, threadgroup, strict=True)]
        self.machine.dispatch(entry, buffers, groups, threadgroup)
        if not all(o.untouched_around() for o in outs):
            raise RuntimeError(f"{self.name} wrote outside of its output")
        return [to_mlx(o.array, d) for o, d in zip(outs, output_dtypes, strict=True)]

    def prepare(
        self,
        arrays: Sequence[np.ndarray],
        shapes: Sequence[np.ndarray],
        outs: Sequence[np.ndarray],
        kinds: Sequence[str],
        out_kinds: Sequence[str],
        template: Sequence[tuple[str, object]],
        *,
        traced: bool = False,
    ) -> tuple[object, Mapping[int, np.ndarray]]:
        """Compile for these types and lay out the buffers."""
        inputs = list(zip(self.input_names, kinds, strict=True))
        outputs = list(zip(self.output_names, out_kinds, strict=True))
        words = ";".join(_template(name, value) for name, value in template)
        source, count = custom_source(self.header, self.body, inputs, outputs, words)
        entry = self.machine.built(source, *flags(self.machine.store, self.contraction, traced=traced))
        table: list[np.ndarray] = []
        for name, array, shape in zip(self.input_names, arrays, shapes, strict=True):
            table += [array, *([shape] if f"{name}_shape" in self.body else [])]
        table += outs
        assert len(table) == count
        return entry, dict(enumerate(table))


def _template(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"bool {name}={str(value).lower()}"
    if isinstance(value, int):
        return f"int {name}={value}"
    return f"typename {name}={CPP_TYPES[value]}"  # type: ignore[index]


def leaves(array: np.ndarray, label: int) -> np.ndarray:
    """Floats whose trees are leaves: another hash for each label and place."""
    out = np.zeros(array.shape, TRACED)
    out["value"] = array
    places = np.arange(1, array.size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        out["tree"] = (places ^ np.uint64(label << 56)).reshape(array.shape) * np.uint64(0xD6E8FEB86659FD93)
    return out
