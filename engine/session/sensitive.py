"""A target that makes wrong cuts visible: an instrument for checks, never used to write for a user.

On Metal a cache entry depends on how many rows were computed together. MLX's CPU kernels hide that: every cut of
a prompt gives the same bytes, and a cache that was rebuilt with other cuts would pass every test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import mlx.core as mx

from engine.target import Target, TargetState


class ChunkSensitive(Target):
    """Disturbs the embeddings of a forward of several rows by their number. Verify blocks stay as they are."""

    def hidden(self, tokens: mx.array, state: TargetState) -> mx.array:
        rows = tokens.shape[0]
        if rows == 1 or any(slot.recording for slot in state.recurrent):
            return super().hidden(tokens, state)
        embeddings = self.embed(tokens) * (1 + 0.05 * rows)
        out: mx.array = self._inner(tokens[None], state.slots, input_embeddings=embeddings[None])[0]
        state.length += rows
        return out


@contextmanager
def chunk_sensitive(target: Target, chunk: int) -> Iterator[None]:
    """Make a loaded target sensitive, with prefill chunks of this size, for as long as the context lasts."""
    plain, backend = target.__class__, target.backend
    target.__class__ = ChunkSensitive
    target.backend = replace(backend, prefill_chunk=chunk)
    try:
        yield
    finally:
        target.__class__, target.backend = plain, backend
