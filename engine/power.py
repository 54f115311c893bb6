"""What may change this machine's speed between two replies: its power supply, and heat."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_SUPPLIES = Path("/sys/class/power_supply")
_SPEED_LIMIT = re.compile(r"CPU_Speed_Limit\s*=\s*(\d+)")


def state() -> str:
    """In words, equal as long as speed should be: "mains", "battery, slowed by heat". Some 20 ms on macOS."""
    return source() + (", slowed by heat" if slowed_by_heat() else "")


def source() -> str:
    """ "mains", "battery" or "unknown"."""
    if sys.platform == "darwin":
        said = _pmset("batt")
        if "AC Power" in said:
            return "mains"
        return "battery" if "Battery Power" in said else "unknown"
    return source_linux(_SUPPLIES)


def slowed_by_heat() -> bool:
    """Whether macOS holds the processor below its full speed. False where the system does not tell."""
    if sys.platform == "darwin":
        limit = _SPEED_LIMIT.search(_pmset("therm"))
        return limit is not None and int(limit[1]) < 100
    return False


def source_linux(folder: Path) -> str:
    """ "mains" if a supply of that type is online, "battery" if one is discharging."""
    power = "unknown"
    try:
        for supply in sorted(folder.iterdir()):
            kind = (supply / "type").read_text().strip()
            if kind == "Mains" and (supply / "online").read_text().strip() == "1":
                return "mains"
            if kind == "Battery" and (supply / "status").read_text().strip() == "Discharging":
                power = "battery"
    except OSError:
        return power
    return power


def _pmset(topic: str) -> str:
    """What macOS says about "batt" or "therm"; "" when it says nothing."""
    try:
        return subprocess.run(
            ["/usr/bin/pmset", "-g", topic], capture_output=True, text=True, timeout=1, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
