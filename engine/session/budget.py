"""How much memory boundaries may take."""

from __future__ import annotations

from engine.backend import Backend

HOST_SHARE = 0.5
"""Of the memory of a machine without a working-set limit: other programs live there too."""
SHARE = 0.5
"""Of what the weights leave free. The rest is for the live caches of the chat that is written, and activations."""
LEAST_SHARE = 1 / 32
"""Of the limit, when the weights leave next to nothing: without a single boundary every turn reads the whole chat."""
FALLBACK_LIMIT = 8 * 2**30


def working_set(backend: Backend) -> int:
    """Bytes that weights, caches and activations may take together.

    Metal: `max_recommended_working_set_size`, beyond which the system pages. Elsewhere a share of the memory.
    """
    return backend.wired_limit or int(HOST_SHARE * backend.memory) or FALLBACK_LIMIT


def boundary_budget(backend: Backend, weights: int) -> int:
    """Bytes for boundaries beside `weights` bytes of target and head."""
    limit = working_set(backend)
    return max(int(SHARE * (limit - weights)), int(LEAST_SHARE * limit))
