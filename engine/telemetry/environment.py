"""What the log's header says about this machine. Values only; nothing is imported to learn its version."""

from __future__ import annotations

import functools
import os
import platform
import sys
from dataclasses import dataclass
from importlib import metadata

from engine import power


@dataclass(frozen=True, slots=True)
class Environment:
    """What does not change while the program runs. Versions are "" where a package is not installed.

    memory: bytes of RAM, 0 when unknown.
    """

    pacenote: str
    mlx: str
    mlx_lm: str
    pyside6: str
    python: str
    os: str
    machine: str
    cpus: int
    memory: int


@dataclass(frozen=True, slots=True)
class Conditions:
    """What may change from reply to reply.

    load: running processes averaged over 1, 5, 15 minutes; () where the system has no such figure.
    power: "mains", "battery" or "unknown". A laptop on battery may run at half speed.
    """

    load: tuple[float, ...]
    power: str


@functools.cache
def environment() -> Environment:
    return Environment(
        pacenote=_version("pacenote"),
        mlx=_version("mlx"),
        mlx_lm=_version("mlx-lm"),
        pyside6=_version("PySide6-Essentials"),
        python=platform.python_version(),
        os=f"macOS {platform.mac_ver()[0]}" if sys.platform == "darwin" else platform.platform(),
        machine=platform.machine(),
        cpus=os.cpu_count() or 0,
        memory=_memory(),
    )


def conditions() -> Conditions:
    """Takes about 10 ms on macOS: call it once per reply, not per round."""
    try:
        load = tuple(round(x, 2) for x in os.getloadavg())
    except (OSError, AttributeError):
        load = ()
    return Conditions(load, power.source())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0
