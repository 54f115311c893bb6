"""The session log of every conversation: one JSON Lines file each, written on the engine's thread."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from pathlib import Path

from app.happenings import Ids
from app.paths import make_private
from engine import EngineInfo, Event, EventLog, KnownError, Notice, Request

FILES = 3


class SessionLogs:
    """A `SessionSink`. Text of the chat is not written (the engine's default)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log: EventLog | None = None
        self._path = folder

    def begin(self, ids: Ids, info: EngineInfo, request: Request, detailed: bool) -> None:
        self._path = log_path(self._folder, ids.conversation_uid)
        with contextlib.suppress(OSError):
            self._path.touch(mode=0o600)
        self._log = EventLog(self._path, files=FILES)
        self._log.begin(info, request, detailed=detailed)

    def write(self, event: Event) -> None:
        if self._log is not None:
            self._log.write(event)

    def end(self) -> Notice | None:
        log, self._log = self._log, None
        # A file begun in the middle of the reply has the mode of the umask; its folder is private all the time.
        make_private(self._path)
        notice = log.take_notice() if log is not None else None
        # Its own kind: the panel shows a "decline" under "Block size", with which this has nothing to do.
        return dataclasses.replace(notice, kind="log") if notice is not None else None


def log_path(folder: Path, conversation_uid: str) -> Path:
    return folder / f"{conversation_uid}.jsonl"


def export(folder: Path, conversation_uid: str, target: Path) -> None:
    """Write the whole log of a conversation to `target`, oldest first. Raises KnownError."""
    current = log_path(folder, conversation_uid)
    older = [current.with_name(f"{current.stem}.{n}{current.suffix}") for n in range(FILES - 1, 0, -1)]
    parts = [path for path in older if path.exists()]
    if current.exists():
        parts.append(current)
    if not parts:
        raise KnownError("This chat has no session log yet.", todo="Send a message first.")
    try:
        with target.open("wb") as out:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, out)
    except OSError as error:
        raise KnownError(
            "The session log could not be exported.",
            kept="The log itself is unchanged.",
            todo="Choose another folder, or free some space.",
            detail=f"{target}: {error}",
        ) from error
