"""What the window adds to the self-test. `engine.selftest.suite` looks `checks` up by name.

Qt is imported inside the check that opens a window, and nowhere else here."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from app import paths
from app.models.token import TokenStore
from app.paths import FULL, cannot_write
from app.store import Database, Repository
from engine import Check, Finding, Skip

SAMPLE = 256 * 1024
"""Bytes that are written to a folder and read back."""


def checks() -> Sequence[Check]:
    return (
        Check("folders", folders),
        Check("search", search),
        Check("keychain", keychain, limit=20),
        Check("window", window),
    )


def folders() -> Finding:
    """Chats, settings and logs can be written. What did not exist before is gone afterwards."""
    where = paths.locate()
    lines, facts = [], {}
    for what, folder in (("chats", where.data), ("settings", where.config), ("logs", where.logs)):
        _write_and_read(folder)
        free = shutil.disk_usage(_existing(folder)).free
        facts[what] = {"folder": str(folder), "exists": folder.exists(), "free": free}
        lines.append(f"{what}: {folder}{'' if folder.exists() else ' (not there yet)'}, {free / 2**30:.1f} GiB free")
    asked = os.environ.get("PACENOTE_HOME", "")
    if asked:
        lines.append(f"moved by PACENOTE_HOME={asked}")
    return Finding("Chats, settings and logs can be written", tuple(lines), {**facts, "PACENOTE_HOME": asked})


def _write_and_read(folder: Path) -> None:
    """Raises KnownError, the one of a start that fails there."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    probe, data = folder / f".selftest-{secrets.token_hex(4)}", secrets.token_bytes(SAMPLE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _store(probe, data)
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(folder, str(error), full=error.errno in FULL) from error
    finally:
        for place in made:
            with suppress(OSError):  # not made, or somebody else has put something in
                place.rmdir()


def _store(file: Path, data: bytes) -> None:
    with file.open("xb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    if file.read_bytes() != data:
        raise OSError(f"{file} reads back other bytes than were written")


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())


def search() -> Finding:
    """The store opens with its search index (SQLite's FTS5 with trigrams) and finds a word in the middle of another."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "chats.db")
        try:
            store = Repository(database)
            chat = store.create_conversation()
            store.add_user_message(chat.id, None, "The co-driver reads the pacenotes.")
            found = [hit.id for hit in store.conversations("cenot")]
        finally:
            database.close()
    if found != [chat.id]:
        raise RuntimeError(f"a search for a message that was just written finds {found}")
    version = sqlite3.sqlite_version
    return Finding(
        f"SQLite {version} with FTS5 and trigrams; a search finds what was written", facts={"sqlite": version}
    )


def keychain() -> Finding:
    """Its state only. Writing a secret to see whether it can be read could ask the user, and a crash would leave it."""
    import keyring

    if reason := TokenStore().refusal():
        raise Skip(f"A token for gated models would be kept nowhere: {reason}.")
    name = keyring.get_keyring().name
    return Finding(f"{name}. Nothing was read from it and nothing written to it", facts={"keychain": name})


def window() -> Finding:
    """The real window opens and closes on Qt's offscreen platform, with a home of its own and without a model."""
    try:
        import PySide6.QtWidgets  # noqa: F401
    except ImportError as error:
        raise Skip(f"Qt cannot be loaded ({error}). The terminal works without it: pacenote chat.") from error
    from app.selftest.window import open_and_close

    return open_and_close()
