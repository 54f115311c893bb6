"""Brings the engine's events to the GUI thread, in small batches 50 ms apart, only while there are any."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.worker import EngineThread

INTERVAL_MS = 50
BATCH = 500
"""Most events in one turn of the event loop, so that a very fast engine cannot hold the GUI thread. Also on a slow
machine they are about 10 ms of work; 4,000 were 60 and more with what they made the window draw."""
BEHIND_MS = 5
"""Until the next turn while a whole batch waits: the event loop does what else is due in between."""


class Pump(QObject):
    """Lives on the GUI thread. `arrived` carries a list of Envelope.

    As an object: as a list, Qt would convert each envelope, for each slot.
    """

    arrived = Signal(object)

    def __init__(self, thread: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread = thread
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self.drain)
        thread.woke.connect(self._on_woke)

    @Slot()
    def _on_woke(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    @Slot()
    def drain(self) -> None:
        """Hand on what has arrived; rest when there is nothing."""
        batch = self._thread.take(BATCH)
        waiting = self._thread.waiting
        if batch:
            self._timer.setInterval(BEHIND_MS if waiting >= BATCH else INTERVAL_MS)
            self.arrived.emit(batch)
        elif not waiting:
            self._timer.stop()

    def drain_all(self) -> None:
        """Hand on everything at once, at quit."""
        while batch := self._thread.take(BATCH):
            self.arrived.emit(batch)
        self._timer.stop()
