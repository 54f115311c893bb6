"""Where the window keeps its files. `PACENOTE_HOME` moves all of them to one folder (tests, portable use)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True, slots=True)
class Paths:
    """Folders of one installation. They exist after `resolve`."""

    data: Path
    config: Path
    logs: Path

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
    def crash_log(self) -> Path:
        return self.logs / "crash.log"

    @property
    def lock(self) -> Path:
        return self.data / "pacenote.lock"


def resolve() -> Paths:
    """The folders to use, created when missing. Raises OSError when they cannot be made."""
    home = os.environ.get("PACENOTE_HOME")
    if home:
        base = Path(home).expanduser()
        paths = Paths(base / "data", base / "config", base / "logs")
    else:
        paths = Paths(
            Path(platformdirs.user_data_dir("Pacenote", appauthor=False)),
            Path(platformdirs.user_config_dir("Pacenote", appauthor=False)),
            Path(platformdirs.user_log_dir("Pacenote", appauthor=False)),
        )
    for folder in (paths.data, paths.config, paths.logs, paths.sessions):
        folder.mkdir(parents=True, exist_ok=True)
    return paths
