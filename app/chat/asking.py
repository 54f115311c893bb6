"""From a chat to a request: a new reply, one that goes on, and the request that wrote a reply."""

from __future__ import annotations

import dataclasses
import secrets

from PySide6.QtCore import QObject, Signal

from app.chat.generations import Generations
from app.chat.item import Item
from app.chat.options import options_of
from app.chat.requests import request_dict, request_from
from app.errorcard import as_dict
from app.settings import Settings
from app.store import Conversation, Repository, StoredMessage, StoreError
from engine import KnownError, Message, Request, WhenFull


class Asking(QObject):
    """Starts replies. What cannot be saved is not started, and `failed` tells."""

    failed = Signal(dict)

    def __init__(
        self, store: Repository, generations: Generations, settings: Settings, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._generations = generations
        self.settings = settings

    def find(self, message: int) -> tuple[StoredMessage, Conversation] | None:
        """A message and its chat; None when one of them is gone."""
        try:
            stored = self._store.message(message)
            conversation = self._store.conversation(stored.conversation_id) if stored else None
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return None
        return (stored, conversation) if stored is not None and conversation is not None else None

    def again(self, message: int) -> tuple[StoredMessage, Request] | None:
        """A reply and the request that wrote it."""
        found = self.find(message)
        try:
            request = self._request_of(found[1], found[0]) if found is not None else None
        except StoreError as error:
            self.failed.emit(as_dict(error))
            return None
        return (found[0], request) if found is not None and request is not None else None

    def reply(self, conversation: Conversation, parent: int, when_full: WhenFull | None = None) -> Item | None:
        """Ask for a reply to `parent`. None when that could not be saved. when_full: in place of the setting."""
        settings = self.settings
        seed = settings.seed if settings.seed_mode == "fixed" else secrets.randbelow(2**32)
        try:
            request = Request(
                messages=self._messages(conversation.system_prompt, parent),
                sampler=options_of(conversation).sampling(settings),
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

    def go_on(self, conversation: Conversation, cut: StoredMessage) -> Item | None:
        """Let a reply that was cut go on, as if it had never stopped: same request, same seed, behind its tokens.

        Of a reply that the program's end cut no tokens are known. It is written again from its beginning, which
        gives the same words, and goes on from there; what is on screen stays there meanwhile.
        """
        try:
            request = self._request_of(conversation, cut)
            if request is None or cut.reply is None:
                return None
            request = dataclasses.replace(
                request,
                begun=cut.reply.tokens,
                # Neither changes the text, so what is set now counts.
                speculation=self.settings.how_to_speculate(),
                block_size=self.settings.block_size,
            )
            message = self._store.go_on(cut.id)
        except KnownError as error:
            self.failed.emit(as_dict(error))
            return None
        return self._generations.start(message, conversation.uid, request, before=cut)

    def _request_of(self, conversation: Conversation, reply: StoredMessage) -> Request | None:
        """The request that wrote a reply. Raises StoreError."""
        if reply.reply is None or reply.parent_id is None:
            return None
        kept = reply.reply.request
        # The chat's system prompt may have been changed since.
        system = str(kept.get("system", conversation.system_prompt))
        messages = self._messages(system, reply.parent_id)
        try:
            return request_from(kept, messages, reply.reply.seed)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                "How this reply was asked for cannot be read.",
                kept="Its text is intact.",
                todo="Press Regenerate for a new reply.",
                detail=f"{type(error).__name__}: {error}",
            ) from error

    def _messages(self, system: str, leaf: int) -> tuple[Message, ...]:
        """The chat down to `leaf` as the engine wants it. Replies carry their segments; empty ones are left out."""
        messages: list[Message] = [Message("system", system)] if system else []
        for stored in self._store.history(leaf):
            if stored.role == "user":
                messages.append(Message("user", stored.read))
            elif stored.content or stored.reasoning:
                segments = stored.reply.segments if stored.reply is not None else ()
                last = stored.reply.last_token if stored.reply is not None else None
                messages.append(Message("assistant", stored.content, stored.reasoning, segments, last))
        return tuple(messages)
