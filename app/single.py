"""One window per user: a second start raises the first one's window and ends."""

from __future__ import annotations

import hashlib
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from app.paths import cannot_write

TIMEOUT_MS = 1000


class SingleInstance(QObject):
    """`first` says whether we are the one. The first one emits `raised` when another start knocks.

    Raises KnownError when the lock cannot be written: then nothing else could be either.
    """

    raised = Signal()

    def __init__(self, lock: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = "pacenote-" + hashlib.sha256(str(lock).encode()).hexdigest()[:16]
        self._lock = QLockFile(str(lock))
        # A lock whose process is gone is taken over; a slow start must not be taken for dead.
        self._lock.setStaleLockTime(0)
        self.first = self._lock.tryLock(100)
        reason = self._lock.error()
        if not self.first and reason is not QLockFile.LockError.LockFailedError:
            raise cannot_write(lock.parent, f"{lock}: {reason.name}")
        self._server: QLocalServer | None = None
        if self.first:
            self._listen()

    def _listen(self) -> None:
        # What a killed process left behind would make listen fail; we hold the lock, so it is nobody's.
        QLocalServer.removeServer(self._name)
        server = QLocalServer(self)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        server.newConnection.connect(self._on_knock)
        server.listen(self._name)
        self._server = server

    def knock(self) -> bool:
        """Ask the first instance to show itself. Returns whether it heard."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        heard = socket.waitForConnected(TIMEOUT_MS)
        socket.disconnectFromServer()
        return heard

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._lock.unlock()

    @Slot()
    def _on_knock(self) -> None:
        server = self._server
        while server is not None and server.hasPendingConnections():
            server.nextPendingConnection().deleteLater()
            self.raised.emit()
