"""What this machine was like during a benchmark, and whether it is quiet enough for one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from engine.bench.statistics import LEAST_PAIRS, QUIET_BAND
from engine.errors import KnownError
from engine.exactness.cache import SETTINGS
from engine.telemetry.environment import Conditions, Environment, conditions, environment

BUSY_LOAD = 0.25
"""Load per core above which a benchmark is refused: a quarter of every core is somebody else's."""
CROWDED_LOAD = 1.5
"""Load per core at the end that a benchmark alone, which takes at most every core, does not make."""

SPREAD_LIMIT = QUIET_BAND
"""A/A band above which a measurement is no record."""

FEWEST_PAIRS = LEAST_PAIRS
"""Blocks below which a measurement is no record."""

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


@dataclass(frozen=True, slots=True)
class Machine:
    """governor: of the first core, "unknown" where the system does not say. busy: load per core, None likewise."""

    environment: Environment
    conditions: Conditions
    governor: str
    busy: float | None
    time: str = ""  # local, with offset
    variables: tuple[tuple[str, str], ...] = ()  # of the process' environment, that choose kernels or switches


def look(governor: Path = _GOVERNOR) -> Machine:
    """Call it before loading a model: afterwards the load is our own."""
    here, now = environment(), conditions()
    try:
        clock = governor.read_text().strip()
    except OSError:
        clock = "unknown"  # macOS, containers, virtual machines
    busy = now.load[0] / here.cpus if now.load and here.cpus else None
    time = datetime.now().astimezone().isoformat(timespec="seconds")
    chosen = sorted((n, v) for n, v in os.environ.items() if n in SETTINGS or n.startswith(("MLX_", "PACENOTE_MTP_")))
    return Machine(here, now, clock, busy, time, tuple(chosen))


def admit(machine: Machine, *, anyway: bool) -> str:
    """Refuse a benchmark on a busy machine.

    Returns:
        What must be stamped into the record: "" on a quiet machine.

    Raises:
        KnownError: it is busy and `anyway` was not asked for.
    """
    if machine.busy is None or machine.busy <= BUSY_LOAD:
        return ""
    what = f"This machine is busy: a load of {machine.busy:.2f} per core in the last minute, {BUSY_LOAD} is the limit."
    if not anyway:
        raise KnownError(
            what, todo="Close other programs and wait a minute, or measure with --anyway, which the record will say."
        )
    return f"{what} Measured anyway, as asked."


def settled(band: float, pairs: int, *, anyway: bool) -> tuple[str, bool]:
    """Whether a measurement is quiet enough to be a record: (what must be stamped into it, whether it may be one).

    band: the widest A/A band of its experiments, see `statistics.noise_band`. pairs: the fewest of them.
    """
    reasons = []
    if pairs < FEWEST_PAIRS:
        reasons.append(f"Only {pairs} blocks: fewer than {FEWEST_PAIRS} have no 95 % interval, whatever they show.")
    if band > SPREAD_LIMIT:
        reasons.append(
            f"An arm differed from itself by up to {band:.1%}, {SPREAD_LIMIT:.0%} is the limit: "
            "this machine was not quiet enough, or there were too few pairs."
        )
    what = " ".join(reasons)
    return (f"{what} Kept anyway, as asked." if what and anyway else what), anyway or not what


def crowded(after: Machine) -> str:
    """What must be stamped into a record when other programs took the cores while it was measured, else ""."""
    if after.busy is None or after.busy <= CROWDED_LOAD:
        return ""
    return (
        f"At the end the load was {after.busy:.2f} per core, so others worked as well: times and ratios show little. "
        "Token ids and acceptance do not depend on load."
    )
