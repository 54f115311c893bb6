"""What the desktop asks of the application, and what it shows of it: files to open, the icon, the licences."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

import pytest
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import licences
from app.desktop import DesktopApplication
from app.store import export
from app.window import MainWindow
from tests.unit.app.test_window import ask


@pytest.fixture
def desktop(qapp: QApplication) -> DesktopApplication:
    """The application as at its start: nothing opens files yet."""
    assert isinstance(qapp, DesktopApplication)
    qapp._waiting = []
    return qapp


def test_a_chat_that_is_opened_with_the_application_is_imported(
    qtbot: QtBot, desktop: DesktopApplication, window: MainWindow, tmp_path: Path
) -> None:
    """A Mac tells which file was double-clicked, often before there is a window: both times it is imported once."""
    ask(qtbot, window, "keep this")
    store = window.services.store
    file = tmp_path / "chat.json"
    file.write_text(export.to_json(store, [window.services.chats.current]), "utf-8")
    QApplication.sendEvent(desktop, QFileOpenEvent(str(file)))
    assert len(store.conversations()) == 1, "nobody listens yet"
    desktop.open_files_with(window.import_file)
    assert len(store.conversations()) == 2
    QApplication.sendEvent(desktop, QFileOpenEvent(str(file)))
    assert len(store.conversations()) == 3
    assert window.transcript.items[0].content == "keep this"
    desktop.file_opened.disconnect()


def test_a_file_that_is_no_chat_is_said_in_words(
    desktop: DesktopApplication, window: MainWindow, tmp_path: Path
) -> None:
    """Any .json can be opened with Pacenote; nothing is added, and the window says why."""
    (tmp_path / "other.json").write_text('{"name": "no chat"}')
    desktop.open_files_with(window.import_file)
    for name in ("other.json", "gone.json"):
        window.banner.hide()
        QApplication.sendEvent(desktop, QFileOpenEvent(str(tmp_path / name)))
        assert window.banner.isVisible()
    assert "could not be read" in window.banner.text
    desktop.file_opened.disconnect()


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac takes the icon from the bundle")
def test_the_application_has_its_icon(qapp: QApplication) -> None:
    """Without a name of its .desktop file Wayland shows a generic icon."""
    assert qapp.desktopFileName() == "pacenote"
    assert not qapp.windowIcon().pixmap(64).isNull()


def test_licences_are_those_that_the_bundle_collected(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a bundle its collected texts; elsewhere the project's own, which name the demo model's sources."""
    window.actions_by_key["licences"].trigger()
    dialog = window.findChild(licences.LicencesDialog)
    shown = dialog.text.toPlainText()
    assert "Apache License" in shown
    assert "WordNet" in shown
    dialog.reject()
    (tmp_path / "licences.txt").write_text("of all parts", "utf-8")
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    assert licences.text() == "of all parts"
