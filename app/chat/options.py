"""What one chat has of its own: a system prompt, and sampling that differs from the settings."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass, field
from typing import Any

from app.settings import Settings
from app.settings.table import specs
from app.store import Conversation, Draft, Repository
from app.store.repository import NEW_CHAT
from engine import Sampler

OWN = ("temperature", "top_k", "top_p", "min_p")
"""Settings of sampling that a chat may have of its own."""
_SPECS = {spec.key: spec for spec in specs() if spec.key in OWN}


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a chat has of its own.

    sampler: only what differs; all else follows the settings.
    """

    system_prompt: str = ""
    sampler: dict[str, Any] = field(default_factory=dict)

    def sampling(self, settings: Settings) -> Sampler:
        """The settings' sampling with this chat's own values."""
        return dataclasses.replace(settings.sampler(), **self.sampler)


def options_of(conversation: Conversation) -> ChatOptions:
    """A chat's own. Values that a newer program or an imported file may hold are left out when they do not fit."""
    own: dict[str, Any] = {}
    for name, value in (conversation.sampler or {}).items():
        with contextlib.suppress(KeyError, ValueError):
            own[name] = _SPECS[name].check(value)
    return ChatOptions(conversation.system_prompt, own)


def default_options(settings: Settings) -> ChatOptions:
    """Of a chat that begins."""
    return ChatOptions(settings.system_prompt)


class OwnOptions:
    """Options of chats in the store, and of the one that does not exist yet."""

    def __init__(self, store: Repository) -> None:
        self._store = store
        self._new: ChatOptions | None = None

    def read(self, conversation: Conversation | None, settings: Settings) -> ChatOptions:
        if conversation is not None:
            return options_of(conversation)
        return self._new or default_options(settings)

    def write(self, number: int, options: ChatOptions) -> None:
        """number: of a conversation, or NEW_CHAT. Raises StoreError."""
        if number == NEW_CHAT:
            self._new = options
            return
        with self._store.db.write():
            self._store.set_system_prompt(number, options.system_prompt)
            self._store.set_sampler(number, options.sampler or None)

    def create_chat(self, settings: Settings) -> Conversation:
        """The chat that did not exist yet, with what was chosen for it; its draft is sent. Raises StoreError."""
        with self._store.db.write():
            made = self._store.create_conversation()
            self.write(made.id, self.read(None, settings))
            self._store.save_draft(NEW_CHAT, Draft())
        self._new = None
        return self._store.conversation(made.id) or made
