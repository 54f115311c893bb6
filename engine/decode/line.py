"""One reply while it is being written: what both decode loops read and advance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.arrays import token
from engine.drafter import HeadState
from engine.events import EndReason
from engine.sampling import Chooser
from engine.target import Rows, TargetState

Ends = Callable[[int], EndReason | None]
"""Asked once per emitted token, in order; an answer makes that token the reply's last."""


@dataclass
class Line:
    """Invariant between rounds, in every arm (the canonical end of a reply):

    the caches hold every token but `last`; the head, if followed, was told all of them (`head.end` ==
    `state.length`), its last entry pairing `last` with the newest hidden.

    last: emitted, not fed. Its absolute position is `state.length`.
    head: None when no head follows this reply.
    """

    state: TargetState
    head: HeadState | None
    chooser: Chooser
    ends: Ends
    last: int
    rounds: int = 0
    ended: EndReason | None = field(default=None)

    @classmethod
    def begin(cls, state: TargetState, head: HeadState | None, rows: Rows, chooser: Chooser, ends: Ends) -> Line:
        """A reply whose first token is chosen, from `rows`, the prompt's last. `ends` is not asked about it."""
        chosen = chooser.row(rows.logits[0], state.length)
        chooser.emit(chosen)
        if head is not None:
            head.tell(chosen, rows.hidden)
        return cls(state, head, chooser, ends, token(chosen))

    @property
    def waiting(self) -> int:
        """What the head has to compute before its first draft, in rows."""
        return 0 if self.head is None else self.head.waiting
