"""Unsent messages, one per chat, written to disk while they are typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.errorcard import as_dict
from app.store import Draft, Repository, StoredMessage, StoreError

Result = TypeVar("Result")
PAUSE_MS = 500
"""A crash costs what was typed in that time."""


class Drafts(QObject):
    """Holds the newest draft of one chat until it is written."""

    failed = Signal(dict)

    def __init__(self, store: Repository, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._waiting: Callable[[], None] | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.save)

    def note(self, conversation: int, draft: Draft) -> None:
        """What is in the composer now."""
        self._wait(lambda: self._store.save_draft(conversation, draft))

    def note_edit(self, message: StoredMessage, draft: Draft) -> None:
        """What is in the composer now, of an earlier message."""
        changed = draft != Draft(message.content, message.attachments)
        self._wait(lambda: self._store.save_edit(message.id, draft if changed else None))

    def _wait(self, save: Callable[[], None]) -> None:
        self._waiting = save
        if not self._timer.isActive():  # somebody who never pauses is saved all the same
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
            self._attempt(waiting, None)

    def read(self, conversation: int) -> Draft:
        return self._attempt(lambda: self._store.draft(conversation), Draft())

    def read_edit(self, message: StoredMessage) -> Draft:
        """What a message is changed to so far."""
        return self._attempt(lambda: self._store.edit(message.id), None) or Draft(message.content, message.attachments)

    def give_up(self, message: StoredMessage) -> None:
        """What a message was changed to is not wanted."""
        self.forget()
        self._attempt(lambda: self._store.save_edit(message.id, None), None)

    def last_edit(self, conversation: int) -> StoredMessage | None:
        """The visible message that was changed last and not sent."""

        def look() -> StoredMessage | None:
            changed = self._store.edits(conversation)
            visible = {message.id: message for message in self._store.path(conversation)} if changed else {}
            return next((visible[number] for number in changed if number in visible), None)

        return self._attempt(look, None)

    def _attempt(self, action: Callable[[], Result], otherwise: Result) -> Result:
        try:
            return action()
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return otherwise
