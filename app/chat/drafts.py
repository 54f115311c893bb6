"""Unsent messages, one per chat, written to disk while they are typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.errorcard import as_dict
from app.store import Draft, Repository, StoredMessage, StoreError

Result = TypeVar("Result")


class Place(NamedTuple):
    """Where a draft belongs: to a chat, or to a message that is edited."""

    conversation: int
    message: int | None = None


PAUSE_MS = 500
"""A crash costs what was typed in that time."""


class Drafts(QObject):
    """Holds the newest draft until it is written, and every one that the disk would not take."""

    failed = Signal(dict)

    def __init__(self, store: Repository, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._waiting: tuple[Place, Draft | None] | None = None
        self._unsaved: dict[Place, Draft | None] = {}
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.save)

    def note(self, conversation: int, draft: Draft) -> None:
        """What is in the composer now."""
        self._wait(Place(conversation), draft)

    def note_edit(self, message: StoredMessage, draft: Draft) -> None:
        """What is in the composer now, of an earlier message."""
        changed = draft != Draft(message.content, message.attachments)
        self._wait(Place(message.conversation_id, message.id), draft if changed else None)

    def _wait(self, place: Place, draft: Draft | None) -> None:
        self._waiting = (place, draft)
        if not self._timer.isActive():  # somebody who never pauses is saved all the same
            self._timer.start()

    def forget(self) -> None:
        """What waits was shown and not typed."""
        self._timer.stop()
        self._waiting = None

    def sent(self, conversation: int, message: int | None) -> None:
        """What was written is in the store as a message. message: the one that was edited, if any."""
        self.forget()
        self._unsaved.pop(Place(conversation, message), None)

    @Slot()
    def save(self) -> None:
        """Write what waits, now."""
        if self._waiting is not None:
            place, draft = self._waiting
            self._unsaved[place] = draft
        self.forget()
        for place, draft in list(self._unsaved.items()):
            try:
                if place.message is not None:
                    self._store.save_edit(place.message, draft)
                else:
                    self._store.save_draft(place.conversation, draft or Draft())
                del self._unsaved[place]
            except StoreError as error:
                self.failed.emit(as_dict(error))
                return

    def read(self, conversation: int) -> Draft:
        place = Place(conversation)
        return self._unsaved.get(place) or self._attempt(lambda: self._store.draft(conversation), Draft())

    def read_edit(self, message: StoredMessage) -> Draft:
        """What a message is changed to so far."""
        place = Place(message.conversation_id, message.id)
        if place in self._unsaved:
            kept = self._unsaved[place]
        else:
            kept = self._attempt(lambda: self._store.edit(message.id), None)
        return kept or Draft(message.content, message.attachments)

    def give_up(self, message: StoredMessage) -> None:
        """What a message was changed to is not wanted."""
        self._waiting = (Place(message.conversation_id, message.id), None)
        self.save()

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
