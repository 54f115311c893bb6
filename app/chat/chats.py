"""What the user does with chats: open, send, regenerate, edit, branch, delete, drafts. No widgets here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.asking import Asking
from app.chat.checks import Checks
from app.chat.deletions import Deletions
from app.chat.drafts import Drafts
from app.chat.generations import Generations
from app.chat.item import Item, from_stored
from app.chat.options import ChatOptions, OwnOptions
from app.chat.shown import Shown
from app.chat.trace import Trace
from app.errorcard import as_dict
from app.settings import Settings
from app.store import Conversation, Draft, Repository, StoredMessage, StoreError
from app.store.hits import located
from app.store.repository import NEW_CHAT, title_from
from engine import WhenFull

Read = TypeVar("Read")


class Chats(QObject):
    """The chat that is open, and the list. Writes that fail leave everything as it was and emit `failed`."""

    list_changed = Signal()
    opened = Signal(bool)
    """Another chat, or another branch: show `items` anew. True: go to the end."""
    located = Signal(int)
    """The chat was opened by a search, and this is the message that has its words."""
    appended = Signal(object)
    """An Item was added at the end."""
    leaving = Signal()
    """The composer is about to be filled anew: what is in it is noted now, or it is lost."""
    draft_changed = Signal(object)
    """Put this Draft into the composer."""
    sent = Signal()
    """What was in the composer is in the store."""
    editing_changed = Signal(bool)
    deleted = Signal(str)
    """Something went out of sight; the text says what. `undo` brings it back."""
    options_changed = Signal()
    failed = Signal(dict)

    def __init__(
        self,
        store: Repository,
        generations: Generations,
        checks: Checks,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._generations = generations
        self._checks = checks
        self._shown = Shown(store, generations, checks)
        self._asking = Asking(store, generations, settings, self)
        self._asking.failed.connect(self.failed)
        self._options = OwnOptions(store)
        self.current = NEW_CHAT
        self.search = ""
        self._editing: StoredMessage | None = None
        self._deletions = Deletions(store, self)
        self._deletions.failed.connect(self.failed)
        self._deletions.deleted.connect(self.deleted)
        self._deletions.conversation_gone.connect(self._on_gone)
        self._deletions.conversation_back.connect(self._on_back)
        self._deletions.messages_changed.connect(self._on_messages_changed)
        self._drafts = Drafts(store, self)
        self._drafts.failed.connect(self.failed)

    # asking

    def conversations(self) -> list[Conversation]:
        return self._read(lambda: self._store.conversations(self.search), [])

    def _read(self, ask: Callable[[], Read], otherwise: Read) -> Read:
        """What the store says; `otherwise`, and told, when it cannot be read."""
        try:
            return ask()
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return otherwise

    def conversation(self) -> Conversation | None:
        return self._store.conversation(self.current) if self.current else None

    def items(self) -> list[Item]:
        """The visible branch."""
        return self._read(lambda: self._shown.items(self.current), [])

    @property
    def busy(self) -> bool:
        return bool(self.current) and self._generations.busy(self.current)

    # what a chat has of its own

    @property
    def settings(self) -> Settings:
        return self._asking.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._asking.settings = settings

    @property
    def options(self) -> ChatOptions:
        """Of the open chat. A chat that does not exist yet has the settings', or what was chosen for it."""
        return self._options.read(self.conversation(), self.settings)

    @Slot(int, object)
    def set_options(self, number: int, options: ChatOptions) -> None:
        """For replies from now on. Those that are written keep the system prompt that they were written with."""
        self._deletions.attempt(lambda: self._options.write(number, options))
        self.options_changed.emit()

    # opening

    @Slot(int)
    def open(self, number: int) -> None:
        """Show a chat; NEW_CHAT shows an empty one. The draft of the chat that is left is kept."""
        self.leaving.emit()
        self.save_draft()
        self._end_edit()
        self.current = number
        # The branch that is being written stays.
        hit = self._read(lambda: located(self._store, number, self.search, stay=self.busy), None)
        self.opened.emit(True)
        edited = None if self.busy else self._drafts.last_edit(number)
        if edited is not None:
            self._go_into(edited)
        else:
            self._restore_draft()
        if hit is not None:
            self.located.emit(hit)

    @Slot()
    def new_chat(self) -> None:
        self.open(NEW_CHAT)

    def open_latest(self) -> None:
        """At start."""
        found = self.conversations()
        self.open(found[0].id if found else NEW_CHAT)

    # writing

    @Slot(str)
    def send_text(self, text: str) -> None:
        """`send` without attachments."""
        self.send(Draft(text))

    @Slot(object)
    def send(self, draft: Draft) -> None:
        """Commit the user's message, then ask for a reply. When the commit fails the text stays in the composer."""
        text, attachments = draft.text, draft.attachments
        if self.busy or not (text.strip() or attachments):
            return
        try:
            conversation, parent = self._place_for_message()
            message = self._store.add_user_message(
                conversation.id,
                parent,
                text,
                attachments=attachments,
                title=title_from(text if text.strip() else attachments[0].name),
                edited=self._editing.id if self._editing is not None else None,
            )
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return
        self._drafts.sent(self.current, self._editing.id if self._editing is not None else None)
        branched = self._editing is not None
        self._editing = None
        new = conversation.id != self.current
        self.current = conversation.id
        self.sent.emit()
        reply = self._asking.reply(conversation, message.id)
        if branched or new:
            self.editing_changed.emit(False)
            self.opened.emit(True)
        else:
            self.appended.emit(from_stored(message))
            if reply is not None:
                self.appended.emit(reply)
        self.list_changed.emit()
        if branched:
            self._restore_draft()

    def _place_for_message(self) -> tuple[Conversation, int | None]:
        """The chat and the parent for what is being sent. A chat that does not exist yet is made."""
        conversation, edited = self.conversation(), self._editing
        if conversation is None:
            return self._options.create_chat(self.settings), None
        # What it followed may have been deleted meanwhile: there it would be out of sight.
        if edited is not None and (edited.parent_id is None or self._store.in_sight(edited.parent_id)):
            return conversation, edited.parent_id
        path = self._store.path(conversation.id)
        return conversation, path[-1].id if path else None

    @Slot()
    def stop(self) -> None:
        if self.current:
            self._generations.stop(self.current)

    @Slot(int)
    def regenerate(self, message: int, when_full: WhenFull | None = None) -> None:
        """Another reply beside this one, with a seed of its own. On a user's message: the reply it lacks.

        when_full: for this reply, in place of the setting.
        """
        found = self._asking.find(message)
        if self.busy or found is None:
            return
        stored, conversation = found
        parent = stored.id if stored.role == "user" else stored.parent_id
        if parent is None:
            return
        self._asking.reply(conversation, parent, when_full)
        self.opened.emit(True)
        self.list_changed.emit()

    def check(self, item: Item) -> None:
        """Verify a reply: replay it by classic decode."""
        found = self._asking.again(item.id)
        if found is not None:
            self._checks.start(item, *found)

    @Slot(int)
    def go_on(self, message: int) -> None:
        """Let a reply that was cut go on."""
        found = self._asking.find(message)
        if self.busy or found is None or not from_stored(found[0]).can_go_on:
            return
        stored, conversation = found
        if self._asking.go_on(conversation, stored) is not None:
            self.opened.emit(True)
            self.list_changed.emit()

    @Slot()
    def go_on_last(self) -> None:
        items = self.items()
        if items:
            self.go_on(items[-1].id)

    def trace_of(self, message: int) -> Trace | None:
        """Which text of a reply came of which round; None when that is not known."""
        return self._read(lambda: self._shown.trace(message), None)

    @Slot()
    def regenerate_last(self) -> None:
        items = self.items()
        if items:
            self.regenerate(items[-1].id)

    @Slot(int)
    def edit(self, message: int) -> None:
        """Put a user's message into the composer; sending makes a branch. What was in the composer is kept."""
        stored = self._read(lambda: self._store.message(message), None)
        if self.busy or stored is None or stored.role != "user":
            return
        self.leaving.emit()
        self.save_draft()
        self._go_into(stored)

    def _go_into(self, message: StoredMessage) -> None:
        self._editing = message
        self.editing_changed.emit(True)
        self.draft_changed.emit(self._drafts.read_edit(message))
        self._drafts.forget()

    @Slot()
    def edit_last(self) -> None:
        users = [item for item in self.items() if item.role == "user"]
        if users:
            self.edit(users[-1].id)

    @Slot()
    def cancel_edit(self) -> None:
        """The message is to stay as it is."""
        if self._editing is not None:
            self._drafts.give_up(self._editing)
            self._end_edit()
            self._restore_draft()

    def _end_edit(self) -> None:
        if self._editing is not None:
            self._editing = None
            self.editing_changed.emit(False)

    @Slot(int, int)
    def switch_branch(self, message: int, step: int) -> None:
        if not self.busy and self._deletions.attempt(lambda: self._store.switch_branch(message, step)):
            self.opened.emit(False)

    # deleting

    @Slot(int)
    def delete_conversation(self, number: int) -> None:
        """Out of sight, with undo. Its reply, if one is being written, is stopped and kept."""
        self._generations.stop(number)
        self._deletions.conversation(number, is_open=number == self.current)

    @Slot(int)
    def delete_message(self, message: int) -> None:
        """Out of sight, with what follows it on this branch, and with undo."""
        if not self.busy:
            self._deletions.message(message)

    @Slot()
    def undo(self) -> None:
        self._deletions.undo()

    @Slot(int)
    def _on_gone(self, number: int) -> None:
        if number == self.current:
            self.open_latest()
        self.list_changed.emit()

    @Slot(int, bool)
    def _on_back(self, number: int, show: bool) -> None:
        if show:
            # Before the list is filled: it marks the chat that is open.
            self.open(number)
        self.list_changed.emit()

    @Slot()
    def _on_messages_changed(self) -> None:
        self.opened.emit(False)
        # A search may find the chat no longer, or again.
        self.list_changed.emit()

    def rename(self, number: int, title: str) -> None:
        if title.strip() and self._deletions.attempt(lambda: self._store.rename(number, title)):
            self.list_changed.emit()

    # drafts

    def note_draft(self, draft: Draft) -> None:
        """What is in the composer."""
        if self._editing is None:
            self._drafts.note(self.current, draft)
        else:
            self._drafts.note_edit(self._editing, draft)

    @Slot()
    def save_draft(self) -> None:
        self._drafts.save()

    def _restore_draft(self) -> None:
        self.draft_changed.emit(self._drafts.read(self.current))
        self._drafts.forget()
