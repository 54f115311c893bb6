"""The window's part of the self-test: its checks with injected faults, and the dialog that shows the report."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import keyring
import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

import app.main
from app.selftest import checks, window
from app.selftestdialog import SelfTestDialog
from app.store.database import StoreError
from app.window import MainWindow
from engine import KnownError, Skip

ROOT = Path(__file__).parents[3]


# -- folders -----------------------------------------------------------------------------------------------


def test_folders_are_tried_and_nothing_is_left(home: Path) -> None:
    """A fresh computer stays fresh: folders that were not there are gone again."""
    found = checks.folders()
    assert not home.exists()
    assert f"chats: {home / 'data'} (not there yet)" in found.lines[0]
    assert found.facts["PACENOTE_HOME"] == str(home)
    (home / "logs").mkdir(parents=True)
    (home / "logs/crash.log").write_text("kept")
    checks.folders()
    assert [str(path.relative_to(home)) for path in sorted(home.rglob("*"))] == ["logs", "logs/crash.log"]


def test_a_folder_that_cannot_be_made_is_an_error_in_words(home: Path) -> None:
    """A file stands where the folder should be: a fault that root meets as well."""
    home.write_text("a file")
    with pytest.raises(KnownError, match="cannot write to its folder") as wrong:
        checks.folders()
    assert "PACENOTE_HOME" in wrong.value.todo
    assert home.read_text() == "a file"


@pytest.mark.parametrize(
    ("code", "words"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "it cannot write to its folder")]
)
def test_a_disk_that_refuses_is_an_error_in_words(
    home: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def refuse(file: Path, data: bytes) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(checks, "_store", refuse)
    with pytest.raises(KnownError, match=words):
        checks.folders()
    assert not home.exists()


def test_a_disk_that_loses_bytes_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda _: b"")
    with pytest.raises(KnownError) as wrong:
        checks.folders()
    assert "reads back other bytes" in wrong.value.detail


# -- search ------------------------------------------------------------------------------------------------


class WithoutFts5(sqlite3.Connection):
    """An SQLite that was built without the search index."""

    def executescript(self, script: str) -> sqlite3.Cursor:
        if "fts5" in script:
            raise sqlite3.OperationalError("no such module: fts5")
        return super().executescript(script)


def test_search_finds_a_word_and_says_when_its_index_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sqlite3.sqlite_version in checks.search().text
    real = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return real(*arguments, factory=WithoutFts5, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(StoreError, match="FTS5 with trigrams is missing") as wrong:
        checks.search()
    assert "3.34" in wrong.value.todo


# -- keychain ----------------------------------------------------------------------------------------------


class Untouched:
    """A keychain of the system in which every access fails the test.

    No `KeyringBackend`: keyring lists every subclass, and would use it for other tests of this process.
    """

    name = "Untouched"

    def get_password(self, service: str, username: str) -> str | None:
        raise AssertionError("read")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise AssertionError("written")

    def delete_password(self, service: str, username: str) -> None:
        raise AssertionError("deleted from")


def test_the_keychain_is_named_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read it could ask the user; to write it could leave a secret behind."""
    Untouched.__module__ = "keyring.backends.somewhere"  # those of keyring itself count as the system's
    monkeypatch.setattr(keyring, "get_keyring", Untouched)
    assert "Untouched" in checks.keychain().facts["keychain"]
    from keyring.backends.fail import Keyring

    monkeypatch.setattr(keyring, "get_keyring", Keyring)
    with pytest.raises(Skip, match="no keychain that can be used"):
        checks.keychain()


# -- window ------------------------------------------------------------------------------------------------


def test_the_window_opens_and_closes(qapp: QApplication, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own; the user's is not touched. A window with nothing drawn in it fails."""
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert checks.window().text.startswith("Opened, drawn and closed")
    assert not home.exists()
    monkeypatch.setattr(window, "_colours", lambda _: 1)
    with pytest.raises(RuntimeError, match="nothing was drawn"):
        checks.window()


def test_without_qt_the_window_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PySide6.QtWidgets", None)
    with pytest.raises(Skip, match=r"Qt cannot be loaded .* pacenote chat"):
        checks.window()


# -- the program -------------------------------------------------------------------------------------------


def test_the_windows_entry_runs_the_same_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle that starts `app.main` has one argument for everything the terminal has a command for."""
    asked = []
    monkeypatch.setattr(app.main, "self_test", lambda words: asked.append(words) or 0)
    assert app.main.main(["Pacenote", "--self-test", "--out", "x.json"]) == 0
    assert asked == [["--out", "x.json"]]


def test_a_report_without_qt_and_without_a_home(tmp_path: Path) -> None:
    """The whole way, as users start it: with a tiny pair, where Qt cannot be imported and HOME cannot be written."""
    made = [sys.executable, "-m", "tests.support.tiny_pair", str(tmp_path)]
    subprocess.run(made, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow/PySide6.py").write_text("raise ImportError('libEGL.so.1 is not here')")
    (tmp_path / "home").write_text("no folder")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PACENOTE", "XDG"))},
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "shadow"), str(ROOT)]),
    }
    model = ["--model", str(tmp_path / "target"), "--head", str(tmp_path / "head")]
    words = [sys.executable, "-m", "app", "--self-test", *model, "--json"]
    done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, timeout=170, check=False)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    by_key = {check["key"]: check for check in told["checks"]}
    assert [key for key, check in by_key.items() if check["outcome"] == "failed"] == ["folders"]
    assert by_key["window"]["outcome"] == "skipped"
    assert "libEGL.so.1 is not here" in by_key["window"]["text"]
    assert by_key["tokens"]["text"] == "200 of 200 tokens are equal"
    assert told["in_one_process"] == ""


# -- the dialog --------------------------------------------------------------------------------------------


CHECK = {"key": "pair", "outcome": "ok", "text": "é loads", "todo": "", "lines": [], "facts": {}, "seconds": 1.0}
REPORT = {"time": "2026-11-29T12:00:00+00:00", "seconds": 2.0, "in_one_process": "", "checks": [CHECK]}


def prints(
    text: str, code: int = 0, before: str = "pass", after: str = "pass", report: str = json.dumps(REPORT)
) -> Any:
    """A command that prints something and writes a report as JSON, like the real one."""
    told = f"print({text!r}, flush=True); pathlib.Path(sys.argv[1]).write_text({report!r})"
    body = f"import pathlib, signal, sys, time; {before}; {told}; {after}; sys.exit({code})"
    return lambda file: [sys.executable, "-c", body, file]


@pytest.mark.parametrize(("code", "told"), [(0, "No check failed."), (1, "Some checks failed"), (7, "with status 7")])
def test_the_report_is_shown_copied_and_saved(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, told: str
) -> None:
    """Also where what is printed goes elsewhere: the words are made of the file."""
    dialog = SelfTestDialog(command=prints("", code))
    qtbot.addWidget(dialog)
    qtbot.waitUntil(lambda: not dialog.running, timeout=20_000)
    qtbot.waitUntil(dialog.copy.isEnabled)
    assert dialog.report.toPlainText().splitlines()[1:] == [
        "ok      pair  é loads",
        "1 checks in 2 s: 1 ok, 0 skipped, 0 FAILED",
    ]
    assert told in dialog.status.text()
    dialog.copy.click()
    assert QGuiApplication.clipboard().text() == dialog.report.toPlainText()
    file = tmp_path / "report.json"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(file), ""))
    dialog.save.click()
    assert json.loads(file.read_text()) == REPORT
    failures = []
    dialog.failed.connect(failures.append)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(tmp_path / "no/such"), ""))
    dialog.save.click()
    assert failures[0]["what"] == "The report could not be saved."
    dialog.close()


def test_closing_the_dialog_ends_the_process_as_ctrl_c_does(qtbot: QtBot, tmp_path: Path) -> None:
    """So that it can end its own child; one that does not listen is killed."""
    note = tmp_path / "interrupted"
    listen = f"signal.signal(signal.SIGINT, lambda *_: (open({str(note)!r}, 'w').close(), sys.exit()))"
    # Not signal.pause: a signal that comes just before it would be slept through.
    wait = "[time.sleep(0.02) for _ in range(6000)]"
    dialog = SelfTestDialog(command=prints("first line", before=listen, after=wait))
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitUntil(lambda: "first line" in dialog.report.toPlainText(), timeout=20_000)
    assert dialog.running
    dialog.close()
    assert not dialog.running
    assert note.exists()


@pytest.mark.parametrize("report", ["", "{}", "[]", '{"time": "x", "checks": []}'])
def test_what_is_printed_stays_where_no_report_was_written(qtbot: QtBot, report: str) -> None:
    dialog = SelfTestDialog(command=prints("Traceback", 1, after="sys.stderr.write('a bug')", report=report))
    qtbot.addWidget(dialog)
    qtbot.waitUntil(dialog.copy.isEnabled, timeout=20_000)
    assert dialog.report.toPlainText() == "Traceback\na bug"
    dialog.close()


def test_a_command_that_does_not_start_is_said(qtbot: QtBot) -> None:
    dialog = SelfTestDialog(command=lambda _: ["/no/such/program"])
    qtbot.addWidget(dialog)
    qtbot.waitUntil(lambda: "could not be started" in dialog.status.text())
    dialog.close()


def test_the_menu_opens_one_dialog_and_the_window_takes_it_along(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.selftestdialog._command", prints("a", after="signal.pause()"))
    window.actions_by_key["self_test"].trigger()
    first = window.self_test_dialog
    window.actions_by_key["self_test"].trigger()
    assert window.self_test_dialog is first
    assert first is not None
    first.close()
    window.actions_by_key["self_test"].trigger()
    second = window.self_test_dialog
    assert second is not None
    assert second is not first
    assert second.running
    window.close()
    assert not second.running
