"""One message as the transcript shows it. The controller changes it; a view only reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app import figures
from app.chat.trace import Trace
from app.store import Attachment
from app.store.values import State, StoredMessage


@dataclass(slots=True)
class Item:
    """waiting: what the engine does before the first word, in words. caption: the figures of a finished reply.

    can_check: the reply's tokens are known, so it can be replayed. check: how that stands or ended, in words.
    trace: which text came of which round; None until the speculation view asks, or when it is not known.
    """

    id: int
    role: Literal["user", "assistant"]
    content: str
    reasoning: str = ""
    state: State = State.COMPLETE
    branch: int = 1
    branches: int = 1
    waiting: str = ""
    caption: str = ""
    caption_tip: str = ""
    error: dict[str, str] | None = None
    end_note: str = ""
    check: str = ""
    can_check: bool = False
    figures: dict[str, Any] | None = None
    attachments: tuple[Attachment, ...] = ()
    end_reason: str = ""
    trace: Trace | None = None

    @property
    def streaming(self) -> bool:
        return self.state is State.STREAMING

    @property
    def can_go_on(self) -> bool:
        """Whether the reply was cut, by its budget, by Stop, by an error or by the end of the program."""
        if self.role != "assistant" or not (self.content or self.reasoning):
            return False
        cut = self.state in (State.STOPPED, State.INTERRUPTED, State.FAILED)
        return cut or (self.state is State.COMPLETE and self.end_reason == "budget")


def from_stored(message: StoredMessage) -> Item:
    """The item of a message in the store."""
    item = Item(
        id=message.id,
        role=message.role,
        content=message.content,
        reasoning=message.reasoning,
        state=message.state,
        branch=message.branch,
        branches=message.branches,
        attachments=message.attachments,
    )
    if message.reply is not None:
        reply = message.reply
        item.error = reply.error
        notices = [notice["text"] for notice in reply.notices]
        item.caption, item.caption_tip = caption(reply.figures, reply.seed, reply.end_reason, notices)
        item.end_reason = reply.end_reason or ""
        item.end_note = end_note(reply.end_reason)
        item.can_check = reply.last_token is not None
        item.figures = reply.figures
    return item


def caption(
    stats: dict[str, Any] | None, seed: int, end_reason: str | None, notices: Sequence[str] = ()
) -> tuple[str, str]:
    """(one line, tool tip) for the figures of a reply, empty when it has none. stats: `stats_dict` of ReplyStats."""
    if not stats:
        return "", ""
    parts = [figures.count(stats["tokens"], "token")]
    if stats["tokens"] > 1:  # the first token comes with the prompt, so one alone has no speed
        parts.append(figures.speed(stats["tokens_per_second"]))
    parts.append(f"first after {figures.seconds(stats['prefill_seconds'])}")
    if stats["drafted"]:
        parts.append(f"accepted {figures.percent(stats['acceptance_rate'])}")
    tip = [
        f"Prompt: {figures.count(stats['prompt_tokens'], 'token')}, {stats['restored_tokens']:,} kept from before",
        f"Rounds: {stats['rounds']:,}, drafts: {stats['drafted']:,}, accepted: {stats['accepted']:,}",
        f"Mean acceptance length: {stats['mean_acceptance_length']:.2f}",
        f"Seed: {seed}",
    ]
    if end_reason:
        tip.append(f"Ended by: {end_reason}")
    return "  ·  ".join(parts), "\n".join([*tip, *notices])


def end_note(reason: str | None) -> str:
    """A line for an end that is not the reply's own."""
    return {
        "budget": "Cut at the longest reply that the settings allow.",
        "context full": "Cut: the model's context is full.",
    }.get(reason or "", "")
