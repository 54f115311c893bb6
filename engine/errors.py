"""The two kinds of errors.

`KnownError` is what the user's environment did: it says what happened, what was kept and what to do.
Everything else that escapes is a bug and belongs in a crash log.
"""

from __future__ import annotations


class KnownError(Exception):
    """Something outside this program went wrong and the user can act on it.

    Args:
        what: what happened, one sentence.
        kept: what is still safe or usable, one sentence. May be empty.
        todo: what the user can do now, one sentence.
        detail: technical detail that can be folded out and copied. May be empty.
    """

    def __init__(self, what: str, *, kept: str = "", todo: str, detail: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.kept = kept
        self.todo = todo
        self.detail = detail

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.kept, self.todo) if part)


class CheckpointError(KnownError):
    """A model folder, repo or file cannot be used."""


class ContextFull(KnownError):
    """The prompt does not fit in the model's context. Nothing was lost.

    can_drop: it would fit without the oldest turns (`WhenFull.DROP_OLDEST`).
    """

    def __init__(self, what: str, *, kept: str = "", todo: str, detail: str = "", can_drop: bool = False) -> None:
        super().__init__(what, kept=kept, todo=todo, detail=detail)
        self.can_drop = can_drop


class OutOfMemory(KnownError):
    """The device ran out of memory."""


class LoadCancelled(Exception):
    """The caller asked to stop while a model was loading. Nothing was changed."""
