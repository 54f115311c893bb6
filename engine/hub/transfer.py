"""One file into the cache: taken up where it stopped, hashed as it comes, in its place only when the hash is right."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.hub import errors
from engine.hub.cache import RepoCache, disk_errors
from engine.hub.follow import Follower
from engine.hub.locks import held_patiently
from engine.hub.ranges import RangeClient
from engine.hub.repo import RemoteFile, Repo

_HASHES = 2
"""How often a file whose hash is wrong is fetched in all."""
_RESTARTS = 3
"""How often a server that cannot go on inside a file may begin it anew."""
_FLUSH = 2**27  # bytes: what is written goes to the disk meanwhile, so that the last fsync is short


@dataclass(frozen=True, slots=True)
class Planned:
    """A file to have. etag: its name among the blobs. sha256, blob_id: as in `RepoFile`; both "": unverifiable."""

    name: str
    etag: str
    size: int
    sha256: str
    blob_id: str

    @property
    def verifiable(self) -> bool:
        return bool(self.sha256 or self.blob_id)

    def hasher(self) -> Any:
        """Fresh. Of files in git, SHA-1 over git's own preamble and the bytes."""
        if self.sha256 or not self.blob_id:
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)

    @property
    def digest(self) -> str:
        return self.sha256 or self.blob_id


def fetch_file(
    client: RangeClient,
    repo: Repo,
    planned: Planned,
    cache: RepoCache,
    waits: Callable[[bool], None] = lambda waits: None,
) -> None:
    """Have one file in the cache and linked into the snapshot. Returns at once when it is there.

    Args:
        waits: called with True while another program fetches this very file, then with False.

    Raises:
        HubError: refused, changed meanwhile, damaged twice, or the disk refuses. What arrived stays for next time.
        LoadCancelled: the connection's `stop` was set. What arrived stays.
    """
    with held_patiently(cache.lock(planned.etag), client.connection.stop, cache.refused, waits):
        # Another program may have finished it while this one waited.
        if not cache.has(repo.revision, planned.name, planned.etag, planned.size):
            remote = client.open(repo, planned.name)
            if _is_another(remote, planned):
                now = remote.etag, remote.size
                raise errors.another_state(planned.name, (planned.etag, planned.size), now)
            _fetch(client, remote, planned, cache)
        cache.link(repo.revision, planned.name, planned.etag)


def _is_another(remote: RemoteFile, planned: Planned) -> bool:
    """Whether the file is not the planned one. A proxy's own ETag says nothing about that; the hash will."""
    comparable = len(remote.etag) == len(planned.etag) or not planned.verifiable
    return remote.size != planned.size or (comparable and remote.etag != planned.etag)


def _fetch(client: RangeClient, remote: RemoteFile, planned: Planned, cache: RepoCache) -> None:
    part = cache.part(planned.etag)
    found = ""
    for _ in range(_HASHES):
        found = _fill(client, remote, planned, part, cache)
        if not planned.verifiable or found == planned.digest:
            with disk_errors(cache.root):
                os.replace(part, cache.blob(planned.etag))
            return
        with disk_errors(cache.root):
            part.unlink()
    raise errors.damaged(planned.name, remote.repo, f"listed {planned.digest}, got {found}")


def _fill(client: RangeClient, remote: RemoteFile, planned: Planned, part: Path, cache: RepoCache) -> str:
    """Complete a part. Returns the hash of all of it."""
    with disk_errors(cache.root):
        handle = os.open(part, os.O_RDWR | os.O_CREAT, 0o666)
        # Unbuffered: what arrived is in the file, also when this process is killed in the next moment.
        file = os.fdopen(handle, "r+b", buffering=0)
    with file:
        for restart in range(_RESTARTS + 1):
            with disk_errors(cache.root):
                have = file.seek(0, os.SEEK_END)
                if have > planned.size:
                    have = file.truncate(0)
                    file.seek(0)
            try:
                with Follower(file.fileno(), planned.hasher()) as follower:
                    follower.upto(have)
                    with closing(client.stream(remote, have)) as pieces, _flushing(file.fileno()) as written:
                        for piece in pieces:
                            with disk_errors(cache.root):
                                _write(file, piece)
                            have += len(piece)
                            follower.upto(have)
                            written(len(piece))
                    with disk_errors(cache.root):
                        os.fsync(file.fileno())
                        return follower.hexdigest(client.connection.stop)
            except errors.RangeIgnored:
                if restart == _RESTARTS:
                    raise
                # Such a server can only send the whole file.
                with disk_errors(cache.root):
                    file.truncate(0)
    raise AssertionError("the loop returns or raises")


def _write(file: Any, piece: bytes) -> None:
    """All of it: an unbuffered write may take less."""
    view = memoryview(piece)
    while view:
        view = view[file.write(view) :]


@contextmanager
def _flushing(handle: int) -> Iterator[Callable[[int], None]]:
    """Gives a function to be told of written bytes. An fsync runs beside the transfer; the one after it judges."""
    waiting, flush = 0, threading.Thread()

    def written(count: int) -> None:
        nonlocal waiting, flush
        waiting += count
        if waiting >= _FLUSH and not flush.is_alive():
            waiting, flush = 0, threading.Thread(target=_try_fsync, args=(handle,), name="download flush")
            flush.start()

    try:
        yield written
    finally:
        if flush.ident is not None:
            flush.join()


def _try_fsync(handle: int) -> None:
    with suppress(OSError):  # told by the fsync at the end
        os.fsync(handle)
