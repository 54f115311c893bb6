"""The Qt application object, and how the desktop sees it: icon, and files it is asked to open."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import resources

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QFileOpenEvent, QIcon, QPixmap
from PySide6.QtWidgets import QApplication


class DesktopApplication(QApplication):
    """On a Mac a file that is opened with Pacenote, or dropped on its icon, comes as an event of the application.

    An event filter would see these too, and every other event of every widget, each one through Python.
    """

    file_opened = Signal(str)

    def __init__(self, argv: list[str]) -> None:
        super().__init__(argv)
        self._waiting: list[str] | None = []
        if sys.platform != "darwin":
            # A Mac takes the icon from the bundle; Wayland finds it by the name of the .desktop file.
            self.setDesktopFileName("pacenote")
            self.setWindowIcon(application_icon())

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent):
            self._open(event.file())
            return True
        return super().event(event)

    def open_files_with(self, slot: Callable[[str], None]) -> None:
        """From now on `slot` opens files: also those that were asked for before there was a window."""
        self.file_opened.connect(slot)
        waiting, self._waiting = self._waiting, None
        for name in waiting or ():
            self.file_opened.emit(name)

    def _open(self, name: str) -> None:
        if self._waiting is not None:
            self._waiting.append(name)
        else:
            self.file_opened.emit(name)


def application_icon() -> QIcon:
    pixmap = QPixmap()
    pixmap.loadFromData((resources.files("resources") / "icons" / "pacenote.svg").read_bytes())
    return QIcon(pixmap)
