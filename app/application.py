"""The Qt application: made, filled, run and taken down."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication

from app import __version__, dialogs, paths
from app.crash import CrashLog
from app.desktop import DesktopApplication
from app.enginelike import Loader
from app.paths import Paths
from app.services import Services
from app.signals import Signals
from app.single import SingleInstance
from app.store.database import DamagedStore, move_aside
from app.theme import Theme
from app.theme.tokens import BODY
from app.window import MainWindow
from engine import Hub, KnownError

NOT_HEARD = KnownError(
    "Pacenote is open already, but its window does not answer.",
    kept="Nothing was changed.",
    todo="Close that window, or end its process, then start again.",
)


class Application(QObject):
    """Holds what lives as long as the window."""

    def __init__(self, qt: QApplication, where: Paths, load: Loader | None = None, hub: Hub | None = None) -> None:
        super().__init__()
        # First, because it may raise: then nothing else is left open.
        self.services = Services(where, load, self, hub=hub)
        self.crash = CrashLog(where.crash_log, self)
        self.theme = Theme(qt, self.services.settings.theme)
        self.window = MainWindow(self.services, self.theme, crash_log=where.crash_log)
        self._ending = False
        self.crash.bug.connect(self._on_bug)
        self.crash.known.connect(self.window.on_error)
        self.services.loader.bug.connect(self.crash.write)
        self.services.generations.bug.connect(self.crash.write)
        self.services.checks.bug.connect(self.crash.write)
        self.services.shelf.bug.connect(self.crash.write)

    def start(self) -> None:
        """Show the window, then begin to load: the window does not wait for the model."""
        self.crash.install()
        self.window.show()
        self.window.rehearse()
        self.services.start()
        if self.crash.previous:
            dialogs.show_bug(self.window, self.crash.previous, "Pacenote ended unexpectedly the last time")
        problems = self.services.file.problems
        if problems:
            dialogs.show_notice(self.window, "Some settings could not be used.", "\n".join(problems))

    def close(self) -> None:
        self.services.close()
        self.crash.remove()

    @Slot()
    def end(self) -> None:
        """As if the user had quit. Asked again while a question about unsaved replies is open: without an answer."""
        if self._ending:
            QApplication.exit(1)
            return
        self._ending = True
        self.window.quit()
        self._ending = False

    @Slot(str)
    def _on_bug(self, trace: str) -> None:
        dialogs.show_bug(self.window, trace)


def make_qt(argv: list[str]) -> QApplication:
    qt = DesktopApplication(argv)
    # How long the GUI thread waits for its turn while the engine's thread runs Python. It asks for one after most
    # calls into Qt, so the default of 5 ms adds up: a first paint of 40 ms took over 100 beside a fast source.
    sys.setswitchinterval(0.0002)
    qt.setApplicationName("Pacenote")
    qt.setApplicationDisplayName("Pacenote")
    qt.setApplicationVersion(__version__)
    if sys.platform != "darwin":
        # The same look on every Linux; on a Mac the native style stays.
        qt.setStyle("Fusion")
        font = qt.font()
        font.setPixelSize(BODY[0] - 1)
        qt.setFont(font)
    return qt


def run(argv: list[str], load: Loader | None = None) -> int:
    """Run until the window closes. Returns the exit status."""
    return open_window(make_qt(argv), load)


def open_window(qt: QApplication, load: Loader | None = None) -> int:
    """Run until the window closes, or say why it cannot open. Returns the exit status."""
    try:
        where = paths.resolve()
        single = SingleInstance(where.lock)
    except KnownError as error:
        return _cannot_start(error)
    if not single.first:
        return 0 if single.knock() else _cannot_start(NOT_HEARD)
    try:
        try:
            application = Application(qt, where, load)
        except DamagedStore as error:
            sys.stderr.write(f"{error}\n{error.detail}\n")
            if not dialogs.start_empty(error):
                single.close()
                return 1
            move_aside(where.database)
            application = Application(qt, where, load)
    except KnownError as error:
        single.close()
        return _cannot_start(error)
    single.raised.connect(application.window.show_and_raise)
    signals = Signals(application)
    signals.ended.connect(application.end)
    try:
        application.start()
        if isinstance(qt, DesktopApplication):
            qt.open_files_with(application.window.import_file)
        return qt.exec()
    finally:
        signals.close()
        application.close()
        single.close()


def _cannot_start(error: KnownError) -> int:
    """Said in the terminal and in a dialog: who started from a desktop sees no terminal."""
    sys.stderr.write(f"{error}\n{error.detail}\n")
    dialogs.cannot_start(error)
    return 1
