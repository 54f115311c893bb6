"""Starting: without a display, twice, after a crash, with a damaged home."""

from __future__ import annotations

import errno
import faulthandler
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app import dialogs, display, main, paths
from app.application import Application, open_window
from app.crash import CrashLog
from app.single import SingleInstance
from app.store import Database, Repository, StoreError
from app.store.database import DamagedStore
from engine import KnownError
from tests.unit.app.fakes import FakeLoader


def test_without_a_display_it_names_the_terminal_chat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main.main(["pacenote"]) == 2
    assert "pacenote chat" in capsys.readouterr().err


@pytest.fixture
def nothing_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux without any display."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DISPLAY", ":98765"),
        ("DISPLAY", "unix:71.0"),
        ("DISPLAY", "127.0.0.1:58999"),
        ("DISPLAY", "nonsense"),
        ("WAYLAND_DISPLAY", "wayland-71"),
        ("QT_QPA_PLATFORM", "xcb"),
    ],
)
def test_a_display_that_does_not_answer_is_said_and_does_not_abort(
    nothing_shown: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    """With a dead DISPLAY Qt aborted the process: exit 134 and a core."""
    monkeypatch.setenv(name, value)
    assert main.main(["pacenote"]) == 2
    said = capsys.readouterr().err
    assert "pacenote chat" in said
    assert value in said or name == "QT_QPA_PLATFORM"


def test_a_display_that_answers_is_used(nothing_shown: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as x, socket.socket(socket.AF_UNIX) as wayland, socket.socket() as far:
        x.bind(str(tmp_path / "X71"))
        wayland.bind(str(tmp_path / "wayland-71"))
        far.bind(("127.0.0.1", 0))
        for server in (x, wayland, far):
            server.listen()
        monkeypatch.setattr(display, "X_SOCKETS", tmp_path)
        monkeypatch.setattr(display, "X_PORT", far.getsockname()[1] - 10)
        for answers in (":71", "unix:71.0"):
            monkeypatch.setenv("DISPLAY", answers)
            assert display.why_none() == ""
        monkeypatch.setenv("DISPLAY", "127.0.0.1:10.0")
        assert display.why_none() == ""
        monkeypatch.delenv("DISPLAY")
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-71")
        assert display.why_none() == ""
        monkeypatch.setenv("WAYLAND_DISPLAY", str(tmp_path / "wayland-71"))
        assert display.why_none() == ""


def test_a_platform_set_by_hand_needs_no_display(nothing_shown: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert display.why_none() == ""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What modal dialogs say."""
    said: list[str] = []
    monkeypatch.setattr(QMessageBox, "exec", lambda box: said.append(f"{box.text()} {box.informativeText()}"))
    return said


def test_a_home_that_is_a_file_is_told(
    qapp: QApplication, home: Path, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It was a traceback."""
    home.write_text("")
    assert open_window(qapp) == 1
    for said in (told[0], capsys.readouterr().err):
        assert "cannot write to its folder" in said
        assert str(home) in said
        assert "set PACENOTE_HOME" in said


def test_a_home_that_takes_no_lock_is_told_and_not_taken_for_another_window(
    qapp: QApplication, told: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A read-only or full home: the lock failed, that was read as "another window is open", and nothing was said."""
    monkeypatch.setattr(paths.Paths, "lock", property(lambda where: where.data / "missing" / "pacenote.lock"))
    assert open_window(qapp) == 1
    for said in (told[0], capsys.readouterr().err):
        assert "cannot write to its folder" in said
        assert "set PACENOTE_HOME" in said


def test_a_full_disk_at_start_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(KnownError, match="disk is full") as caught:
        paths.resolve()
    assert "Free some space" in caught.value.todo


def test_a_second_start_that_is_not_heard_says_so(
    qapp: QApplication, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first = SingleInstance(paths.resolve().lock)
    assert first._server is not None
    first._server.close()
    assert open_window(qapp) == 1
    assert "does not answer" in told[0]
    assert "does not answer" in capsys.readouterr().err
    first.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_window_in_order(
    qapp: QApplication, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Ctrl-C in the terminal was a KeyboardInterrupt inside a timer, and the window stayed."""
    closed: list[str] = []
    real = Application.close

    def close(application: Application) -> None:
        closed.append("visible" if application.window.isVisible() else "closed")
        real(application)

    monkeypatch.setattr(Application, "close", close)
    before = signal.getsignal(number)
    timer = QTimer()
    timer.setSingleShot(True)
    timer.timeout.connect(lambda: os.kill(os.getpid(), number))
    timer.start(50)
    assert open_window(qapp, loader) == 0
    assert closed == ["closed"]
    assert signal.getsignal(number) is before
    # A second request to quit may wait in the queue; no other test is to meet it.
    qapp.processEvents()
    QTimer.singleShot(0, qapp.quit)
    qapp.exec()


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


@pytest.mark.parametrize("fresh", [True, False])
def test_a_damaged_store_can_be_moved_aside_and_is_kept(
    qapp: QApplication, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch, *, fresh: bool
) -> None:
    """The window said to move it away and ended; nothing did so."""
    where = paths.resolve()
    where.database.write_bytes(b"garbage " * 1000)
    monkeypatch.setattr(dialogs, "start_empty", lambda error: fresh)
    QTimer.singleShot(300, qapp.quit)
    assert open_window(qapp, loader) == (0 if fresh else 1)
    kept = list(where.data.glob("chats.db.damaged-*"))
    assert len(kept) == fresh
    assert (kept[0] if fresh else where.database).read_bytes() == b"garbage " * 1000
    if fresh:
        assert where.database.read_bytes().startswith(b"SQLite format 3")
    qapp.processEvents()
    QTimer.singleShot(0, qapp.quit)
    qapp.exec()


def test_damage_in_the_middle_of_the_store_is_met_at_the_start(tmp_path: Path) -> None:
    """It was met later, when the window was open and could not offer anything."""
    path = tmp_path / "chats.db"
    store = Repository(Database(path))
    for n in range(200):
        store.create_conversation(f"chat {n} " + "x" * 200)
    store.db.close()
    whole = bytearray(path.read_bytes())
    for page in range(2, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(whole)
    with pytest.raises(DamagedStore):
        Database(path)
