"""Brings the engine's events to the GUI thread, in batches 50 ms apart, only while there are any."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.worker import EngineThread

INTERVAL_MS = 50
BATCH = 4000
"""Most events per batch: about 20 ms of work, so that a very fast engine cannot hold the GUI thread."""


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
        if batch:
            self.arrived.emit(batch)
        elif not self._thread.has_events():
            self._timer.stop()

    def drain_all(self) -> None:
        """Hand on everything at once, at quit."""
        while batch := self._thread.take(BATCH):
            self.arrived.emit(batch)
        self._timer.stop()
