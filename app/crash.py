"""What to do about our own bugs: a crash log that survives the crash and is shown at the next start."""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import traceback
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TextIO

from PySide6.QtCore import QMessageLogContext, QObject, QtMsgType, Signal, qInstallMessageHandler

from app.errorcard import as_dict
from engine import KnownError

log = logging.getLogger("pacenote")


class CrashLog(QObject):
    """Catches what escapes: Python exceptions of any thread, Qt's fatal messages, and crashes of native code.

    `bug` carries the traceback, for a dialog. Emitted from the thread in which it happened.
    """

    bug = Signal(str)
    known = Signal(dict)
    """An error of the user's environment that nobody caught nearer to where it happened: what, kept, todo, detail."""

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self.previous = self._take_previous()
        self._file: TextIO | None = None
        try:
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            log.warning("no crash log: %s", error)

    def install(self) -> None:
        """Hook in. Undone by `remove`."""
        if self._file is not None:
            faulthandler.enable(self._file)
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        qInstallMessageHandler(_on_qt_message)

    def remove(self) -> None:
        """Hook out, and leave no file when there is nothing to tell."""
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__
        qInstallMessageHandler(None)
        if self._file is not None:
            faulthandler.disable()
            self._file.close()
            self._file = None
            if not self.path.stat().st_size:
                self.path.unlink()

    def write(self, text: str) -> None:
        """Put a bug into the log and tell the window."""
        if self._file is not None:
            self._file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')}\n{text}\n")
            self._file.flush()
        log.error("%s", text)
        self.bug.emit(text)

    def _take_previous(self) -> str:
        """What the last run left. It is kept beside the new one as crash.previous.log."""
        try:
            text = self.path.read_text("utf-8", errors="replace")
            if text.strip():
                self.path.replace(self.path.with_name("crash.previous.log"))
            return text.strip()
        except OSError:
            return ""

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        if isinstance(error, KnownError):
            log.warning("%s", error)
            self.known.emit(as_dict(error))
            return
        self.write("".join(traceback.format_exception(kind, error, trace)))

    def _on_thread_exception(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self._on_exception(args.exc_type, args.exc_value, args.exc_traceback)


def _on_qt_message(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    level = {
        QtMsgType.QtDebugMsg: logging.DEBUG,
        QtMsgType.QtInfoMsg: logging.INFO,
        QtMsgType.QtWarningMsg: logging.WARNING,
        QtMsgType.QtCriticalMsg: logging.ERROR,
        QtMsgType.QtFatalMsg: logging.CRITICAL,
    }.get(kind, logging.WARNING)
    log.log(level, "qt: %s", message)
