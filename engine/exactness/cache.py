"""Verdicts kept on disk, so that a second load of the same pair on the same machine need not probe again.

The key names everything a verdict depends on; any change probes again. A file that is damaged, that belongs to another
key, or that cannot be read or written only costs the probe's time.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import mlx.core as mx
import platformdirs

from engine.backend import Backend, mlx_version
from engine.events import ExactnessState, Verdict
from engine.exactness.ladder import Decision, Engaged

LADDER = 5
"""Raise it when the probe, a kernel or the choice changes: old verdicts then count no more."""
FOLDER = "PACENOTE_CACHE_DIR"
"""Environment variable that moves the cache, for tests and for read-only homes."""
SETTINGS = ("LD_PRELOAD", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that decide who multiplies, and in how many parts. So do MLX's own (MLX_SDPA_BLOCKS, ...)."""


def folder() -> Path:
    """Where verdicts lie."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else Path(platformdirs.user_cache_dir("pacenote"))


def verdict_key(weights_hash: str, backend: Backend, dtype: mx.Dtype, widths: Sequence[int]) -> str:
    """Digest of weights, versions of MLX and mlx-lm, device, OS build, compute policy, dtype, widths, ladder version
    and the environment variables that choose kernels."""
    settings = {name: value for name, value in os.environ.items() if name in SETTINGS or name.startswith("MLX_")}
    parts = [
        LADDER, weights_hash, mlx_version(), metadata.version("mlx-lm"), backend.device, backend.name,
        backend.architecture, backend.compute, backend.prefill_chunk, backend.replay_recurrence, platform.platform(),
        platform.version(), str(dtype), list(widths), sorted(settings.items()),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def recall(key: str) -> Decision | None:
    """A kept decision, None when there is none or it cannot be understood."""
    try:
        data: dict[str, Any] = json.loads((folder() / "verdicts" / f"{key}.json").read_text(encoding="utf-8"))
        if data.pop("sha256") != _digest(key, data):
            return None
        kept = data["verdict"]
        verdict = Verdict(
            **{**kept, "state": ExactnessState(kept["state"]), "widths": tuple(kept["widths"]), "cached": True}
        )
        return Decision(verdict, Engaged(**data["engaged"]) if data["engaged"] else None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def remember(key: str, decision: Decision) -> bool:
    """Keep a decision. False when it could not be written; then the next load probes again."""
    data = {
        "verdict": asdict(replace(decision.verdict, cached=False)),
        "engaged": asdict(decision.engaged) if decision.engaged else None,
    }
    place = folder() / "verdicts"
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({**data, "sha256": _digest(key, data)}, file)
        os.replace(name, place / f"{key}.json")
    except OSError:
        return False
    return True


def _digest(key: str, data: dict[str, Any]) -> str:
    """A file that was cut, edited or copied to another key may still be JSON; it must not name widths or kernels."""
    return hashlib.sha256(json.dumps([key, data], sort_keys=True).encode()).hexdigest()
