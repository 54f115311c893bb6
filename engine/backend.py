"""What this device is, and what follows from it.

The policy is decided once per process, written down in words, and shown: activation type, how quantized
weights are computed, prefill chunk, wired memory. Nothing else in the engine asks which device it runs on.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from typing import Any

import mlx.core as mx

from engine.errors import KnownError


def mlx_version() -> str:
    """Version of the installed MLX."""
    return metadata.version("mlx")


class Device(StrEnum):
    METAL = "metal"
    CUDA = "cuda"
    CPU = "cpu"


class Compute(StrEnum):
    """How the weights of linear layers are held.

    STORED: as in the checkpoint. FLOAT32: packed weights stay packed, everything else becomes float32.
    DENSE_BF16 / DENSE_FLOAT32: packed weights are unpacked at load.
    """

    STORED = "stored"
    FLOAT32 = "float32"
    DENSE_BF16 = "dense bfloat16"
    DENSE_FLOAT32 = "dense float32"


@dataclass(frozen=True, slots=True)
class Backend:
    """The decisions for one device.

    prefill_chunk: rows per prefill forward. It is part of the segment schedule: changing it changes bytes.
    replay_recurrence: rollback recomputes recurrent states from recorded inputs instead of keeping each row's.
    wired_limit: bytes to wire while generating, 0 for none.
    start_every: layers after which a verify forward starts the device on what Python has built so far, and whether
    drafts are started before it; 0: not at all. Python builds a 27B block in 18 of its 75 ms on an H200.
    """

    device: Device
    name: str
    architecture: str
    compute: Compute
    prefill_chunk: int
    replay_recurrence: bool
    memory: int
    wired_limit: int
    start_every: int = 0

    def words(self) -> str:
        weights = {
            Compute.STORED: "weights and activations as in the checkpoint",
            Compute.FLOAT32: "float32 activations, packed weights",
            Compute.DENSE_BF16: "weights unpacked to bfloat16",
            Compute.DENSE_FLOAT32: "weights unpacked to float32",
        }[self.compute]
        return f"{self.device.value}: {weights}; prefill in chunks of {self.prefill_chunk}"


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux; the generic name below will do
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _kind() -> Device:
    if mx.default_device() == mx.cpu:
        return Device.CPU
    return Device.METAL if mx.metal.is_available() else Device.CUDA


def _asked_compute(asked: str) -> Compute:
    try:
        return Compute(asked.strip().lower())
    except ValueError:
        raise KnownError(
            f"PACENOTE_COMPUTE={asked} names no way to hold weights.",
            kept="Nothing was loaded.",
            todo=f"Set it to {', '.join(Compute)}, or unset it.",
        ) from None


def detect(dense_bytes: int = 0, *, experts: bool = False) -> Backend:
    """Look at the default device and decide.

    Args:
        dense_bytes: bytes of the model's weights when unpacked to 16 bit.
        experts: whether the model is a mixture of experts.

    PACENOTE_COMPUTE overrides the weight policy, for measurements and tests.
    """
    device = _kind()
    memory = _memory_bytes()
    info: dict[str, Any] = dict(mx.device_info()) if device is not Device.CPU else {}
    default = Compute.STORED
    if device is Device.CPU:
        # Measured on the demo pair (docs/adr/0002): as stored 215 ms a token, because 16-bit *quantized*
        # matmul is emulated; float32 packed 40 ms, dense bfloat16 40 ms. At 4 rows they cost 3.4 and 2.4
        # times one row, and dense bfloat16 prefills twice as fast.
        # MLX's CPU multiplies unpacked experts in float32 only ("GatherMM::eval: Currently only supports float32").
        default = Compute.DENSE_BF16 if dense_bytes <= memory // 4 and not experts else Compute.FLOAT32
    asked = os.environ.get("PACENOTE_COMPUTE", "")
    return Backend(
        device=device,
        name=str(info.get("device_name") or _cpu_name()),
        architecture=str(info.get("architecture") or platform.machine()),
        compute=_asked_compute(asked) if asked.strip() else default,
        # Metal: mlx-lm's own chunk. CPU: a chunk of 64 takes about a second, so that Stop answers in time.
        prefill_chunk=64 if device is Device.CPU else 2048,
        # Without a kernel the recurrence is a loop over rows anyway: keeping each row's state is free there.
        replay_recurrence=device is Device.METAL,
        memory=int(info.get("memory_size") or memory),
        wired_limit=int(info.get("max_recommended_working_set_size") or 0) if device is Device.METAL else 0,
        # A CPU shares its cores with Python, and a full queue makes Python wait: nothing to gain (measured).
        start_every=0 if device is Device.CPU else 8,
    )


def prepare(backend: Backend) -> None:
    """Set MLX up for this device, once per process, before a model loads.

    On a CPU `mx.compile` builds kernels with the system's compiler in a folder of /tmp that all users share: a
    second user cannot write there and every forward fails, and a machine without a compiler computes other code
    than one with it. Uncompiled forwards cost 4-8 % more here (docs/adr/0005) and are the same everywhere.
    """
    if backend.device is Device.CPU:
        mx.disable_compile()


@contextmanager
def wired(backend: Backend) -> Iterator[None]:
    """Keep the weights wired while generating, so that macOS does not page them out (Metal only)."""
    if not backend.wired_limit:
        yield
        return
    previous = mx.set_wired_limit(backend.wired_limit)
    try:
        yield
    finally:
        mx.synchronize()
        mx.set_wired_limit(previous)
