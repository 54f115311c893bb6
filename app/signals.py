"""Ctrl-C in the terminal, and a request to end from the system: both close the window in order."""

from __future__ import annotations

import contextlib
import signal
import socket
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

ENDING = (signal.SIGINT, signal.SIGTERM)


class Signals(QObject):
    """`ended`: a signal asked the program to end. Python's own handlers are put back by `close`.

    Python runs a handler only between two of its own instructions, and Qt waits in none of them. So the system writes
    a byte into a socket, which wakes Qt.
    """

    ended = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._ours, self._systems = socket.socketpair()
        for end in (self._ours, self._systems):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._ours.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_byte)
        self._handlers = {number: signal.signal(number, _note) for number in ENDING}
        self._fd = signal.set_wakeup_fd(self._systems.fileno(), warn_on_full_buffer=False)

    def close(self) -> None:
        signal.set_wakeup_fd(self._fd)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._notifier.setEnabled(False)
        self._ours.close()
        self._systems.close()

    @Slot()
    def _on_byte(self) -> None:
        numbers = b""
        with contextlib.suppress(BlockingIOError):
            numbers = self._ours.recv(64)
        if any(number in numbers for number in ENDING):
            self.ended.emit()


def _note(number: int, frame: FrameType | None) -> None:
    """Set so that the signal does not end the process; the byte in the socket does the work."""
