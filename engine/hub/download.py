"""A whole repo into the shared Hugging Face cache: several files at once, resumable to the byte, verified.

What is on disk is the only state, so a download that was paused, killed or refused goes on when `download` is called
again, by this or another process. A branch points to the snapshot only when every file is there and verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.hub import errors
from engine.hub.cache import PART, RepoCache, cache_folder, disk_errors
from engine.hub.connection import Connection
from engine.hub.locks import held
from engine.hub.plan import Plan, plan, require_room
from engine.hub.run import Run, trouble
from engine.hub.types import DownloadProgress, Step

MAIN = "main"
_COMMIT = 40


@dataclass(frozen=True)
class Downloaded:
    """A repo that is whole in the cache. fetched: bytes received in this run. unverified: files whose hash the server
    does not list; their size is right."""

    folder: Path
    repo: str
    revision: str
    size: int
    files: int
    fetched: int
    licence: str
    unverified: tuple[str, ...]


def download(
    connection: Connection,
    repo_id: str,
    revision: str | None = None,
    *,
    cache: Path | None = None,
    progress: Callable[[DownloadProgress], None] = lambda step: None,
    at_once: int = 4,
) -> Downloaded:
    """Have a repo in the cache. Setting `connection.stop` pauses; calling it again goes on.

    Args:
        revision: branch, tag or commit; None is the main branch.
        cache: folder of the cache; None follows HF_HUB_CACHE and HF_HOME.
        progress: called on this thread, some times a second.
        at_once: files in flight.

    Raises:
        HubError: with what was kept and what to do. The repo is not found as a model by anyone then, or, where an
            older state of it was whole, that one is.
        LoadCancelled: `connection.stop` was set. What arrived is kept.
    """
    progress(DownloadProgress(Step.LOOKING))
    looking = connection.for_threads(
        connection.stop, lambda error, wait: progress(DownloadProgress(Step.LOOKING, trouble=trouble(error, wait)))
    )
    plans = plan(looking, repo_id, revision, cache)
    commit, branch, fetched = plans.repo.revision, revision or MAIN, 0
    try:
        # What is whole needs no writing: it may lie on a disk that cannot be written.
        if not plans.is_settled(branch):
            plans.cache.prepare()
            require_room(plans, preflight=True)
            fetched = Run(connection, plans, progress, at_once).run()
            if not _is_commit(branch):
                plans.cache.set_ref(branch, commit)
            _sweep(plans)
    except errors.HubError as error:
        error.kept = plans.kept
        raise
    return Downloaded(
        folder=plans.cache.snapshot(commit),
        repo=repo_id,
        revision=commit,
        size=plans.total,
        files=len(plans.files),
        fetched=fetched,
        licence=plans.repo.licence,
        unverified=tuple(file.name for file in plans.files if not file.verifiable),
    )


def discard(repo_id: str, cache: Path | None = None) -> int:
    """Delete what is half there of a repo. Files that are whole stay. Returns the bytes that became free.

    Raises HubError when the disk refuses. Parts that another program writes to just now stay.
    """
    place = RepoCache(cache or cache_folder(), repo_id)
    return _remove(place, place.parts())


def _is_commit(revision: str) -> bool:
    return len(revision) == _COMMIT and all(c in "0123456789abcdef" for c in revision)


def _sweep(plans: Plan) -> None:
    """Parts of an older state of the repo, which nobody will complete."""
    current = {plans.cache.part(file.etag) for file in plans.files}
    _remove(plans.cache, [part for part in plans.cache.parts() if part not in current])


def _remove(cache: RepoCache, parts: Iterable[Path]) -> int:
    freed = 0
    for part in parts:
        try:
            with held(cache.lock(part.name.removesuffix(PART)), 0.01, cache.refused), disk_errors(cache.root):
                size = part.stat().st_size
                part.unlink()
                freed += size
        except TimeoutError:
            continue  # someone is at it
    return freed
