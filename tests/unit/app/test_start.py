"""Starting: without a display, twice, after a crash, with a damaged home."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app import main, paths
from app.application import Application
from app.crash import CrashLog
from app.single import SingleInstance
from app.store import StoreError
from tests.unit.app.fakes import FakeLoader


def test_without_a_display_it_names_the_terminal_chat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main.main(["pacenote"]) == 2
    assert "pacenote chat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("DISPLAY", ":0", True),
        ("WAYLAND_DISPLAY", "wayland-0", True),
        ("QT_QPA_PLATFORM", "offscreen", True),
        ("QT_QPA_PLATFORM", "xcb", False),
    ],
)
def test_what_counts_as_a_display(monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: bool) -> None:
    for other in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main.has_display() is expected


def test_a_second_start_raises_the_first(qtbot: QtBot, tmp_path: Path) -> None:
    first = SingleInstance(tmp_path / "lock")
    assert first.first
    with qtbot.waitSignal(first.raised):
        second = SingleInstance(tmp_path / "lock")
        assert not second.first
        assert second.knock()
    first.close()
    third = SingleInstance(tmp_path / "lock")
    assert third.first
    third.close()


def test_an_escaped_exception_is_written_down_and_told(tmp_path: Path, qapp: QApplication) -> None:
    crash = CrashLog(tmp_path / "crash.log")
    told: list[str] = []
    crash.bug.connect(told.append)
    hook, thread_hook, was_on = sys.excepthook, threading.excepthook, faulthandler.is_enabled()
    crash.install()
    try:
        try:
            raise ValueError("escaped")
        except ValueError as error:
            sys.excepthook(type(error), error, error.__traceback__)
        thread = threading.Thread(target=_fail)
        thread.start()
        thread.join()
        qapp.processEvents()
    finally:
        crash.remove()
        sys.excepthook, threading.excepthook = hook, thread_hook
        if was_on:
            faulthandler.enable()
    text = (tmp_path / "crash.log").read_text()
    assert "ValueError: escaped" in text
    assert "KeyError: 'in a thread'" in text
    assert len(told) == 2


def _fail() -> None:
    raise KeyError("in a thread")


def test_a_crash_is_shown_at_the_next_start_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "crash.log"
    path.write_text("Fatal Python error: Segmentation fault\n")
    crash = CrashLog(path)
    assert "Segmentation fault" in crash.previous
    assert (tmp_path / "crash.previous.log").exists()
    crash.remove()
    assert not path.exists(), "nothing to tell, no file"
    again = CrashLog(path)
    assert again.previous == ""
    again.remove()


def test_native_crashes_are_caught(tmp_path: Path) -> None:
    """In a process of its own, since it dies."""
    code = (
        "import sys; from pathlib import Path; from app.crash import CrashLog; import faulthandler\n"
        "c = CrashLog(Path(sys.argv[1])); c.install(); faulthandler._sigsegv()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "crash.log")], check=False, timeout=60)
    assert done.returncode != 0
    again = CrashLog(tmp_path / "crash.log")
    again.remove()
    assert "Segmentation fault" in again.previous


def test_the_application_starts_and_shows_what_it_found(
    qtbot: QtBot, qapp: QApplication, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(QMessageBox, "show", lambda box: shown.append(box.text()))
    where = paths.resolve()
    where.crash_log.write_text("Fatal Python error")
    where.settings.write_text("[sampling]\ntemperature = 'hot'\n")
    was_on = faulthandler.is_enabled()
    application = Application(qapp, where, loader)
    application.start()
    qtbot.waitUntil(lambda: application.services.loader.info is not None)
    assert shown == ["Pacenote ended unexpectedly the last time", "Some settings could not be used."]
    application.services.generations.bug.emit("Traceback: x")
    assert shown[-1] == "Pacenote made a mistake"
    error = StoreError("The disk is full.", todo="Free some space.")
    sys.excepthook(StoreError, error, None)
    assert "The disk is full." in application.window.banner.text, "no bug of ours, so no crash log"
    application.window.close()
    application.close()
    assert "disk is full" not in where.crash_log.read_text()
    assert "Traceback: x" in where.crash_log.read_text()
    if was_on:
        faulthandler.enable()
    application.window.deleteLater()
    application.theme.setParent(None)
    application.theme.deleteLater()
    application.deleteLater()
