"""Writes the session log: JSON Lines, append-only, bounded, and never in the way of a generation.

Crash-safe means: after a crash of the program the file holds whole lines and perhaps one torn last one, and
the next writer starts on a new line. Nothing is fsynced; a power cut may cost the last seconds.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from engine.events import EngineInfo, Finished, Notice, PrefillProgress, Round
from engine.request import Request
from engine.telemetry import schema
from engine.telemetry.environment import Conditions, Environment

LOOKS = 8
"""At a full file before a group is appended to it all the same: another process may be rotating it."""
GROUP_LINES = 32
GROUP_SECONDS = 0.5
"""Lines wait in memory until there are this many, or the oldest is this old when the next one comes."""


class SessionLog:
    """The writer. For one thread.

    Args:
        path: the current file; older ones are `name.1.jsonl` (newest) to `name.{files-1}.jsonl`.
        max_bytes: a file that reaches it is rotated, also in the middle of a reply (whose header is repeated).
            A header with long texts may take half of a file; such files are larger.
        files: how many files are kept, 1 or more. The log takes at most about files x max_bytes.
        content: also write messages, tokens and replies. Off: no word of the chat is in the log.
        clock: seconds; only differences count.

    Several processes may write one log: each group of lines is appended in one go, and only one of them rotates.
    No method raises for what a disk does. After the first failure the log is off, and `take_notice` says so.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = 8 * 2**20,
        files: int = 5,
        content: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._files = files
        self._content = content
        self._clock = clock
        self._size = -1  # of the file as we left it
        self._place: tuple[int, int] | None = None  # the file that holds this generation's header: device, inode
        self._pending: list[bytes] = []  # lines of one generation
        self._oldest = 0.0
        self._generation = ""
        self._n = 0
        self._part = 0
        self._header: schema.Row = {}
        self._header_bytes = 0
        self._failed = False
        self._notice: Notice | None = None

    @property
    def enabled(self) -> bool:
        return not self._failed

    def begin(
        self,
        info: EngineInfo,
        request: Request,
        environment: Environment,
        conditions: Conditions,
        *,
        timing: schema.Timing = "plain",
    ) -> str:
        """Starts a generation; returns its id, which every line of it carries."""
        self.flush()  # a generation that never ended
        self._generation = secrets.token_hex(6)
        self._n = self._part = 0
        self._place = None
        self._header = schema.header_row(
            info,
            request,
            environment,
            conditions,
            timing=timing,
            time=datetime.now().astimezone(),
            content=self._content,
        )
        self._header_bytes = self._write("header", {**self._header, "part": self._part})
        return self._generation

    def prefill(self, last: PrefillProgress, *, token: bool = True) -> None:
        """Once, with the prefill's last progress. token: see `StatsBuilder.prefill`."""
        self._write("prefill", schema.prefill_row(last, token))

    def round(self, round_: Round) -> None:
        self._write("round", schema.round_row(round_, self._content))

    def notice(self, notice: Notice) -> None:
        self._write("notice", schema.notice_row(notice))
        self.flush()

    def end(self, finished: Finished) -> None:
        """The footer. Everything of this generation is with the system afterwards."""
        self._write("footer", schema.footer_row(finished, self._content))
        self.flush()

    def take_notice(self) -> Notice | None:
        """Says once that the log has switched itself off, and why."""
        notice, self._notice = self._notice, None
        return notice

    def flush(self) -> None:
        """Hands the waiting lines to the system."""
        if not self._pending:
            return
        block, self._pending = b"".join(self._pending), []
        try:
            self._append(block)
        except OSError as error:
            self._fail(error)

    def _write(self, kind: str, row: schema.Row) -> int:
        """Returns the size of the line in bytes."""
        if self._failed:
            return 0
        now = self._clock()
        if not self._pending:
            self._oldest = now
        line = self._line(kind, self._n, row)
        self._pending.append(line)
        self._n += 1
        if len(self._pending) >= GROUP_LINES or now - self._oldest >= GROUP_SECONDS:
            self.flush()
        return len(line)

    def _line(self, kind: str, n: int, row: schema.Row) -> bytes:
        # ASCII only: a lone surrogate in a text cannot break the line, and any tool reads it.
        fields = {"kind": kind, "gen": self._generation, "n": n, **row}
        return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"

    def _append(self, block: bytes) -> None:
        """Opened per group, not held open: a file that someone moved or deleted costs nothing but itself."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # With a header that fills a file every group would begin another one, and push the reply's own lines out.
        limit = max(self._max_bytes, 2 * self._header_bytes)
        for look in range(LOOKS):
            with self._path.open("ab") as file:
                size = os.fstat(file.fileno()).st_size
                if size == 0 or size + len(block) <= limit or look == LOOKS - 1:
                    self._size = self._write_block(file, block)
                    return
                if self._alone_with(file):
                    self._rotate()
            # Now, or in a moment when another process rotates, another file is in its place.

    def _write_block(self, file: BinaryIO, block: bytes) -> int:
        """Append; returns the size of the file then."""
        status = os.fstat(file.fileno())
        size, place = status.st_size, (status.st_dev, status.st_ino)
        # A new file may have the inode of one that was deleted, so that its size is asked as well.
        if self._place is not None and (size == 0 or size < self._size or place != self._place):
            # Every file can be read without the others.
            self._part += 1
            block = self._line("header", 0, {**self._header, "part": self._part}) + block
        if size and size != self._size and not self._ends_with_newline():
            block = b"\n" + block  # whoever wrote before us was cut off in a line
        file.write(block)
        self._place = place
        return size + len(block)

    def _alone_with(self, file: BinaryIO) -> bool:
        """Whether this process may rotate: nobody else is doing it, and nobody has since the file was opened."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # a file system without locks; two writers may rotate twice, which costs an older file
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        return False

    def _rotate(self) -> None:
        for n in range(self._files - 1, 0, -1):
            newer = self._path if n == 1 else rotated(self._path, n - 1)
            if newer.exists():
                newer.replace(rotated(self._path, n))
        self._path.unlink(missing_ok=True)  # only when a single file is kept

    def _ends_with_newline(self) -> bool:
        try:
            with self._path.open("rb") as file:
                file.seek(-1, 2)
                return file.read(1) == b"\n"
        except FileNotFoundError:  # another process has rotated it meanwhile
            return True

    def _fail(self, error: OSError) -> None:
        self._failed = True
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "the disk is full" if full else f"{error.strerror or error} ({self._path})"
        self._notice = Notice("decline", f"The session log is off: {why}. Replies are not affected.")


def rotated(path: Path, n: int) -> Path:
    """The n-th older file of a log."""
    return path.with_name(f"{path.stem}.{n}{path.suffix}")
