"""Unsent messages, one per chat, written to disk when the typing pauses."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.errorcard import as_dict
from app.store import Draft, Repository, StoreError

PAUSE_MS = 500


class Drafts(QObject):
    """Holds the newest draft of one chat until it is written."""

    failed = Signal(dict)

    def __init__(self, store: Repository, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._waiting: tuple[int, Draft] | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.save)

    def note(self, conversation: int, draft: Draft) -> None:
        """What is in the composer now."""
        self._waiting = (conversation, draft)
        self._timer.start()

    def forget(self) -> None:
        """What waits was sent, or was shown and not typed."""
        self._timer.stop()
        self._waiting = None

    @Slot()
    def save(self) -> None:
        """Write what waits, now."""
        waiting = self._waiting
        self.forget()
        if waiting is not None:
            try:
                self._store.save_draft(*waiting)
            except StoreError as error:
                self.failed.emit(as_dict(error))

    def read(self, conversation: int) -> Draft:
        try:
            return self._store.draft(conversation)
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return Draft()
