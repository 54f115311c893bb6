"""The check that opens the real window where nobody sees it."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, qVersion
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from app.application import Application, make_qt
from app.paths import Paths, make
from engine import Finding

OFFSCREEN = "offscreen"
WAIT_SECONDS = 20.0


def open_and_close() -> Finding:
    """Qt aborts the process where its platform plugin is missing: the check runs in a process of its own."""
    os.environ["QT_QPA_PLATFORM"] = OFFSCREEN
    started = time.monotonic()
    qt = QApplication.instance()
    if not isinstance(qt, QApplication):
        qt = make_qt(["pacenote"])
    with tempfile.TemporaryDirectory() as folder:
        application = Application(qt, make(Paths.below(Path(folder))))
        window = application.window
        try:
            window.show()
            _until_exposed(window)
            colours = _colours(window.grab().toImage())
            size = window.size()
        finally:
            window.close()
            application.close()
            window.deleteLater()
            application.deleteLater()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if colours < 2:
        raise RuntimeError("the window has one colour: nothing was drawn")
    seconds = time.monotonic() - started
    text = f"Opened, drawn and closed in {seconds:.1f} s, Qt {qVersion()}, {size.width()} x {size.height()}"
    return Finding(text, facts={"qt": qVersion(), "platform": qt.platformName(), "seconds": seconds})


def _until_exposed(window: QWidget) -> None:
    """Let the platform show it. Raises TimeoutError."""
    end = time.monotonic() + WAIT_SECONDS
    while (handle := window.windowHandle()) is None or not handle.isExposed():
        if time.monotonic() > end:
            raise TimeoutError(f"the window was not shown within {WAIT_SECONDS:.0f} s")
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 50)


def _colours(image: QImage) -> int:
    """Different colours on a grid of points."""
    return len({image.pixel(x, y) for x in range(0, image.width(), 8) for y in range(0, image.height(), 8)})
