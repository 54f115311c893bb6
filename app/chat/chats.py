"""What the user does with chats: open, send, regenerate, edit, branch, delete, drafts. No widgets here."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.checks import Checks, receipt_text
from app.chat.drafts import Drafts
from app.chat.generations import Generations
from app.chat.item import Item, from_stored
from app.chat.requests import request_dict, request_from
from app.errorcard import as_dict
from app.settings import Settings
from app.store import Conversation, Repository, StoredMessage, StoreError
from app.store.repository import NEW_CHAT, title_from
from engine import KnownError, Message, Request, WhenFull


class Chats(QObject):
    """The chat that is open, and the list. Writes that fail leave everything as it was and emit `failed`."""

    list_changed = Signal()
    opened = Signal(bool)
    """Another chat, or another branch: show `items` anew. True: go to the end."""
    appended = Signal(object)
    """An Item was added at the end."""
    draft_changed = Signal(str)
    """Put this text into the composer."""
    sent = Signal()
    """What was in the composer is in the store."""
    editing_changed = Signal(bool)
    deleted = Signal(str)
    """Something went out of sight; the text says what. `undo` brings it back."""
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
        self.settings = settings
        self.current = NEW_CHAT
        self.search = ""
        self._editing: StoredMessage | None = None
        self._undo: Callable[[], None] | None = None
        self._drafts = Drafts(store, self)
        self._drafts.failed.connect(self.failed)

    # asking

    def conversations(self) -> list[Conversation]:
        try:
            return self._store.conversations(self.search)
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return []

    def conversation(self) -> Conversation | None:
        return self._store.conversation(self.current) if self.current else None

    def items(self) -> list[Item]:
        """The visible branch. A reply that is being written is ahead of the store."""
        if not self.current:
            return []
        try:
            path = self._store.path(self.current)
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return []
        receipts = self._store.last_receipts(self.current)
        return [self._item(message, receipts.get(message.id)) for message in path]

    def _item(self, message: StoredMessage, receipt: dict[str, Any] | None) -> Item:
        live = self._generations.item_of(message.id) or self._checks.item_of(message.id)
        if live is not None:
            return live
        item = from_stored(message)
        if receipt is not None:
            item.check = receipt_text(receipt)
        return item

    @property
    def busy(self) -> bool:
        return bool(self.current) and self._generations.busy(self.current)

    # opening

    @Slot(int)
    def open(self, number: int) -> None:
        """Show a chat; NEW_CHAT shows an empty one. The draft of the chat that is left is kept."""
        self.save_draft()
        self._end_edit()
        self.current = number
        self.opened.emit(True)
        self._restore_draft()

    @Slot()
    def new_chat(self) -> None:
        self.open(NEW_CHAT)

    def open_latest(self) -> None:
        """At start."""
        found = self.conversations()
        self.open(found[0].id if found else NEW_CHAT)

    # writing

    @Slot(str)
    def send(self, text: str) -> None:
        """Commit the user's message, then ask for a reply. When the commit fails the text stays in the composer."""
        if self.busy or not text.strip():
            return
        try:
            conversation, parent = self._place_for_message()
            message = self._store.add_user_message(
                conversation.id, parent, text, title=title_from(text), keep_draft=self._editing is not None
            )
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return
        self._drafts.forget()
        branched = self._editing is not None
        self._editing = None
        new = conversation.id != self.current
        self.current = conversation.id
        self.sent.emit()
        reply = self._reply(conversation, message.id)
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
        if self._editing is not None:
            conversation = self._store.conversation(self._editing.conversation_id)
            if conversation is not None:
                return conversation, self._editing.parent_id
        conversation = self.conversation()
        if conversation is None:
            with self._store.db.write():
                conversation = self._store.create_conversation()
                if self.settings.system_prompt:
                    self._store.set_system_prompt(conversation.id, self.settings.system_prompt)
            self._store.save_draft(NEW_CHAT, "")
            return self._store.conversation(conversation.id) or conversation, None
        path = self._store.path(conversation.id)
        return conversation, path[-1].id if path else None

    def _reply(self, conversation: Conversation, parent: int, when_full: WhenFull | None = None) -> Item | None:
        """Ask for a reply. None when that could not be saved; the user was told. when_full: in place of the setting."""
        settings = self.settings
        seed = settings.seed if settings.seed_mode == "fixed" else secrets.randbelow(2**32)
        try:
            request = Request(
                messages=self._messages(conversation, parent),
                sampler=settings.sampler(),
                seed=seed,
                max_tokens=settings.max_tokens,
                speculation=settings.how_to_speculate(),
                block_size=settings.block_size,
                thinking=settings.how_to_reason(),
                when_full=when_full or settings.what_when_full(),
            )
            message = self._store.begin_reply(
                conversation.id, parent, seed=seed, request=request_dict(request), model={}
            )
        except KnownError as error:
            self.failed.emit(as_dict(error))
            return None
        return self._generations.start(message, conversation.uid, request)

    def _messages(self, conversation: Conversation, leaf: int) -> tuple[Message, ...]:
        """The chat down to `leaf` as the engine wants it. Replies carry their segments; empty ones are left out."""
        messages: list[Message] = []
        if conversation.system_prompt:
            messages.append(Message("system", conversation.system_prompt))
        for stored in self._store.history(leaf):
            if stored.role == "user":
                messages.append(Message("user", stored.content))
            elif stored.content or stored.reasoning:
                segments = stored.reply.segments if stored.reply is not None else ()
                last = stored.reply.last_token if stored.reply is not None else None
                messages.append(Message("assistant", stored.content, stored.reasoning, segments, last))
        return tuple(messages)

    @Slot()
    def stop(self) -> None:
        if self.current:
            self._generations.stop(self.current)

    @Slot(int)
    def regenerate(self, message: int, when_full: WhenFull | None = None) -> None:
        """Another reply beside this one, with a seed of its own. On a user's message: the reply it lacks.

        when_full: for this reply, in place of the setting.
        """
        if self.busy:
            return
        try:
            stored = self._store.message(message)
            conversation = self._store.conversation(stored.conversation_id) if stored else None
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return
        if stored is None or conversation is None:
            return
        parent = stored.id if stored.role == "user" else stored.parent_id
        if parent is None:
            return
        self._reply(conversation, parent, when_full)
        self.opened.emit(True)
        self.list_changed.emit()

    def check(self, item: Item) -> None:
        """Verify a reply: replay it by classic decode."""
        try:
            stored = self._store.message(item.id)
            conversation = self._store.conversation(stored.conversation_id) if stored else None
            if stored is None or conversation is None or stored.reply is None or stored.parent_id is None:
                return
            messages = self._messages(conversation, stored.parent_id)
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return
        self._checks.start(item, stored, request_from(stored.reply.request, messages, stored.reply.seed))

    @Slot()
    def regenerate_last(self) -> None:
        items = self.items()
        if items:
            self.regenerate(items[-1].id)

    @Slot(int)
    def edit(self, message: int) -> None:
        """Put a user's message into the composer; sending makes a branch. What was in the composer is its draft."""
        if self.busy:
            return
        stored = self._store.message(message)
        if stored is None or stored.role != "user":
            return
        self.save_draft()
        self._editing = stored
        self.editing_changed.emit(True)
        self.draft_changed.emit(stored.content)

    @Slot()
    def edit_last(self) -> None:
        users = [item for item in self.items() if item.role == "user"]
        if users:
            self.edit(users[-1].id)

    @Slot()
    def cancel_edit(self) -> None:
        if self._editing is not None:
            self._end_edit()
            self._restore_draft()

    def _end_edit(self) -> None:
        if self._editing is not None:
            self._editing = None
            self.editing_changed.emit(False)

    @Slot(int, int)
    def switch_branch(self, message: int, step: int) -> None:
        if not self.busy and self._try(lambda: self._store.switch_branch(message, step)):
            self.opened.emit(False)

    # deleting

    @Slot(int)
    def delete_conversation(self, number: int) -> None:
        """Out of sight, with undo. Its reply, if one is being written, is stopped and kept."""
        conversation = self._store.conversation(number)
        if conversation is None:
            return
        self._generations.stop(number)
        if not self._try(lambda: self._store.delete_conversation(number)):
            return
        was_current = number == self.current
        self._undo = lambda: self._bring_back(number, was_current)
        if was_current:
            self.open_latest()
        self.list_changed.emit()
        self.deleted.emit(f"Deleted “{conversation.title or 'New chat'}”")

    def _bring_back(self, number: int, show: bool) -> None:
        self._store.restore_conversation(number)
        if show:
            # Before the list is filled: it marks the chat that is open.
            self.open(number)
        self.list_changed.emit()

    @Slot(int)
    def delete_message(self, message: int) -> None:
        """Out of sight, with what follows it on this branch, and with undo."""
        if self.busy:
            return
        if self._try(lambda: self._store.delete_message(message)):
            self._undo = lambda: self._restore_message(message)
            self.opened.emit(False)
            self.deleted.emit("Deleted a message and what followed it")

    def _restore_message(self, message: int) -> None:
        self._store.restore_message(message)
        self.opened.emit(False)

    @Slot()
    def undo(self) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            self._try(undo)

    def rename(self, number: int, title: str) -> None:
        if title.strip() and self._try(lambda: self._store.rename(number, title)):
            self.list_changed.emit()

    # drafts

    def note_draft(self, text: str) -> None:
        """The composer's text."""
        if self._editing is None:
            self._drafts.note(self.current, text)

    @Slot()
    def save_draft(self) -> None:
        self._drafts.save()

    def _restore_draft(self) -> None:
        self.draft_changed.emit(self._drafts.read(self.current))
        self._drafts.forget()

    def _try(self, action: Callable[[], object]) -> bool:
        try:
            action()
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return False
        return True
