"""The session log of every conversation: one JSON Lines file each, written on the engine's thread."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from app.happenings import Ids
from app.paths import make_private
from engine import (
    EngineInfo,
    Event,
    EventLog,
    Exported,
    ExportKind,
    KnownError,
    Notice,
    Request,
    export_logs,
    log_files,
)

FILES = 3


class SessionLogs:
    """A `SessionSink`.

    content: asked at every reply, on the engine's thread: whether the log may hold the words of chats.
    """

    def __init__(self, folder: Path, content: Callable[[], bool] = lambda: False) -> None:
        self._folder = folder
        self._content = content
        self._log: EventLog | None = None
        self._path = folder

    def begin(self, ids: Ids, info: EngineInfo, request: Request, detailed: bool) -> None:
        self._path = log_path(self._folder, ids.conversation_uid)
        with contextlib.suppress(OSError):
            self._path.touch(mode=0o600)
        self._log = EventLog(self._path, files=FILES, content=self._content())
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


def log_parts(folder: Path, conversation_uid: str) -> list[Path]:
    """The files of a conversation's log, oldest first; none when nothing was written yet."""
    return log_files(log_path(folder, conversation_uid))


def remove(folder: Path, conversation_uids: Sequence[str]) -> None:
    """Delete the logs of chats that are gone; they may hold words. What cannot be deleted stays."""
    for uid in conversation_uids:
        for part in log_parts(folder, uid):
            with contextlib.suppress(OSError):
                part.unlink()


def export(folder: Path, conversation_uids: Sequence[str], kind: ExportKind, target: Path) -> Exported:
    """Write the logs of some conversations to `target`, oldest lines first. Raises KnownError."""
    parts = [part for uid in conversation_uids for part in log_parts(folder, uid)]
    if not parts:
        raise KnownError("This chat has no session log yet.", todo="Send a message first.")
    return export_logs(parts, kind, target)
