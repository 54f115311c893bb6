"""The Qt application: made, filled, run and taken down."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication, QMessageBox

from app import __version__, dialogs, paths
from app.crash import CrashLog
from app.paths import Paths
from app.services import Services
from app.single import SingleInstance
from app.store import StoreError
from app.theme import Theme
from app.theme.tokens import BODY
from app.window import MainWindow
from app.worker import Loader


class Application(QObject):
    """Holds what lives as long as the window."""

    def __init__(self, qt: QApplication, where: Paths, load: Loader | None = None) -> None:
        super().__init__()
        self.crash = CrashLog(where.crash_log, self)
        self.services = Services(where, load, self)
        self.theme = Theme(qt, self.services.settings.theme)
        self.window = MainWindow(self.services, self.theme, crash_log=where.crash_log)
        self.crash.bug.connect(self._on_bug)
        self.crash.known.connect(self.window.on_error)
        self.services.loader.bug.connect(self.crash.write)
        self.services.generations.bug.connect(self.crash.write)
        self.services.checks.bug.connect(self.crash.write)

    def start(self) -> None:
        """Show the window, then begin to load: the window does not wait for the model."""
        self.crash.install()
        self.window.show()
        self.services.start()
        if self.crash.previous:
            dialogs.show_bug(self.window, self.crash.previous, "Pacenote ended unexpectedly the last time")
        problems = self.services.file.problems
        if problems:
            dialogs.show_notice(self.window, "Some settings could not be used.", "\n".join(problems))

    def close(self) -> None:
        self.services.close()
        self.crash.remove()

    @Slot(str)
    def _on_bug(self, trace: str) -> None:
        dialogs.show_bug(self.window, trace)


def make_qt(argv: list[str]) -> QApplication:
    qt = QApplication(argv)
    # How long the GUI thread waits for its turn while the engine's thread runs Python. The default of 5 ms adds up.
    sys.setswitchinterval(0.001)
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
    qt = make_qt(argv)
    where = paths.resolve()
    single = SingleInstance(where.lock)
    if not single.first:
        return 0 if single.knock() else 1
    try:
        application = Application(qt, where, load)
    except StoreError as error:
        QMessageBox.critical(None, "Pacenote", f"{error}\n\n{error.detail}")
        single.close()
        return 1
    single.raised.connect(application.window.show_and_raise)
    try:
        application.start()
        return qt.exec()
    finally:
        application.close()
        single.close()
