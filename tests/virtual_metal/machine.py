"""Dispatches kernels on this CPU. Arrays go in and out as numpy; bfloat16 travels as its 16 bits."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import cached_property
from pathlib import Path

import mlx.core as mx
import numpy as np

from tests.virtual_metal import air
from tests.virtual_metal.metallib import Metallib
from tests.virtual_metal.toolchain import NATIVE, Store

Size = tuple[int, int, int]


class Reduction(IntEnum):
    """In which order simd_sum adds up. The hardware's is not known; what we claim must hold for each."""

    HALVES = 0
    NEIGHBOURS = 1
    ONE_BY_ONE = 2


class Machine:
    """A GPU of one thread. Kernels are built when they are first used."""

    def __init__(self, store: Store) -> None:
        self.store = store
        source = (NATIVE / "runtime.cpp").read_text(encoding="utf-8")
        # Global: the kernels' libraries find the meeting points of lanes here.
        self._runtime = ctypes.CDLL(str(store.library(source, ".cpp", "-std=c++20")), mode=ctypes.RTLD_GLOBAL)
        self._entries: dict[object, ctypes._FuncPointer] = {}

    @cached_property
    def library(self) -> Metallib:
        return Metallib(self.store.member("mlx/lib/mlx.metallib"))

    def air(self, name: str) -> str:
        return air.disassemble(self.store, self.library, name)

    def apple(
        self,
        name: str,
        buffers: Mapping[int, np.ndarray],
        grid: Sequence[int],
        group: Sequence[int],
        constants: air.Constants | None = None,
    ) -> None:
        """Run Apple's compiled kernel. grid: threadgroups; group: threads of each; buffers by their Metal index."""
        key = (name, tuple(sorted((constants or {}).items())))
        if key not in self._entries:
            self._entries[key] = self._load(air.build(self.store, self.air(name), name, constants or {}))
        self.dispatch(self._entries[key], buffers, grid, group)

    def built(self, source: str, *flags: str | Path) -> ctypes._FuncPointer:
        """The entry of a C++ source that exports `vm_entry`."""
        key = (source, flags)
        if key not in self._entries:
            self._entries[key] = self._load(self.store.library(source, ".cpp", "-std=c++20", *flags))
        return self._entries[key]

    def _load(self, path: Path) -> ctypes._FuncPointer:
        return ctypes.CDLL(str(path)).vm_entry

    def dispatch(
        self,
        entry: ctypes._FuncPointer,
        buffers: Mapping[int, np.ndarray],
        grid: Sequence[int],
        group: Sequence[int],
    ) -> None:
        table = (ctypes.c_void_p * 32)()
        for index, array in buffers.items():
            if not array.flags.c_contiguous:
                raise ValueError(f"buffer {index} is not contiguous")
            table[index] = array.ctypes.data
        sizes = [(ctypes.c_uint32 * 3)(*size) for size in (grid, group)]
        self._runtime.vm_dispatch(entry, table, *sizes)

    @contextmanager
    def adding(self, order: Reduction) -> Iterator[None]:
        self._runtime.vm_reduction(int(order))
        try:
            yield
        finally:
            self._runtime.vm_reduction(0)


def to_numpy(a: mx.array) -> np.ndarray:
    """A copy; bfloat16 as uint16."""
    a = mx.contiguous(a)
    return np.array(a.view(mx.uint16) if a.dtype == mx.bfloat16 else a)


def to_mlx(a: np.ndarray, dtype: mx.Dtype) -> mx.array:
    out = mx.array(a)
    return out.view(dtype) if dtype == mx.bfloat16 else out


NUMPY = {mx.float32: np.float32, mx.float16: np.float16, mx.bfloat16: np.uint16}
TYPE_NAMES = {mx.float32: "float", mx.float16: "float16_t", mx.bfloat16: "bfloat16_t"}


def scalar(value: float, kind: type = np.int32) -> np.ndarray:
    return np.array([value], dtype=kind)
