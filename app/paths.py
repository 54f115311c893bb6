"""Where the window keeps its files. `PACENOTE_HOME` moves all of them to one folder (tests, portable use)."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from engine import KnownError

FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Paths:
    """Folders of one installation. They exist after `resolve` or `make`."""

    data: Path
    config: Path
    logs: Path

    @classmethod
    def below(cls, base: Path) -> Paths:
        """All of them in one folder."""
        return cls(base / "data", base / "config", base / "logs")

    @property
    def database(self) -> Path:
        return self.data / "chats.db"

    @property
    def settings(self) -> Path:
        return self.config / "settings.toml"

    @property
    def geometry(self) -> Path:
        return self.config / "window.ini"

    @property
    def sessions(self) -> Path:
        return self.data / "sessions"

    @property
    def kept_chat(self) -> Path:
        """Caches of the chat that was written in last, when they are kept over a restart."""
        return self.data / "kept-chat.safetensors"

    @property
    def heads(self) -> Path:
        """MTP heads that were taken out of original repos."""
        return self.data / "heads"

    @property
    def own_models(self) -> Path:
        return self.config / "models.toml"

    @property
    def crash_log(self) -> Path:
        return self.logs / "crash.log"

    @property
    def lock(self) -> Path:
        return self.data / "pacenote.lock"


def locate() -> Paths:
    """The folders to use. Nothing is created."""
    if home := os.environ.get("PACENOTE_HOME"):
        return Paths.below(Path(home).expanduser())
    return Paths(
        Path(platformdirs.user_data_dir("Pacenote", appauthor=False)),
        Path(platformdirs.user_config_dir("Pacenote", appauthor=False)),
        Path(platformdirs.user_log_dir("Pacenote", appauthor=False)),
    )


def resolve() -> Paths:
    """The folders to use, created when missing. Raises KnownError when they cannot be made."""
    return make(locate())


def make(paths: Paths) -> Paths:
    """The same folders, created when missing. Raises KnownError when they cannot be made."""
    for folder in (paths.data, paths.config, paths.logs, paths.sessions):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, str(error), full=error.errno in FULL) from error
        make_private(folder)
    return paths


def make_private(path: Path) -> None:
    """For this user only, whatever the umask is: chats are in there. A file system without modes is left as it is."""
    with contextlib.suppress(OSError):
        path.chmod(0o700 if path.is_dir() else 0o600)


def cannot_write(folder: Path, detail: str, *, full: bool = False) -> KnownError:
    """Why nothing can be kept in a folder, and what to do: the sentence of a start that fails."""
    full = full or _is_full(folder)
    fix = "Free some space there" if full else "Make it a folder that you can write to"
    return KnownError(
        f"Pacenote cannot start: {'the disk is full at' if full else 'it cannot write to its folder'} {folder}.",
        kept="Nothing was changed.",
        todo=f"{fix}, or set PACENOTE_HOME to another folder.",
        detail=detail,
    )


def _is_full(folder: Path) -> bool:
    """Whether the disk of a folder, or of its nearest parent that exists, has no room left."""
    for place in (folder, *folder.parents):
        try:
            space = os.statvfs(place)
        except OSError:
            continue
        writable = not space.f_flag & os.ST_RDONLY
        return writable and (space.f_bavail == 0 or (space.f_files > 0 and space.f_favail == 0))
    return False
