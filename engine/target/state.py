"""Every cache of the target at one position: attention keys and values, convolution windows, recurrent states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from engine.target.recurrence import CONV, STATE, RecurrentSlot

Slot = Any
"""A `KVCache` or a `RecurrentSlot`; mlx-lm is untyped."""


@dataclass(frozen=True)
class Mark:
    """A light mark: references only. Good until the attention caches are trimmed below it."""

    length: int
    recurrent: tuple[tuple[mx.array, mx.array], ...]


@dataclass(frozen=True)
class Snapshot:
    """A compact copy that depends on nothing else. arrays: per layer (keys, values) or (window, state)."""

    length: int
    arrays: tuple[tuple[mx.array, mx.array], ...]

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes + b.nbytes for a, b in self.arrays)


class TargetState:
    """The caches of one chat. `length` is the number of tokens that were fed."""

    def __init__(self, slots: list[Slot]) -> None:
        self.slots = slots
        self.length = 0

    @property
    def recurrent(self) -> list[RecurrentSlot]:
        return [s for s in self.slots if isinstance(s, RecurrentSlot)]

    def arrays(self) -> list[mx.array]:
        """Everything that must be evaluated for the state to be materialised."""
        out: list[mx.array] = []
        for slot in self.slots:
            pair = (slot[CONV], slot[STATE]) if isinstance(slot, RecurrentSlot) else (slot.keys, slot.values)
            out.extend(a for a in pair if a is not None)
        return out

    def mark(self) -> Mark:
        """Remember this position cheaply. Old recurrent arrays live until the mark is dropped."""
        return Mark(self.length, tuple((s[CONV], s[STATE]) for s in self.recurrent))

    def rewind(self, mark: Mark) -> None:
        """Return to a mark taken earlier on this same line of tokens."""
        for slot in self.slots:
            if not isinstance(slot, RecurrentSlot):
                slot.trim(self.length - mark.length)
        for slot, (window, state) in zip(self.recurrent, mark.recurrent, strict=True):
            slot[CONV], slot[STATE] = window, state
        self.length = mark.length

    def snapshot(self) -> Snapshot:
        """Copy out everything, evaluated, so that no lazy graph and no spare room is pinned (vllm-mlx #196)."""
        pairs: list[tuple[mx.array, mx.array]] = []
        for slot in self.slots:
            if isinstance(slot, RecurrentSlot):
                pairs.append((slot[CONV], slot[STATE]))
            else:
                keys, values = slot.keys_and_values()
                pairs.append((mx.contiguous(keys), mx.contiguous(values)))
        arrays = tuple(pairs)
        mx.eval(arrays)
        return Snapshot(self.length, arrays)

    def restore(self, snapshot: Snapshot) -> None:
        """Become the state that the snapshot was taken of."""
        for slot, (first, second) in zip(self.slots, snapshot.arrays, strict=True):
            if isinstance(slot, RecurrentSlot):
                slot[CONV], slot[STATE] = first, second
                slot.tape = None
            else:
                slot.keys, slot.values, slot.offset = first, second, snapshot.length
        self.length = snapshot.length
