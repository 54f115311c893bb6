"""The messages of a terminal chat, with what the engine needs to restore its boundaries."""

from __future__ import annotations

import random
import secrets

from engine import Finished, Message


class Conversation:
    """A linear chat. Replies keep their segments and last token, so that the next turn restores instead of reading.

    Args:
        system: the system message, "" for none.
    """

    def __init__(self, system: str = "") -> None:
        self._system = system
        self._messages: list[Message] = []
        self.clear()

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    @property
    def waits_for_reply(self) -> bool:
        return bool(self._messages) and self._messages[-1].role == "user"

    def clear(self) -> None:
        self._messages = [Message("system", self._system)] if self._system else []

    def ask(self, text: str) -> None:
        """Add the user's message. It replaces one that never got a reply."""
        if self.waits_for_reply:
            self._messages.pop()
        self._messages.append(Message("user", text))

    def take(self, finished: Finished) -> None:
        """Add a reply, also a stopped one. One without a token leaves the user's message waiting."""
        if finished.tokens:
            reply = Message(
                "assistant", finished.answer, finished.reasoning, finished.segments, last_token=finished.tokens[-1]
            )
            self._messages.append(reply)

    def withdraw_reply(self) -> bool:
        """Make the last user message wait again, for another reply. False when there is none."""
        if self._messages and self._messages[-1].role == "assistant":
            self._messages.pop()
        return self.waits_for_reply


class Seeds:
    """A seed per generation: regenerating draws another one.

    Args:
        first: the first seed; the following ones are drawn from it, so that a whole chat can be repeated.
            None: from the system.
    """

    def __init__(self, first: int | None) -> None:
        self._next = secrets.randbits(32) if first is None else first
        self._random = random.Random(self._next)

    def draw(self) -> int:
        seed, self._next = self._next, self._random.getrandbits(32)
        return seed
