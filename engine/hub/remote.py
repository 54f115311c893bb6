"""Would a pair that is on the hub fit? By its headers; no tensor is fetched."""

from __future__ import annotations

from engine.checkpoint.kind import require_target
from engine.errors import KnownError
from engine.hub.connection import Connection
from engine.hub.extract import inspect_head
from engine.hub.fit import fit_checkpoints
from engine.hub.headers import inspect_repo
from engine.hub.need import head_tensors
from engine.hub.types import Fit


def fit_remote(
    connection: Connection, repo: str, head: str = "", original: str = "", context: int | None = None, *, held: int = 0
) -> Fit:
    """The fit of a pair on the hub.

    Args:
        head: repo of a stand-alone head. original: where the head is to be extracted from, when the target has none.
        context, held: as in `fit_of`.

    Raises:
        KnownError: the target cannot be looked at or used. A head that cannot be is a reason in the fit.
        LoadCancelled: `connection.stop` was set.
    """
    target = inspect_repo(connection, repo).checkpoint
    require_target(target)  # before its head is asked for
    found, why_none = target, ""
    try:
        if head:
            found = inspect_repo(connection, head).checkpoint
        elif original and not head_tensors(target):
            found = inspect_head(connection, original)
    except KnownError as error:
        why_none = error.what
    return fit_checkpoints(target, found, context, held=held, why_none=why_none)
