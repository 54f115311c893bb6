"""Fixtures of the window's tests: offscreen Qt, a home of its own for every test, and nothing left running."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from weakref import WeakSet

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QThread, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app import paths
from app.application import make_qt
from app.chat import transcript as transcripts
from app.chat.transcript import Transcript
from app.services import Services
from app.settings.table import Settings
from app.store import Database, Repository
from app.theme import Theme
from app.window import MainWindow
from tests.unit.app.fakes import FakeLoader

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A Qt warning fails a test. What the offscreen platform says about itself does not."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))
            item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", extend=True))


@pytest.fixture(scope="session")
def qapp_cls() -> Callable[[list[str]], QApplication]:
    return make_qt


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and chats of this test only."""
    monkeypatch.setenv("PACENOTE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """All messages in view are made at once, however slow the machine; how they are made in turns has its own test."""
    monkeypatch.setattr(transcripts, "MAKE_MS", 1e6)


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails when a test leaves a running QThread, an active QTimer or a Python thread behind."""
    started: WeakSet[QThread | QTimer] = WeakSet()
    real_timer, real_thread = QTimer.start, QThread.start

    def timer_start(self: QTimer, *values: object) -> None:
        started.add(self)
        real_timer(self, *values)

    def thread_start(self: QThread, *values: object) -> None:
        started.add(self)
        real_thread(self, *values)

    monkeypatch.setattr(QTimer, "start", timer_start)
    monkeypatch.setattr(QThread, "start", thread_start)
    before = set(threading.enumerate())
    yield
    if QCoreApplication.instance() is not None:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    left = [
        thing
        for thing in started
        if isValid(thing) and (thing.isRunning() if isinstance(thing, QThread) else thing.isActive())
    ]
    assert not left, f"still running: {[(type(t).__name__, t.objectName(), t.parent()) for t in left]}"
    threads = {t for t in threading.enumerate() if t.is_alive()} - before
    assert not [t for t in threads if not t.name.startswith("Dummy")], threads


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Repository]:
    database = Database(tmp_path / "chats.db")
    yield Repository(database)
    database.close()


@pytest.fixture
def transcript(qtbot: QtBot) -> Transcript:
    """An empty one on screen."""
    made = Transcript()
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def loader() -> FakeLoader:
    return FakeLoader()


@pytest.fixture
def services(qapp: QApplication, qtbot: QtBot, loader: FakeLoader) -> Iterator[Services]:
    """Everything behind the window, with the scripted engine loaded."""
    made = Services(paths.resolve(), loader)
    # One temperature for all tests; the script does not care.
    made.change_settings(Settings())
    made.start()
    qtbot.waitUntil(lambda: made.loader.info is not None)
    yield made
    loader.release()
    made.close()
    made.deleteLater()


@pytest.fixture
def window(qapp: QApplication, qtbot: QtBot, services: Services) -> Iterator[MainWindow]:
    theme = Theme(qapp, "light")
    made = MainWindow(services, theme)
    made.resize(1100, 700)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.toast._timer.stop()
    made.close()
    made.deleteLater()
    theme.setParent(None)
    theme.deleteLater()
