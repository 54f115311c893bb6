"""What this machine has: a device that computes, memory, and room on its disks. MLX is imported where it is needed."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from engine.errors import KnownError
from engine.hub.cache import cache_folder, free_bytes
from engine.hub.errors import size
from engine.memory import free_memory
from engine.request import LoadOptions
from engine.selftest.check import Failed, Finding, Skip
from engine.selftest.metal import loaded_images, loaded_mlx, metallib_of
from engine.telemetry.environment import conditions, environment

ROOM = 64 * 2**20
"""Bytes below which a disk counts as full: a session log with all its older files takes 40 MiB."""

COUNT_SECONDS = 10.0
"""For the size of a folder: a cache on a network may hold more files than anybody wants to wait for."""

DOUBLE = """
    uint i = thread_position_in_grid.x;
    out[i] = 2 * inp[i];
"""
"""A kernel that the system has to compile here, as ours has to be (`kernels.qmv_rows`)."""


def device() -> Finding:
    import mlx.core as mx

    from engine.backend import Device, detect

    found = detect()
    if platform.system() == "Darwin" and found.device is not Device.METAL:
        raise Failed(
            "MLX finds no Metal device on this Mac, so everything would run on its CPU.",
            todo="Use a Mac with Apple silicon, and not through Rosetta or in a virtual machine without a GPU.",
        )
    facts = {
        "device": found.device.value, "name": found.name, "architecture": found.architecture,
        "mlx_default": str(mx.default_device()), "policy": found.words(), "wired_limit": found.wired_limit,
    }  # fmt: skip
    return Finding(f"{found.name} ({found.architecture}); MLX computes on {found.device.value}", facts=facts)


def metallib() -> Finding:
    if platform.system() != "Darwin":
        raise Skip("Not applicable: only macOS has Metal, and this is not macOS.")
    return beside_libmlx(_loaded_mlx())


def _loaded_mlx() -> list[Path]:
    import mlx.core  # noqa: F401 - loads its library

    return loaded_mlx(loaded_images())


def beside_libmlx(libraries: Sequence[Path]) -> Finding:
    """libraries: every libmlx that is loaded in this process."""
    facts = {"libmlx": [str(path) for path in libraries]}
    if len(libraries) != 1:
        raise Failed(
            f"{len(libraries)} MLX libraries are loaded, one is right.",
            todo="Unset DYLD_LIBRARY_PATH and start again; else install Pacenote again.",
            lines=tuple(map(str, libraries)),
            facts=facts,
        )
    (library,) = libraries
    found = metallib_of(library)
    if found is None:
        raise Failed(
            f"MLX's compiled kernels are not where it looks for them: no mlx.metallib in {library.parent}.",
            todo="Install Pacenote again. Who builds the bundle: keep libmlx.dylib and mlx.metallib in one folder.",
            facts=facts,
        )
    return Finding(f"{found}, {size(found.stat().st_size)}", facts={**facts, "metallib": str(found)})


def gpu() -> Finding:
    """A product on the GPU, of whole numbers, so that the right result is known to the last bit."""
    import mlx.core as mx

    _require_gpu()
    a, b = mx.arange(64, dtype=mx.float32).reshape(8, 8), mx.arange(64, 0, -1, dtype=mx.float32).reshape(8, 8)
    got: Any = (a @ b).tolist()
    wanted = [[float(sum((8 * i + k) * (64 - 8 * k - j) for k in range(8))) for j in range(8)] for i in range(8)]
    if got != wanted:
        raise Failed(
            "A small product of whole numbers came out wrong on the GPU.",
            todo="Restart the computer and try again; if it stays, report it with the whole report.",
            lines=(f"got    {got[0]}", f"wanted {wanted[0]}"),
        )
    return Finding(f"A product on {mx.default_device()} has the right result")


def compiler() -> Finding:
    """A Metal kernel compiled here and now: what a bundle's entitlements could forbid."""
    import mlx.core as mx

    _require_gpu()
    if not mx.metal.is_available():
        raise Skip("Not applicable: kernels of Pacenote's own run on Metal only.")
    double: Any = mx.fast.metal_kernel(
        name="pacenote_selftest", input_names=["inp"], output_names=["out"], source=DOUBLE
    )
    values = mx.arange(32, dtype=mx.float32)
    (out,) = double(
        inputs=[values], grid=(32, 1, 1), threadgroup=(32, 1, 1), output_shapes=[(32,)], output_dtypes=[mx.float32]
    )
    if out.tolist() != [2.0 * n for n in range(32)]:
        raise Failed("A kernel that was compiled here gives a wrong result.", todo="Report it with the whole report.")
    return Finding("A Metal kernel was compiled here and gives the right result")


def _require_gpu() -> None:
    import mlx.core as mx

    if mx.default_device() == mx.cpu:
        raise Skip("Not applicable: MLX runs on the CPU here.")


def memory(options: LoadOptions) -> Finding:
    from engine.hub.fit import fit_of

    total, free, now = environment().memory, free_memory(), conditions()
    try:
        fit = str(fit_of(options))
    except KnownError as error:  # the model's own check says what is wrong with it
        fit = f"Whether the model fits is not known: {error.what}"
    facts = {"total": total, "free": free, "load": list(now.load), "power": now.power}
    load = ", ".join(map(str, now.load)) or "unknown"
    lines = (fit, f"load of the machine {load}; power: {now.power}")
    return Finding(f"{size(free)} of {size(total)} are free", lines, facts)


def disk() -> Finding:
    """Room where the program writes by itself, and what lies there."""
    from engine.exactness import cache

    return room_on(
        {
            "exactness verdicts": cache.folder(),
            "Hugging Face cache": cache_folder(),
            "temporary files": Path(tempfile.gettempdir()),
        },
        measured=("exactness verdicts", "Hugging Face cache"),
    )


def room_on(places: dict[str, Path], measured: Sequence[str]) -> Finding:
    """places: folders by what they hold. measured: those whose own size is told."""
    lines, full = [], []
    facts: dict[str, dict[str, Any]] = {}
    for what, folder in places.items():
        free = free_bytes(folder)
        held, whole = bytes_in(folder) if what in measured else (None, True)
        facts[what] = {"folder": str(folder), "free": free, "held": held, "all_counted": whole}
        told = "" if held is None else f"holds {'' if whole else 'more than '}{size(held)}"
        state = told if folder.exists() else "not there yet"
        lines.append(f"{what}: {folder}, {f'{state}, ' if state else ''}{size(free)} free")
        if free < ROOM:
            full.append(what)
    if full:
        raise Failed(
            f"There is almost no room left for {', '.join(full)}.",
            todo="Free some space on that disk. PACENOTE_CACHE_DIR, HF_HUB_CACHE and TMPDIR name other folders.",
            lines=tuple(lines),
            facts=facts,
        )
    return Finding(f"At least {size(min(place['free'] for place in facts.values()))} free", tuple(lines), facts)


def bytes_in(folder: Path, seconds: float = COUNT_SECONDS) -> tuple[int, bool]:
    """(bytes of all files below a folder, whether they were counted to the end). Links are not followed."""
    total, end = 0, monotonic() + seconds
    for parent, _, names in os.walk(folder):
        if monotonic() > end:
            return total, False
        for name in names:
            with suppress(OSError):  # gone meanwhile, or not for us to look at
                total += os.lstat(os.path.join(parent, name)).st_size
    return total, True
