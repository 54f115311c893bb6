"""Session logs leave the window in every form, of chosen chats, with words only when the settings allow them."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app import paths, sessionlog
from app.happenings import Ids
from app.panel.logexport import KINDS, LogExport
from app.replay import DEMO_INFO, ScriptedEngine
from app.services import Services
from app.sessionlog import SessionLogs
from app.settings.table import Settings
from app.store import Database, Repository
from engine import ExportKind, Finished, KnownError, Message, Request, read_logs
from tests.unit.app.fakes import FakeLoader

SECRET = "only the user knows"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The logs of two chats; a third never had a reply."""
    place = tmp_path / "sessions"
    place.mkdir()
    for uid in ("one", "two"):
        write(SessionLogs(place), uid)
    return place


def write(logs: SessionLogs, uid: str) -> Finished:
    """A reply of the scripted engine, logged as the engine's thread does it."""
    engine = ScriptedEngine(lambda _: ("", SECRET * 9))
    request = Request((Message("user", SECRET),), seed=3)
    logs.begin(Ids(1, 1, 1, uid, "m"), DEMO_INFO, request, True)
    last = None
    for event in engine.generate(request, threading.Event()):
        logs.write(event)
        last = event
    assert logs.end() is None
    assert isinstance(last, Finished)
    return last


@pytest.fixture
def dialog(qtbot: QtBot, folder: Path) -> LogExport:
    made = LogExport(folder, [("one", "First"), ("two", "Second"), ("none", "Empty")], "two")
    qtbot.addWidget(made)
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    return made


def ask_for(monkeypatch: pytest.MonkeyPatch, target: Path | None) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(target) if target else "", ""))


def test_the_open_chat_is_chosen_and_others_may_be(dialog: LogExport) -> None:
    """Chats without a log are not offered, and with none chosen there is nothing to press."""
    assert dialog.list.count() == 2
    assert dialog.chosen() == ["two"]
    dialog.list.item(0).setCheckState(Qt.CheckState.Checked)
    assert dialog.chosen() == ["one", "two"]
    for row in range(2):
        dialog.list.item(row).setCheckState(Qt.CheckState.Unchecked)
    assert not dialog.export.isEnabled()


@pytest.mark.parametrize("kind", list(ExportKind))
def test_every_form_is_written(
    qtbot: QtBot, dialog: LogExport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: ExportKind
) -> None:
    target = tmp_path / f"out{kind.suffix}"
    ask_for(monkeypatch, target)
    dialog.kind.setCurrentIndex(dialog.kind.findData(kind))
    dialog.list.item(0).setCheckState(Qt.CheckState.Checked)
    with qtbot.waitSignal(dialog.exported) as told:
        dialog.export.click()
    assert told.args == [f"Exported to {target.name}"]
    text = target.read_text()
    assert SECRET not in text
    if kind is ExportKind.LINES:
        assert [g.complete for g in read_logs([target]).generations] == [True, True]
    elif kind is ExportKind.REPLIES:
        assert len(list(csv.DictReader(text.splitlines()))) == 2
    assert set(KINDS) == set(ExportKind)


def test_what_fails_is_told_and_leaves_the_dialog(
    qtbot: QtBot, dialog: LogExport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog.show()
    ask_for(monkeypatch, None)
    dialog.export.click()
    assert dialog.isVisible(), "cancelled"
    ask_for(monkeypatch, tmp_path / "missing" / "out.jsonl")
    with qtbot.waitSignal(dialog.failed) as told:
        dialog.export.click()
    assert "could not be exported" in told.args[0]["what"]
    assert dialog.isVisible()
    dialog.reject()


def test_a_damaged_log_is_exported_and_it_is_said(
    qtbot: QtBot, folder: Path, dialog: LogExport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "two.jsonl").open("ab") as file:
        file.write(b'{"kind":"rou')
    ask_for(monkeypatch, tmp_path / "out.jsonl")
    with qtbot.waitSignal(dialog.exported) as told:
        dialog.export.click()
    assert told.args == ["Exported to out.jsonl; the log has 1 damaged place"]


def test_words_are_logged_only_when_the_settings_allow_it(tmp_path: Path) -> None:
    """The setting counts from the next reply on."""
    settings = Settings()
    assert settings.log_text is False
    logs = SessionLogs(tmp_path, lambda: settings.log_text)
    write(logs, "a")
    assert SECRET not in (tmp_path / "a.jsonl").read_text()
    settings = dataclasses.replace(settings, log_text=True)
    write(logs, "a")
    assert SECRET in (tmp_path / "a.jsonl").read_text()
    assert oct((tmp_path / "a.jsonl").stat().st_mode)[-3:] == "600"
    with pytest.raises(KnownError, match="no session log yet"):
        sessionlog.export(tmp_path, ["b"], ExportKind.LINES, tmp_path / "x")


def test_the_log_goes_when_its_chat_is_gone_for_good(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may hold the words of the chat, and once stayed for ever. A chat that may come back keeps its log."""
    where = paths.resolve()
    uids = {}
    with contextlib.closing(Database(where.database)) as database:
        store = Repository(database)
        for name in ("kept", "deleted", "gone"):
            chat = store.create_conversation(name)
            uids[name] = chat.uid
            write(SessionLogs(where.sessions, lambda: True), chat.uid)
            (where.sessions / f"{chat.uid}.1.jsonl").write_text("")
            if name != "kept":
                with monkeypatch.context() as patch:
                    patch.setattr("app.store.repository.time.time", lambda name=name: 1e9 if name == "gone" else 4e9)
                    store.delete_conversation(chat.id)
        (where.sessions / "somebody.jsonl").write_text("")
    services = Services(where, FakeLoader())
    left = {path.name for path in where.sessions.iterdir()}
    assert left == {
        "somebody.jsonl", *(f"{uids[name]}{part}.jsonl" for name in ("kept", "deleted") for part in ("", ".1")),
    }  # fmt: skip
    services.close()
    services.deleteLater()
