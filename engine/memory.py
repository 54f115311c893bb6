"""How much memory is in use and how much is free, now."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes. held: by MLX for weights, caches and buffers it keeps for reuse. free: what the system can still give."""

    held: int
    free: int


def free_memory() -> int:
    """Bytes that the system can give to a program now without paging."""
    import psutil

    return int(psutil.virtual_memory().available)


def memory_use() -> MemoryUse:
    """Call it on the engine's thread. Before MLX was needed it holds nothing, and is not imported for this."""
    if "mlx.core" not in sys.modules:
        return MemoryUse(0, free_memory())
    import mlx.core as mx

    return MemoryUse(mx.get_active_memory() + mx.get_cache_memory(), free_memory())
