"""Export and import through the menus: names without an ending, files that are none, and what is said of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app import dialogs
from app.store import Repository, export
from app.window import MainWindow
from tests.unit.app.test_hits import search
from tests.unit.app.test_window import ask

Choose = Callable[[Path | None, str], None]


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Choose:
    """What the user answers in the next file dialogs; None cancels."""

    def answer(path: Path | None, kind: str = "") -> None:
        for name in ("getSaveFileName", "getOpenFileName"):
            monkeypatch.setattr(QFileDialog, name, lambda *_, **__: (str(path) if path else "", kind))

    return answer


@pytest.mark.parametrize(
    ("name", "kind", "written"),
    [
        ("notes", dialogs.MARKDOWN, "notes.md"),
        ("notes", dialogs.JSON, "notes.json"),
        ("v1.2", dialogs.MARKDOWN, "v1.2.md"),
        ("NOTES.MD", dialogs.JSON, "NOTES.MD"),
        ("a.json", dialogs.MARKDOWN, "a.json"),
    ],
)
def test_a_name_without_an_ending_is_of_the_kind_that_was_chosen(
    qtbot: QtBot, window: MainWindow, choose: Choose, tmp_path: Path, name: str, kind: str, written: str
) -> None:
    """Bug: "notes" as Markdown became a file "notes" with JSON in it, which Import did not list."""
    ask(qtbot, window, "keep this")
    choose(tmp_path / name, kind)
    window.actions_by_key["export_chat"].trigger()
    text = (tmp_path / written).read_text("utf-8")
    assert text.startswith("# keep this" if written.lower().endswith(".md") else "{")


def test_an_ending_that_is_added_replaces_no_file(
    qtbot: QtBot, window: MainWindow, choose: Choose, tmp_path: Path
) -> None:
    """The dialog asked about the name without it."""
    ask(qtbot, window, "keep this")
    (tmp_path / "all.json").write_text("yesterday")
    choose(tmp_path / "all", dialogs.JSON)
    window.actions_by_key["export_all"].trigger()
    assert "all.json is there already" in window.banner.text
    assert (tmp_path / "all.json").read_text() == "yesterday"


def test_a_cancelled_dialog_does_and_says_nothing(qtbot: QtBot, window: MainWindow, choose: Choose) -> None:
    ask(qtbot, window, "keep this")
    choose(None, "")
    for key in ("export_chat", "export_all", "import_chats"):
        window.actions_by_key[key].trigger()
    assert window.toast.isHidden()
    assert window.banner.isHidden()
    assert len(window.services.store.conversations()) == 1


def test_an_import_ends_a_search_that_would_hide_it(
    qtbot: QtBot, window: MainWindow, choose: Choose, tmp_path: Path
) -> None:
    """Bug: the imported chat was open, and the list beside it did not have it."""
    ask(qtbot, window, "apples")
    file = tmp_path / "apples.json"
    export.write(export.to_json(window.services.store, [window.services.chats.current]), file)
    window.new_chat()
    ask(qtbot, window, "pears")
    search(qtbot, window, "pears")
    choose(file, "")
    window.actions_by_key["import_chats"].trigger()
    assert window.sidebar.search.text() == ""
    assert window.sidebar._selected() == window.services.chats.current
    assert len(window.services.store.conversations()) == 3


def test_an_export_without_chats_is_answered(window: MainWindow, choose: Choose, tmp_path: Path) -> None:
    """Bug: nothing at all happened."""
    (tmp_path / "none.json").write_text('{"pacenote": 1, "chats": []}')
    choose(tmp_path / "none.json", "")
    window.actions_by_key["import_chats"].trigger()
    assert "Imported 0 chats" in window.toast.label.text()


def test_what_is_no_file_or_too_long_is_not_read(
    store: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: a pipe held the window for good."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "long.json").write_text("x" * 100)
    (tmp_path / "latin.json").write_bytes(b"\xff\xe9")
    monkeypatch.setattr(dialogs, "MOST_IMPORT_BYTES", 99)
    for name in ("pipe.json", "long.json", "latin.json", "."):
        with pytest.raises(dialogs.KnownError, match="could not be read"):
            dialogs.read_chats(store, str(tmp_path / name))


def test_a_file_that_an_editor_gave_a_mark_is_read(store: Repository, tmp_path: Path) -> None:
    """Bug: the byte order mark that Windows editors put before UTF-8 made it "no export"."""
    chat = store.create_conversation("c")
    (tmp_path / "a.json").write_text(export.to_json(store, [chat.id]), "utf-8-sig")
    assert len(dialogs.read_chats(store, str(tmp_path / "a.json"))) == 1
