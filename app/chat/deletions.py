"""Deleting chats and messages: out of sight at once, and back with one undo."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.errorcard import as_dict
from app.store import Repository, StoreError


class Deletions(QObject):
    """The store's side of it; signals say what the window must show anew."""

    failed = Signal(dict)
    deleted = Signal(str)
    """Something went out of sight; the text says what. `undo` brings it back."""
    conversation_gone = Signal(int)
    conversation_back = Signal(int, bool)
    """(conversation, whether it was the open one)"""
    messages_changed = Signal()

    def __init__(self, store: Repository, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._undo: Callable[[], None] | None = None

    def conversation(self, number: int, *, is_open: bool) -> None:
        found = self._store.conversation(number)
        if found is None or not self.attempt(lambda: self._store.delete_conversation(number)):
            return
        self._undo = lambda: self._bring_back(number, is_open)
        self.conversation_gone.emit(number)
        self.deleted.emit(f"Deleted “{found.title or 'New chat'}”")

    def message(self, message: int) -> None:
        """With what follows it on this branch."""
        followed = self._store.is_followed(message)
        if self.attempt(lambda: self._store.delete_message(message)):
            self._undo = lambda: self._restore_message(message)
            self.messages_changed.emit()
            self.deleted.emit("Deleted a message and what followed it" if followed else "Deleted a message")

    @Slot()
    def undo(self) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            self.attempt(undo)

    def _bring_back(self, number: int, show: bool) -> None:
        self._store.restore_conversation(number)
        self.conversation_back.emit(number, show)

    def _restore_message(self, message: int) -> None:
        self._store.restore_message(message)
        self.messages_changed.emit()

    def attempt(self, action: Callable[[], object]) -> bool:
        """Whether a write went well; when not, `failed` tells."""
        try:
            action()
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return False
        return True
