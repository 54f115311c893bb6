"""Verdicts kept on disk, so that a second load of the same pair on the same machine need not probe again.

The key names everything a verdict depends on; any change probes again. A file that cannot be read or written
only costs the probe's time.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import platformdirs

from engine.backend import Backend, mlx_version
from engine.events import ExactnessState, Verdict
from engine.exactness.ladder import Decision, Engaged

LADDER = 3
"""Raise it when the probe or a kernel changes: old verdicts then count no more."""
FOLDER = "PACENOTE_CACHE_DIR"
"""Environment variable that moves the cache, for tests and for read-only homes."""


def folder() -> Path:
    """Where verdicts lie."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else Path(platformdirs.user_cache_dir("pacenote"))


def verdict_key(weights_hash: str, backend: Backend, dtype: mx.Dtype, widths: Sequence[int]) -> str:
    """Digest of weights, MLX version, device, OS build, compute policy, dtype, widths and ladder version."""
    parts = [
        LADDER, weights_hash, mlx_version(), backend.device, backend.name, backend.architecture, backend.compute,
        backend.prefill_chunk, backend.replay_recurrence, platform.platform(), platform.version(), str(dtype),
        list(widths), os.environ.get("MLX_METAL_GPU_ARCH", ""), os.environ.get("LD_PRELOAD", ""),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def recall(key: str) -> Decision | None:
    """A kept decision, None when there is none or it cannot be understood."""
    try:
        data: dict[str, Any] = json.loads((folder() / "verdicts" / f"{key}.json").read_text(encoding="utf-8"))
        kept = data["verdict"]
        verdict = Verdict(
            **{**kept, "state": ExactnessState(kept["state"]), "widths": tuple(kept["widths"]), "cached": True}
        )
        return Decision(verdict, Engaged(**data["engaged"]) if data["engaged"] else None)
    except (OSError, ValueError, KeyError, TypeError):
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
            json.dump(data, file)
        os.replace(name, place / f"{key}.json")
    except OSError:
        return False
    return True
