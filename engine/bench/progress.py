"""The progress file of a long run: JSON Lines, one line per finished cell, safe to interrupt anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import KnownError

Row = dict[str, Any]


class Progress:
    """What is finished already, and where the next finished cell goes.

    A torn or damaged line costs its cell, which is then run again. Lines of other keys are left alone: one
    file serves many models and versions.

    Args:
        path: the file; it and its folder are made when missing.
        key: of this run. Only lines that carry it count.
    """

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key
        self.rows: dict[str, Row] = {}
        self.damaged = 0
        self._torn = False
        self._read()

    def add(self, cell: str, row: Row) -> None:
        """Keep a finished cell, with the system before this returns.

        Raises:
            KnownError: the disk refuses.
        """
        line = json.dumps({"key": self._key, "cell": cell, **row}, separators=(",", ":")) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n" + line if self._torn else line)
        except OSError as error:
            raise KnownError(
                f"The progress file {self._path} cannot be written: {error.strerror}.",
                kept="All cells finished so far are kept.",
                todo="Free some space, or name another file with --progress.",
            ) from error
        self._torn = False
        self.rows[cell] = row

    def _read(self) -> None:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise KnownError(
                f"The progress file {self._path} cannot be read: {error.strerror}.",
                todo="Name another file with --progress.",
            ) from error
        self._torn = bool(data) and not data.endswith(b"\n")
        for line in data.splitlines():
            try:
                row = json.loads(line)
                key, cell = row.pop("key"), row.pop("cell")
            except (ValueError, AttributeError, KeyError, TypeError):
                self.damaged += bool(line.strip())
                continue
            if key == self._key:
                self.rows[cell] = row
