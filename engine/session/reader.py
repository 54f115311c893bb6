"""Bring the caches to the end of a segment schedule: from the deepest boundary, or from nothing, to equal bytes."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

from engine.arrays import token_array
from engine.decode import prefill, replay
from engine.decode.prefill import Interrupted
from engine.drafter import HeadState
from engine.events import PrefillProgress
from engine.request import Segment
from engine.session.boundaries import Boundaries, name, part_name, schedule_key
from engine.session.boundary import Trail, restore
from engine.session.rates import Rates
from engine.target import Rows, Target, TargetState

LATE = 6
"""Segments at the end of a schedule, about two turns, whose ends are all kept: regenerate, edit, go on."""
SPACING = 8
"""Before them one boundary in so many segments: a long chat that is rebuilt must not drive out all other chats."""


class Reached(NamedTuple):
    """The end of a schedule. rows: of its last token, K = 1. head: None when none follows."""

    state: TargetState
    head: HeadState | None
    rows: Rows
    trail: Trail


class Reader:
    """Args:
    replay_width: rows per forward when a reply is fed again: the widest block that gives the bytes of single steps.

    progress: the last one that `read` told.
    """

    def __init__(self, target: Target, boundaries: Boundaries, replay_width: int) -> None:
        self._target = target
        self._boundaries = boundaries
        self._replay_width = replay_width
        self._rates = Rates()
        self.progress = PrefillProgress(0, 0, 0, 0.0)

    def read(
        self, schedule: Sequence[Segment], follow: bool, stop: threading.Event, started: float
    ) -> Generator[PrefillProgress, None, Reached]:
        """Restore the deepest kept boundary and feed the rest by the schedule's rules.

        Yields progress at the start and after each chunk. Boundaries are kept at the ends of the last segments, and
        far apart before them.

        Args:
            follow: whether a head's history goes along.
            started: `perf_counter` at the beginning of the turn, for the progress' seconds.

        Raises:
            Interrupted: `stop` was set. What was read is kept as a boundary, also inside a segment, and the next
                turn that passes there goes on from it with the same cuts.
            ValueError: the schedule does not end with a prefill.
        """
        total = sum(len(s.tokens) for s in schedule)
        count, inside, boundary = self._boundaries.deepest(schedule)
        state = self._target.new_state()
        head = restore(boundary, state, follow=follow)
        trail = Trail(boundary)
        hidden = boundary.hidden if boundary is not None else None
        rows: Rows | None = None
        if boundary is not None and boundary.logits is not None and boundary.hidden is not None:
            rows = Rows(boundary.logits, boundary.hidden)
        restored = state.length

        def progress(at: int) -> PrefillProgress:
            left = self._rates.remaining(schedule[at:], state.length - sum(len(s.tokens) for s in schedule[:at]))
            self.progress = PrefillProgress(state.length, total, restored, perf_counter() - started, left)
            return self.progress

        place = schedule_key(schedule[:count])
        yield progress(count)
        for n in range(count, len(schedule)):
            segment, parent = schedule[n], place
            place = name(parent, segment)
            tokens, inside = segment.tokens[inside:], 0
            if not tokens:
                continue  # a reply of one token was never fed
            if hidden is not None and head is not None:
                head.tell(token_array(tokens[:1]), hidden)
            rows = hidden = None
            following = next((s.tokens[0] for s in schedule[n + 1 :] if s.tokens), None)
            try:
                for part in self._feed(segment, tokens, state, head, following, stop):
                    if isinstance(part, Rows):
                        rows, hidden = part, part.hidden
                    else:
                        yield progress(n)
            except Interrupted:
                self._keep_part(parent, segment, schedule[:n], trail, state, head)
                raise
            if len(schedule) - n <= LATE or (n + 1) % SPACING == 0:
                self._boundaries.keep(place, trail.boundary(state, head, rows))
        if rows is None:
            raise ValueError("a schedule that is read must end with a prefill")
        return Reached(state, head, rows, trail)

    def _feed(
        self,
        segment: Segment,
        tokens: Sequence[int],
        state: TargetState,
        head: HeadState | None,
        following: int | None,
        stop: threading.Event,
    ) -> Iterator[int | Rows]:
        """The tokens of a segment that are left. A prefill is cut from its start; what is left starts at a cut."""
        parts: Iterator[int | Rows]
        if segment.kind == "decode":
            parts = replay(self._target, tokens, state, head, self._replay_width, following, stop)
        else:
            parts = prefill(self._target, tokens, state, head, stop)
        done, before = 0, perf_counter()
        for part in parts:
            if not isinstance(part, Rows):
                self._rates.observe(segment.kind, part - done, perf_counter() - before)
                done = part
            yield part
            before = perf_counter()

    def _keep_part(
        self,
        parent: bytes,
        segment: Segment,
        before: Sequence[Segment],
        trail: Trail,
        state: TargetState,
        head: HeadState | None,
    ) -> None:
        """Keep what was read of a segment when Stop came."""
        done = state.length - sum(len(s.tokens) for s in before)
        if not done or self._boundaries.get(part_name(parent, segment.kind, segment.tokens[:done])):
            return
        part = trail.boundary(state, head, part=True)
        self._boundaries.keep_part(parent, segment.kind, segment.tokens[:done], part)
