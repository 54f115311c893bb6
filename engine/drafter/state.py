"""The head's history: its key-value cache, and what it was told but has not computed yet.

Entry i pairs (embedding of token i + 1, target hidden i). Telling is free: tokens and hiddens wait in
`pending` until a draft is wanted, so classic decode and a parked drafter pay nothing, and unparking does
not start blind (acceptance 0.90 with history, 0.26 without: reference mtp.md 1.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx
from mlx_lm.models.cache import KVCache

Told = tuple[mx.array, mx.array]
"""(next token ids [n], target hiddens [n, H])."""


@dataclass(frozen=True)
class HeadSnapshot:
    """A compact copy of a `HeadState`."""

    start: int
    entries: int
    kv: tuple[mx.array, mx.array] | None
    pending: tuple[Told, ...]

    @property
    def nbytes(self) -> int:
        pairs = [*self.pending, *([self.kv] if self.kv else [])]
        return sum(a.nbytes + b.nbytes for a, b in pairs)


class HeadState:
    """History of one chat.

    start: target position of the first entry, above 0 when history began late.
    output: [1, H], the head's output after its last computed entry; None before the first and after a restore.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.cache = KVCache()
        self.pending = []
        self.output: mx.array | None = None

    @property
    def end(self) -> int:
        """Target position after the last entry, computed or pending. In step when it equals the state's length."""
        return self.start + self.cache.offset + self.waiting

    @property
    def pending(self) -> Sequence[Told]:
        """What was told and is not computed, in order."""
        return self._pending

    @pending.setter
    def pending(self, told: Sequence[Told]) -> None:
        self._pending = list(told)
        self._waiting = sum(ids.shape[0] for ids, _ in told)

    @property
    def waiting(self) -> int:
        """Entries in `pending`. The pace asks at every classic step, so it is counted and not summed."""
        return self._waiting

    def tell(self, next_ids: mx.array, hidden: mx.array) -> None:
        """The target was fed tokens with these hiddens [n, H], each followed by next_ids [n]."""
        self._pending.append((next_ids, hidden))
        self._waiting += next_ids.shape[0]

    def take(self) -> Told:
        """Everything pending, joined; it is the taker's now. Raises ValueError when there is nothing."""
        ids = mx.concatenate([ids for ids, _ in self._pending])
        hidden = mx.concatenate([hidden for _, hidden in self._pending])
        self.pending = []
        return ids, hidden

    def drop_after(self, entries: int) -> None:
        """Forget computed entries beyond the first `entries`: those made from rejected or self-made input."""
        self.cache.trim(self.cache.offset - entries)

    def snapshot(self) -> HeadSnapshot:
        kv = None
        if self.cache.offset:
            keys, values = self.cache.keys_and_values()
            kv = (mx.contiguous(keys), mx.contiguous(values))
        pending: tuple[Told, ...] = ()
        if self.pending:
            ids = mx.concatenate([ids for ids, _ in self.pending])
            pending = ((ids, mx.concatenate([hidden for _, hidden in self.pending])),)
        mx.eval(kv, pending)
        return HeadSnapshot(self.start, self.cache.offset, kv, pending)

    @classmethod
    def restored(cls, snapshot: HeadSnapshot) -> HeadState:
        state = cls(snapshot.start)
        if snapshot.kv is not None:
            state.cache.keys, state.cache.values = snapshot.kv
            state.cache.offset = snapshot.entries
        state.pending = snapshot.pending
        return state
