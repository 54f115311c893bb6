"""One SQLite connection: pragmas, migrations with a backup, transactions, and errors in words."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from app.paths import make_private
from app.store.schema import MIGRATIONS
from engine import KnownError

SUFFIXES = ("", "-wal", "-shm")
"""Of the files that belong together."""

CHECKED_BYTES = 64 << 20
"""A file up to this size is checked at every start."""


class StoreError(KnownError):
    """The conversations file cannot be read or written."""


class DamagedStore(StoreError):
    """The conversations file is damaged. `move_aside` makes room for an empty one."""


class Database:
    """The conversations file. Use from one thread only.

    Raises StoreError when the file is newer than this program, damaged, or cannot be opened.
    """

    def __init__(self, path: Path, migrations: Sequence[str] = MIGRATIONS) -> None:
        self.path = path
        # Before the first word is in it. SQLite gives its two side files the mode of this one.
        with contextlib.suppress(OSError):
            path.touch(mode=0o600)
        for suffix in SUFFIXES:
            make_private(path.with_name(path.name + suffix))
        try:
            # isolation_level None: transactions are exactly those opened by `write`.
            self.connection = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        except sqlite3.Error as error:
            raise explain(error, path) from error
        self.connection.row_factory = sqlite3.Row
        # For searches: SQLite's own knows the cases of ASCII only.
        self.connection.create_function("fold", 1, str.casefold, deterministic=True)
        try:
            self._check()
            self._migrate(migrations)
            # WAL with NORMAL: a killed program loses nothing that was committed; a power cut at most the last moments.
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = NORMAL")
            self.connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error as error:
            self.connection.close()
            raise explain(error, path) from error
        except StoreError:
            self.connection.close()
            raise

    def _check(self) -> None:
        """Damage in the middle of the file, before anything is written to it. Larger files are not read through."""
        if self.path.stat().st_size <= CHECKED_BYTES:
            found = self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise explain(sqlite3.DatabaseError(f"malformed: {found}"), self.path)

    def _migrate(self, migrations: Sequence[str]) -> None:
        version = int(self.connection.execute("PRAGMA user_version").fetchone()[0])
        if version > len(migrations):
            raise StoreError(
                f"Your chats were written by a newer Pacenote (format {version}, this one reads {len(migrations)}).",
                kept="Nothing was changed in the file.",
                todo="Open them with the newer Pacenote, or move the file away to start an empty one.",
                detail=str(self.path),
            )
        if version == len(migrations):
            return
        if version > 0:
            self._backup(version)
        for target in range(version + 1, len(migrations) + 1):
            # executescript commits what is open, so the transaction is written into the script.
            script = f"BEGIN IMMEDIATE;\n{migrations[target - 1]}\nPRAGMA user_version = {target};\nCOMMIT;"
            try:
                self.connection.executescript(script)
            except sqlite3.Error:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def _backup(self, version: int) -> None:
        backup = self.path.with_name(f"{self.path.name}.v{version}.backup")
        backup.touch(mode=0o600)
        make_private(backup)
        copy = sqlite3.connect(backup)
        try:
            self.connection.backup(copy)
        finally:
            copy.close()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing. Nested use joins the outer one. Raises StoreError."""
        if self.connection.in_transaction:
            yield self.connection
            return
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
            except BaseException:
                self._rollback()
                raise
            try:
                self.connection.execute("COMMIT")
            except BaseException:
                self._rollback()
                raise
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def _rollback(self) -> None:
        # SQLite has already rolled back by itself after some errors (a full disk among them).
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """All rows of a query. Raises StoreError."""
        try:
            return list(self.connection.execute(sql, values))
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def row(self, sql: str, *values: object) -> sqlite3.Row | None:
        """The first row of a query, None when there is none. Raises StoreError."""
        found = self.rows(sql, *values)
        return found[0] if found else None

    def close(self) -> None:
        self.connection.close()


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """What an SQLite error means for the user."""
    text = str(error)
    low = text.lower()
    if "full" in low:
        what, todo = "The disk is full, so the chat cannot be saved.", "Free some space, then try again."
    elif "readonly" in low or "unable to open" in low:
        what, todo = "The conversations file cannot be written.", "Check the permissions of its folder."
    elif "locked" in low or "busy" in low:
        what, todo = "Another program holds the conversations file.", "Close it, then try again."
    elif "fts5" in low or "no such tokenizer" in low:
        what = f"This SQLite ({sqlite3.sqlite_version}) cannot search text: FTS5 with trigrams is missing."
        todo = "Run Pacenote with a Python whose SQLite is 3.34 or newer with FTS5."
    elif "malformed" in low or "not a database" in low:
        return DamagedStore(
            "The conversations file is damaged.",
            kept="It is left as it is.",
            todo="A start of Pacenote that meets the damage offers to move the file aside and begin an empty one.",
            detail=f"{path}\n{type(error).__name__}: {text}",
        )
    else:
        what, todo = "The conversations file could not be used.", "Try again; if it stays, report the detail."
    return StoreError(
        what, kept="What was saved before is safe.", todo=todo, detail=f"{path}\n{type(error).__name__}: {text}"
    )


def move_aside(path: Path) -> Path:
    """Keep a damaged file, and what belongs to it, under another name. Returns that name. Raises StoreError."""
    target = path.with_name(f"{path.name}.damaged-{datetime.now().astimezone():%Y-%m-%d-%H%M%S}")
    try:
        for suffix in reversed(SUFFIXES):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.rename(target.with_name(target.name + suffix))
    except OSError as error:
        raise StoreError(
            "The damaged conversations file could not be moved.",
            kept="It is left as it is.",
            todo="Check the permissions of its folder.",
            detail=f"{path}: {error}",
        ) from error
    return target
