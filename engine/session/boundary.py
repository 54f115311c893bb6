"""One boundary, and the trail of boundaries along a line of tokens.

Keys and values only ever grow at the end, so the boundaries of one chat share them: each holds the *spans* of
the one before it and one span more. What every boundary must hold alone is the recurrent state, which cannot
be trimmed (about 144 MiB for a 27B model). Twenty boundaries of a chat cost twenty recurrent states and one copy
of the keys and values, not twenty copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mlx.core as mx
from mlx_lm.models.cache import KVCache

from engine.drafter import HeadState
from engine.target import Rows, TargetState
from engine.target.recurrence import CONV, STATE, RecurrentSlot

Pair = tuple[mx.array, mx.array]
"""(keys, values), each [1, heads, n, d]; or (window, state) of a recurrent layer; or (ids [n], hidden [n, H])."""
Span = tuple[Pair, ...]
"""Keys and values of consecutive positions, one pair per attention layer."""

MOST_SPANS = 32
"""A longer list is joined into one span: a restore should not join thousands of pieces."""


@dataclass(frozen=True)
class HeadPart:
    """The head's history. start, entries: see `HeadState`. pending: told, not computed."""

    start: int
    entries: int
    spans: tuple[Pair, ...]
    pending: tuple[Pair, ...]

    @property
    def told(self) -> int:
        """Positions it knows of."""
        return self.entries + sum(ids.shape[0] for ids, _ in self.pending)


@dataclass(frozen=True)
class Boundary:
    """Everything at one position, evaluated and compact: no lazy graph and no spare room of a cache is pinned.

    length: tokens fed. recurrent: (window, state) per recurrent layer. head: None when none followed.
    hidden: [1, H] of the last fed token, when the token after it is not known yet, so that the head's entry for
    it waits. logits: [1, V] of it at the end of a prompt, so that a regenerated reply starts without any forward.
    Both None at the end of a reply.
    """

    length: int
    recurrent: tuple[Pair, ...]
    spans: tuple[Span, ...]
    head: HeadPart | None = None
    logits: mx.array | None = None
    hidden: mx.array | None = None

    def arrays(self) -> Iterator[mx.array]:
        """Every array it keeps alive; some may belong to other boundaries too."""
        pairs: list[Pair] = [*self.recurrent, *(pair for span in self.spans for pair in span)]
        if self.head is not None:
            pairs += [*self.head.spans, *self.head.pending]
        for pair in pairs:
            yield from pair
        yield from (a for a in (self.logits, self.hidden) if a is not None)

    def attention(self) -> list[Pair]:
        """Keys and values of all positions, one pair per attention layer."""
        return [joined([span[n] for span in self.spans]) for n in range(len(self.spans[0]))] if self.spans else []

    @property
    def nbytes(self) -> int:
        """Bytes if nothing else were kept."""
        return sum(a.nbytes for a in self.arrays())


class Trail:
    """Takes boundaries along one line of tokens and remembers what the earlier ones hold already.

    Args:
        start: the boundary that the line was restored from, None for an empty cache.
    """

    def __init__(self, start: Boundary | None = None) -> None:
        self._spans = start.spans if start is not None else ()
        self._length = start.length if start is not None else 0
        head = start.head if start is not None else None
        self._head_spans = head.spans if head is not None else ()
        self._entries = head.entries if head is not None else 0
        self._pending = head.pending if head is not None else ()

    def boundary(
        self, state: TargetState, head: HeadState | None, rows: Rows | None = None, *, part: bool = False
    ) -> Boundary:
        """Everything at the present position of the line.

        Args:
            rows: of the last fed token, at the end of a prefill (K = 1).
            part: the position is inside a prefill, where the next token may turn out another one than the head
                was told: the head's last entry then waits, as at a prefill's end.
        """
        self._take_spans(state)
        kept = self._head(head) if head is not None else None
        logits, hidden = (_compact(rows.logits), _compact(rows.hidden)) if rows is not None else (None, None)
        if part and kept is not None:
            kept, hidden = _without_last(kept)
        recurrent = tuple((_compact(slot[CONV]), _compact(slot[STATE])) for slot in state.recurrent)
        boundary = Boundary(state.length, recurrent, self._spans, kept, logits, hidden)
        # A freed buffer may serve an array of half its size: kept arrays get buffers of their own size.
        mx.clear_cache()
        mx.eval(list(boundary.arrays()))
        return boundary

    def _take_spans(self, state: TargetState) -> None:
        caches = [slot for slot in state.slots if not isinstance(slot, RecurrentSlot)]
        if len(self._spans) >= MOST_SPANS:
            self._spans, self._length = (), 0
        if state.length > self._length:
            self._spans += (tuple(_cut(cache, self._length) for cache in caches),)
            self._length = state.length

    def _head(self, head: HeadState) -> HeadPart:
        if len(self._head_spans) >= MOST_SPANS:
            self._head_spans, self._entries = (), 0
        if head.cache.offset > self._entries:
            self._head_spans += (_cut(head.cache, self._entries),)
            self._entries = head.cache.offset
        # What is still pending of an earlier boundary stands first, untouched; computing clears all of it.
        same = len(self._pending)
        if same > len(head.pending) or any(a is not b for a, b in zip(self._pending, head.pending, strict=False)):
            same = 0
        told = list(self._pending[:same]) if same < MOST_SPANS else []
        fresh = head.pending[len(told) :]
        if fresh:
            ids, hidden = zip(*fresh, strict=True)
            told.append((_compact(*ids), _compact(*hidden)))
        # The head goes on with the joined pieces: hundreds of one-row arrays would pin whole blocks.
        head.pending = told
        self._pending = tuple(told)
        return HeadPart(head.start, head.cache.offset, self._head_spans, self._pending)


def restore(boundary: Boundary | None, state: TargetState, *, follow: bool) -> HeadState | None:
    """Bring a new state to a boundary; None leaves it empty.

    Returns the head's history when one is to `follow`. Where the boundary has none, history begins here: the
    text does not mind.
    """
    if boundary is None:
        return HeadState() if follow else None
    recurrent = iter(boundary.recurrent)
    attention = iter(range(len(state.slots)))
    for slot in state.slots:
        if isinstance(slot, RecurrentSlot):
            slot[CONV], slot[STATE] = next(recurrent)
            slot.tape = None
        else:
            layer = next(attention)
            slot.keys, slot.values = joined([span[layer] for span in boundary.spans])
            slot.offset = boundary.length
    state.length = boundary.length
    if not follow:
        return None
    if boundary.head is None:
        return HeadState(start=boundary.length - (boundary.hidden is not None))
    head = HeadState(boundary.head.start)
    if boundary.head.spans:
        head.cache.keys, head.cache.values = joined(list(boundary.head.spans))
        head.cache.offset = boundary.head.entries
    head.pending = boundary.head.pending
    return head


def _cut(cache: KVCache, start: int) -> Pair:
    """A compact copy of the entries from `start` on."""
    keys, values = cache.keys_and_values()
    return _compact(keys[..., start:, :]), _compact(values[..., start:, :])


def _compact(*pieces: mx.array) -> mx.array:
    """The pieces, joined along the first axis, in a buffer of their own size; lazily.

    `mx.contiguous` leaves a single array in a buffer that is up to 16 KiB too large. That does not matter beside
    a large array; hundreds of small ones would pin several times what they are accounted for. Two pieces are
    always joined into a new buffer.
    """
    if len(pieces) > 1:
        return mx.concatenate(list(pieces))
    a = pieces[0]
    axis = max(range(a.ndim), key=lambda n: a.shape[n])
    if a.nbytes >= 2**20 or a.shape[axis] < 2:
        return mx.contiguous(a)
    return mx.concatenate(list(mx.split(a, [1], axis)), axis)


def joined(spans: list[Pair]) -> Pair:
    """One pair of all positions, from the pairs of consecutive ones."""
    if len(spans) == 1:
        return spans[0]
    keys, values = zip(*spans, strict=True)
    return mx.concatenate(list(keys), axis=2), mx.concatenate(list(values), axis=2)


def _without_last(head: HeadPart) -> tuple[HeadPart, mx.array]:
    """The history less its last told entry, and that entry's hidden, [1, H]. A prefill computes no entries."""
    ids, hidden = head.pending[-1]
    rest = head.pending[:-1]
    if ids.shape[0] > 1:
        rest = (*rest, (_compact(ids[:-1]), _compact(hidden[:-1])))
    return HeadPart(head.start, head.entries, head.spans, rest), _compact(hidden[-1:])
