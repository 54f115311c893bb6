"""The AIR way: Apple's compiled code of a kernel, made to run on this CPU.

AIR is LLVM bitcode for another target. Address spaces and Apple's metadata are dropped, the small `air.*` functions get
bodies, what needs other lanes is left to native/runtime.cpp, and an entry is appended that takes the arguments from
memory. The arithmetic is Apple's, instruction for instruction: `llvm.fmuladd` is fused, all else is not.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.virtual_metal.metallib import Metallib
from tests.virtual_metal.toolchain import Store

POSITIONS = (
    "threadgroup_position_in_grid", "threadgroups_per_grid", "thread_position_in_threadgroup",
    "threads_per_threadgroup", "thread_position_in_grid", "threads_per_grid", "simdgroup_index_in_threadgroup",
    "thread_index_in_simdgroup", "quadgroup_index_in_threadgroup", "thread_index_in_quadgroup",
    "thread_index_in_threadgroup", "simdgroups_per_threadgroup", "threads_per_simdgroup",
)  # fmt: skip
"""Three 32-bit words each, as struct Position of native/runtime.cpp has them."""

BODIES = {
    "float @air.convert.f.f32.s.i32(i32 %v)": "%r = sitofp i32 %v to float",
    "float @air.convert.f.f32.u.i32(i32 %v)": "%r = uitofp i32 %v to float",
    "i8 @air.normalize_function_constant_predicate.i8(i8 %v)": "%r = add i8 %v, 0",
    "i32 @air.min.s.i32(i32 %v, i32 %w)": "%c = icmp slt i32 %v, %w\n  %r = select i1 %c, i32 %v, i32 %w",
    "i32 @air.clamp.s.i32(i32 %v, i32 %l, i32 %h)": (
        "%a = icmp slt i32 %v, %l\n  %b = select i1 %a, i32 %l, i32 %v\n"
        "  %c = icmp sgt i32 %b, %h\n  %r = select i1 %c, i32 %h, i32 %b"
    ),
    "float @air.fmax.f32(float %v, float %w)": "%r = call float @llvm.maxnum.f32(float %v, float %w)",
    # Apple's own approximations are not known. Any function will do as long as equal arguments give equal values.
    "float @air.fast_exp.f32(float %v)": "%r = call float @expf(float %v)",
    "float @air.exp2.f32(float %v)": "%r = call float @exp2f(float %v)",
    "float @air.fast_sin.f32(float %v)": "%r = call float @sinf(float %v)",
    "float @air.fast_cos.f32(float %v)": "%r = call float @cosf(float %v)",
    "float @air.rsqrt.f32(float %v)": "%s = call float @sqrtf(float %v)\n  %r = fdiv float 1.0, %s",
}
LIBRARY = {
    "llvm.maxnum.f32": "float, float", "llvm.fma.f32": "float, float, float", "expf": "float", "exp2f": "float",
    "sinf": "float", "cosf": "float", "sqrtf": "float",
}  # fmt: skip
RUNTIME = {"air.simd_sum.f32", "air.simd_max.f32", "air.quad_sum.f32", "air.simd_shuffle_down.f32", "air.wg.barrier"}
"""What native/runtime.cpp provides."""

Constants = Mapping[int, int]
"""Metal's function constants: index -> value."""


def disassemble(store: Store, library: Metallib, name: str) -> str:
    """The AIR of a kernel as LLVM's text."""
    kept = store.folder / f"air-{store.version}"
    text = kept / f"{name}.ll"
    if not text.exists():
        kept.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=store.folder) as fresh:
            bitcode, out = Path(fresh) / "kernel.bc", Path(fresh) / "kernel.ll"
            bitcode.write_bytes(library.bitcode(name))
            store.tools.run(store.tools.disassembler, bitcode, "-o", out)
            os.replace(out, text)
    return text.read_text(encoding="utf-8")


def build(store: Store, air: str, name: str, constants: Constants) -> Path:
    """A shared library with one function, `vm_entry(buffers, position)`."""
    return store.library(to_host(air, name, constants), ".ll", "-Wno-override-module")


def to_host(air: str, name: str, constants: Constants) -> str:
    """LLVM text for this CPU.

    Raises:
        ValueError: the kernel uses something that is not emulated, by name.
    """
    entry = _entry(air, name)
    text = re.sub(r"^(target (datalayout|triple)|@llvm\.compiler\.used|source_filename).*\n", "", air, flags=re.M)
    text = re.sub(r" addrspace\(\d+\)", "", text)
    text = re.sub(r', section "air[^"]*"| section "air[^"]*"|"air-buffer-no-alias"', "", text)
    text = re.sub(r"(\.MTL_FC_INIT_(\d+)_\w .*?constant i\d+) undef", lambda m: _constant(m, constants), text)
    text = text.replace("@llvm.fmuladd.f32", "@llvm.fma.f32")
    used = set(re.findall(r"^declare .*?@([\w.]+)\(", text, flags=re.M))
    text = re.sub(r"^declare .*@(air\.|llvm\.fma\.)(?!simd|quad|wg).*\n", "", text, flags=re.M)
    text = re.sub(r"^attributes #\d+ = \{.*\}\n", _attributes, text, flags=re.M)
    known = {re.search(r"@([\w.]+)\(", signature)[1] for signature in BODIES}  # type: ignore[index]
    if strange := {u for u in used if u.startswith("air.")} - known - RUNTIME:
        raise ValueError(f"{name} uses {', '.join(sorted(strange))}, which the virtual Metal does not have")
    bodies = [
        f"define internal {signature} alwaysinline {{\n  {body}\n  ret {signature.split()[0]} %r\n}}"
        for signature, body in BODIES.items()
    ]
    declared = [f"declare float @{function}({arguments})" for function, arguments in LIBRARY.items()]
    return "\n".join([text, *declared, *bodies, entry])


def _constant(found: re.Match[str], constants: Constants) -> str:
    return f"{found[1]} {constants.get(int(found[2]), 0)}"


def _attributes(found: re.Match[str]) -> str:
    """Attributes without Apple's target strings."""
    return re.sub(r' "[^"]*"(="[^"]*")?', "", found[0])


def _entry(air: str, name: str) -> str:
    """An entry that fetches each argument: a buffer by its index, a position by its name."""
    kernel = re.search(r"!air\.kernel = !\{(!\d+)\}", air)
    nodes = dict(re.findall(r"^(!\d+) = (?:distinct )?!\{(.*)\}$", air, flags=re.M))
    assert kernel is not None, f"{name} has no kernel metadata"
    arguments = [nodes[n.strip()] for n in nodes[nodes[kernel[1]].split(",")[2].strip()].split(",")]
    types = _types(air, name)
    code, passed = [], []
    for n, (described, kind) in enumerate(zip(arguments, types, strict=True)):
        if index := re.search(r'"air\.location_index", i32 (\d+)', described):
            code.append(f"  %p{n} = getelementptr ptr, ptr %buffers, i64 {index[1]}\n  %a{n} = load ptr, ptr %p{n}")
        else:
            role = next(p for p in POSITIONS if f'"air.{p}"' in described)
            offset = 3 * POSITIONS.index(role)
            code.append(f"  %p{n} = getelementptr i32, ptr %position, i64 {offset}")
            if kind == "i16":
                code.append(f"  %w{n} = load i32, ptr %p{n}\n  %a{n} = trunc i32 %w{n} to i16")
            else:
                code.append(f"  %a{n} = load {kind}, ptr %p{n}, align 4")
        passed.append(f"{kind} %a{n}")
    lines = "\n".join(code)
    return (
        f"define void @vm_entry(ptr %buffers, ptr %position) {{\n{lines}\n"
        f"  call void @{name}({', '.join(passed)})\n  ret void\n}}\n"
    )


def _types(air: str, name: str) -> list[str]:
    """LLVM types of the kernel's parameters."""
    signature = re.search(rf"^define .*@{re.escape(name)}\((.*)\) local_unnamed_addr", air, flags=re.M)
    assert signature is not None, name
    return [
        "ptr" if parameter.startswith("ptr") else re.match(r"<\d x i32>|i\d+", parameter)[0]  # type: ignore[index]
        for parameter in re.split(r", (?=ptr|<|i\d)", signature[1])
    ]
