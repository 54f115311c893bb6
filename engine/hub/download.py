"""A whole repo into the shared Hugging Face cache: several files at once, resumable to the byte, verified.

What is on disk is the only state, so a download that was paused, killed or refused goes on when `download` is called
again, by this or another process. A branch points to the snapshot only when every file is there and verified.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from engine.errors import LoadCancelled
from engine.hub import errors
from engine.hub.cache import PART, RepoCache, cache_folder, disk_errors, free_bytes, safe_etag, safe_name
from engine.hub.connection import Connection
from engine.hub.ranges import RangeClient
from engine.hub.rate import Rate
from engine.hub.repo import Repo, RepoFile, open_file, open_repo
from engine.hub.transfer import Planned, fetch_file

FOREIGN = (".gguf", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".ot", ".tflite")
"""Weights for other programs, which often lie beside the safetensors."""
MAIN = "main"
_TICK = 0.2  # seconds
_DISK_TICK = 2.0
_RESERVE, _RESERVE_SHARE = 2 * 2**30, 0.05
_COMMIT = 40


class Step(StrEnum):
    LOOKING = "looking at the repo"
    WAITING = "waiting for another program that fetches the same files"
    FETCHING = "fetching"
    HEAD = "fetching the head out of the original"


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """done, total: bytes of all files. speed: bytes per second, left: seconds; None where nobody can tell.

    trouble: what goes wrong just now and is tried again, "" when nothing does.
    """

    step: Step
    done: int = 0
    total: int = 0
    speed: float | None = None
    left: float | None = None
    files_done: int = 0
    files: int = 0
    trouble: str = ""


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


@dataclass(frozen=True)
class Plan:
    """What a download will do. missing: bytes that are neither there nor in a part."""

    repo: Repo
    files: tuple[Planned, ...]
    cache: RepoCache

    @property
    def total(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def missing(self) -> int:
        return self.total - self.done

    @property
    def done(self) -> int:
        """Bytes on disk, by whichever program."""
        return sum(self._have(file) for file in self.files)

    @property
    def files_done(self) -> int:
        return sum(self.is_there(file) for file in self.files)

    def is_there(self, file: Planned) -> bool:
        return self.cache.has(self.repo.revision, file.name, file.etag, file.size)

    def _have(self, file: Planned) -> int:
        if self.is_there(file):
            return file.size
        try:
            return min(self.cache.part(file.etag).stat().st_size, file.size)
        except OSError:
            return 0


def wanted(name: str) -> bool:
    """Whether a file of a repo is fetched: all but other programs' weights and what git needs."""
    return not name.endswith(FOREIGN) and not PurePosixPath(name).name.startswith(".git")


def plan(connection: Connection, repo_id: str, revision: str | None = None, cache: Path | None = None) -> Plan:
    """Look at a repo and at the cache; nothing is fetched or written.

    Raises:
        HubError: no access, no way to the hub, or a repo with nothing to fetch.
        LoadCancelled: `connection.stop` was set.
    """
    repo = open_repo(connection, repo_id, revision)
    files = tuple(_planned(connection, repo, file) for name, file in repo.files.items() if wanted(name))
    if not files:
        raise errors.HubError(f"{repo_id} holds no files of a model.", todo="Choose another repo.")
    # Small ones first: what is wrong with a repo shows there.
    return Plan(
        repo, tuple(sorted(files, key=lambda f: (f.size > 2**25, f.name))), RepoCache(cache or cache_folder(), repo_id)
    )


def _planned(connection: Connection, repo: Repo, file: RepoFile) -> Planned:
    safe_name(file.name)
    etag, size = file.sha256 or file.blob_id, file.size
    if not etag or size is None:  # a mirror that lists less
        remote = open_file(connection, repo, file.name)
        etag, size = remote.etag, remote.size
    return Planned(file.name, safe_etag(etag, file.name), size, file.sha256, file.blob_id)


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
    plans = plan(connection, repo_id, revision, cache)
    try:
        plans.cache.prepare()
        _require_room(plans, preflight=True)
        fetched = _Run(connection, plans, progress, at_once).run()
        if revision is None or not _is_commit(revision):
            plans.cache.set_ref(revision or MAIN, plans.repo.revision)
    except errors.HubError as error:
        error.kept = _kept(plans)
        raise
    _sweep(plans)
    return Downloaded(
        folder=plans.cache.snapshot(plans.repo.revision),
        repo=repo_id,
        revision=plans.repo.revision,
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


def _kept(plans: Plan) -> str:
    if not (done := plans.done):
        return errors.KEPT
    return f"{errors.size(done)} of {errors.size(plans.total)} are kept; going on fetches only the rest."


def _require_room(plans: Plan, *, preflight: bool) -> None:
    """Before: the rest and a reserve. While running, when others use the disk too: the rest."""
    missing = plans.missing
    needed = missing + (int(max(_RESERVE, _RESERVE_SHARE * missing)) if preflight and missing else 0)
    free = free_bytes(plans.cache.root)
    if free < needed:
        raise errors.disk_full(plans.cache.root, missing=needed - free, needed=needed, free=free)


def _sweep(plans: Plan) -> None:
    """Parts of an older state of the repo, which nobody will complete."""
    current = {plans.cache.part(file.etag) for file in plans.files}
    _remove(plans.cache, [part for part in plans.cache.parts() if part not in current])


def _remove(cache: RepoCache, parts: Iterable[Path]) -> int:
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

    freed = 0
    for part in parts:
        try:
            with WeakFileLock(cache.lock(part.name.removesuffix(PART)), timeout=0.01), disk_errors(cache.root):
                size = part.stat().st_size
                part.unlink()
                freed += size
        except TimeoutError:
            continue  # someone is at it
    return freed


class _Run:
    """One run over a plan, on several threads that end together."""

    def __init__(
        self, connection: Connection, plans: Plan, progress: Callable[[DownloadProgress], None], at_once: int
    ) -> None:
        self._plans = plans
        self._progress = progress
        self._at_once = at_once
        self._stop = connection.stop
        self._halt = threading.Event()
        self._connection = connection.for_threads(self._halt, self._told)
        self._clients: list[RangeClient] = []
        self._waiting = 0
        self._lock = threading.Lock()
        self._trouble, self._trouble_until = "", 0.0
        self._rate = Rate()

    def run(self) -> int:
        """Returns the bytes received."""
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="download") as pool:
            futures = {pool.submit(self._one, file) for file in self._plans.files}
            try:
                self._watch(futures)
            finally:
                self._halt.set()
                pool.shutdown(wait=True, cancel_futures=True)
        return sum(client.fetched for client in self._clients)

    def _watch(self, futures: set[Future[None]]) -> None:
        checked = time.monotonic()
        pending = futures
        while pending:
            finished, pending = wait(pending, timeout=_TICK, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            if self._stop.is_set():
                raise LoadCancelled
            self._tell()
            if time.monotonic() - checked > _DISK_TICK:
                checked = time.monotonic()
                _require_room(self._plans, preflight=False)

    def _one(self, file: Planned) -> None:
        client = RangeClient(self._connection)
        with self._lock:
            self._clients.append(client)
        fetch_file(client, self._plans.repo, file, self._plans.cache, self._waits)

    def _waits(self, waits: bool) -> None:
        with self._lock:
            self._waiting += 1 if waits else -1

    def _told(self, error: errors.HubError, seconds: float) -> None:
        with self._lock:
            self._trouble = f"{error.what} Trying again in {max(1, round(seconds))} s."
            self._trouble_until = time.monotonic() + seconds + 1.0

    def _tell(self) -> None:
        done, total, now = self._plans.done, self._plans.total, time.monotonic()
        self._rate.note(now, done)
        files_done, files = self._plans.files_done, len(self._plans.files)
        with self._lock:
            alone = self._waiting >= min(self._at_once, files - files_done) > 0
            trouble = self._trouble if now < self._trouble_until else ""
        self._progress(
            DownloadProgress(
                step=Step.WAITING if alone else Step.FETCHING,
                done=done,
                total=total,
                speed=self._rate.speed,
                left=self._rate.left(total - done),
                files_done=files_done,
                files=files,
                trouble=trouble,
            )
        )
