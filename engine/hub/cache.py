"""The shared Hugging Face cache: where a repo's files go so that `huggingface_hub` and mlx-lm find them.

    models--owner--name/blobs/<etag>               bytes of a file that is whole
    models--owner--name/blobs/<etag>.pacenote      bytes of one that is on its way
    models--owner--name/snapshots/<commit>/<name>  a link to the blob
    models--owner--name/refs/<branch>              the commit of a branch; written last

Layout: https://huggingface.co/docs/huggingface_hub/guides/manage-cache. A part has a name of our own because
`huggingface_hub` never takes up one of its `.incomplete` files again, and removes them.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from uuid import uuid4

from engine.hub import errors

PART = ".pacenote"
_ETAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_LONGEST = 240  # bytes of a name; disks take 255, and ours get a little more while they are made
FULL = (errno.ENOSPC, errno.EDQUOT)
LOCKED = (errno.EACCES, errno.EPERM, errno.EROFS)


def cache_folder() -> Path:
    """The cache of this user, as `huggingface_hub` sees it (HF_HUB_CACHE, HF_HOME)."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE).expanduser()


@dataclass(frozen=True)
class RepoCache:
    """One repo's folder in a cache. Nothing is created before `prepare`."""

    root: Path
    repo: str

    @property
    def folder(self) -> Path:
        return self.root / ("models--" + self.repo.replace("/", "--"))

    def blob(self, etag: str) -> Path:
        return self.folder / "blobs" / etag

    def part(self, etag: str) -> Path:
        return self.folder / "blobs" / f"{etag}{PART}"

    def lock(self, etag: str) -> Path:
        """The lock that `huggingface_hub` takes for this blob as well."""
        return self.root / ".locks" / self.folder.name / f"{etag}.lock"

    def snapshot(self, revision: str) -> Path:
        return self.folder / "snapshots" / revision

    def parts(self) -> list[Path]:
        """What is on its way, or was."""
        return sorted(self.folder.glob(f"blobs/*{PART}"))

    def commit(self, branch: str = "main") -> str | None:
        """The commit that a branch was at when it was fetched last, None when it never was."""
        try:
            found = (self.folder / "refs" / branch).read_text().strip()
        except (OSError, ValueError):
            return None
        return found if _ETAG.fullmatch(found) else None

    def refused(self, error: OSError) -> errors.HubError:
        """What its disk refuses, in words."""
        return in_words(error, self.root)

    def prepare(self) -> None:
        """Make the folders. Raises HubError when the cache cannot be written."""
        with disk_errors(self.root):
            for folder in (self.folder / "blobs", self.folder / "snapshots", self.lock("x").parent):
                folder.mkdir(parents=True, exist_ok=True)
            for folder in (self.folder / "blobs", self.folder / "snapshots", self.lock("x").parent):
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    def has(self, revision: str, name: str, etag: str, size: int) -> bool:
        """Whether a file is there whole: as a blob, or in its place where links are impossible."""
        return any(size_of(path) == size for path in (self.blob(etag), self.snapshot(revision) / name))

    def link(self, revision: str, name: str, etag: str) -> None:
        """Put a blob that is whole into a snapshot, under its name."""
        place, blob = self.snapshot(revision) / name, self.blob(etag)
        with disk_errors(self.root):
            place.parent.mkdir(parents=True, exist_ok=True)
            if not blob.exists():
                return  # a file system without links: it was moved into its place
            if place.is_symlink() and place.resolve() == blob.resolve():
                return
            fresh = place.with_name(f".{place.name}{PART}")
            fresh.unlink(missing_ok=True)
            try:
                fresh.symlink_to(os.path.relpath(blob, place.parent))
                os.replace(fresh, place)
            except OSError as error:
                if error.errno in (*FULL, errno.EROFS):
                    raise
                os.replace(blob, place)  # no links here, such as on exFAT

    def set_ref(self, branch: str, revision: str) -> None:
        """Say which commit a branch is at: from now on, other programs find the snapshot."""
        place = self.folder / "refs" / branch
        with disk_errors(self.root):
            place.parent.mkdir(parents=True, exist_ok=True)
            # Of this writer alone: nobody locks a branch. Not in `refs`, where a killed one's would pass for a branch.
            fresh = self.folder / f".{uuid4().hex}{PART}"
            fresh.write_text(revision)
            os.replace(fresh, place)


def safe_name(name: str) -> str:
    """A file name that stays inside its folder and that a disk can hold. Raises HubError."""
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise errors.HubError(
            f"The repo lists a file with the name {name!r}, which would leave its folder.", todo="Choose another repo."
        )
    if not name.isprintable() or max(len(os.fsencode(part)) for part in path.parts) > _LONGEST:
        raise errors.HubError(
            f"The repo lists a file with a name that no disk should hold: {name[:80]!r}.", todo="Choose another repo."
        )
    return name


def safe_etag(etag: str, name: str) -> str:
    """An ETag that can be a file's name. Raises HubError."""
    if _ETAG.fullmatch(etag) is None:
        raise errors.HubError(
            f"The server gives {name} an ETag that cannot be used: {etag[:80]!r}.",
            todo="Check HF_ENDPOINT, then try again.",
        )
    return etag


def free_bytes(folder: Path) -> int:
    """On the disk of a folder, or of its nearest parent that exists."""
    for place in (folder, *folder.parents):
        if place.exists():
            return shutil.disk_usage(place).free
    return 0


@contextmanager
def disk_errors(cache: Path) -> Iterator[None]:
    """What a disk refuses, in words."""
    try:
        yield
    except OSError as error:
        raise in_words(error, cache) from error


def in_words(error: OSError, cache: Path) -> errors.HubError:
    if error.errno in FULL:
        return errors.disk_full(cache, detail=str(error))
    if error.errno in LOCKED or isinstance(error, FileExistsError | NotADirectoryError):
        return errors.not_writable(cache, detail=str(error))
    return errors.disk_broken(cache, detail=str(error))


def size_of(path: Path) -> int | None:
    """In bytes; None for what is not there, which another program may have moved just now."""
    try:
        return path.stat().st_size
    except OSError:
        return None
