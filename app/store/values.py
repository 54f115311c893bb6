"""What the store gives out: plain values, no connection behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from app.store.attachments import Attachment, compose
from engine import Segment


class State(StrEnum):
    """Where a message stands. Only an assistant message is ever anything but complete."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    STOPPED = "stopped"  # by the user
    INTERRUPTED = "interrupted"  # the program ended while it streamed
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Conversation:
    """One line of the list. Times are seconds since the epoch."""

    id: int
    uid: str
    title: str
    created_at: float
    updated_at: float
    system_prompt: str = ""
    sampler: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """How an assistant message came to be."""

    seed: int
    request: dict[str, Any]
    model: dict[str, Any]
    segments: tuple[Segment, ...] = ()
    last_token: int | None = None
    end_reason: str | None = None
    figures: dict[str, Any] | None = None
    notices: tuple[dict[str, str], ...] = ()
    error: dict[str, str] | None = None

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens of the reply; empty when it was not finished."""
        decoded = tuple(t for segment in self.segments if segment.kind == "decode" for t in segment.tokens)
        return decoded if self.last_token is None else (*decoded, self.last_token)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One node of a conversation's tree.

    branch / branches: which of the siblings this is (from 1) and how many there are.
    """

    id: int
    uid: str
    conversation_id: int
    parent_id: int | None
    role: Literal["user", "assistant"]
    content: str
    reasoning: str
    state: State
    created_at: float
    branch: int = 1
    branches: int = 1
    reply: Reply | None = field(default=None)
    attachments: tuple[Attachment, ...] = ()

    @property
    def read(self) -> str:
        """What the model reads of it."""
        return compose(self.content, self.attachments) if self.attachments else self.content


@dataclass(frozen=True, slots=True)
class Draft:
    """Unsent text and what is attached to it."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt that is kept for later."""

    id: int
    name: str
    text: str
