"""One reply that is queued or being written."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from app.chat.item import Item
from app.chat.trace import Packer, Trace, unpack
from app.happenings import Ids
from app.panel.meter import stats_dict
from app.store.values import State, StoredMessage
from engine import Finished, ReplyStats, Text, merge, read_stats

OTHER_WORDS = "Not continued: the same request gives other words now than it did. Press Regenerate for a new reply."
"""Another version of MLX may do that. What was written is kept."""


@dataclass(slots=True)
class Live:
    """A reply between its request and its end.

    before: what it was, when it goes on after it was cut. Its text is then told again from the beginning, and what
    is on screen stays until what is told goes beyond it. stored_trace: its rounds, as the store has them. refused: why
    it does not go on after all.
    """

    ids: Ids
    item: Item
    seed: int
    before: StoredMessage | None = None
    model: dict[str, Any] | None = None
    notices: list[dict[str, str]] = field(default_factory=list)
    stored_trace: bytes | None = None
    refused: str = ""
    dirty: bool = False
    trace: Trace = field(init=False)
    _begun_rounds: int = field(init=False)
    _packer: Packer = field(init=False)
    _told: dict[str, str] = field(default_factory=lambda: {"answer": "", "reasoning": ""})
    _heard: dict[str, list[str]] = field(default_factory=lambda: {"answer": [], "reasoning": []})

    def __post_init__(self) -> None:
        self.trace = self.item.trace = unpack(self.stored_trace) or Trace()
        self._begun_rounds = len(self.trace.rounds)
        self._packer = Packer(self.trace)

    def hear(self, text: Text) -> None:
        """More of the reply. `tell` shows it."""
        self._heard[text.channel].append(text.text)
        if self.before is not None:
            # At once: whether the reply goes on has to be known before its next round.
            self.tell()

    def tell(self) -> None:
        """Show what was heard, once for many texts: to make a long string longer copies it.

        A reply that is told otherwise than it was is refused, and what is there stays.
        """
        if not any(self._heard.values()):
            return
        for channel, parts in self._heard.items():
            self._told[channel] += "".join(parts)
            parts.clear()
        if self.before is not None and not self._agrees(self.before):
            self.refused = OTHER_WORDS
            return
        self._show(self._told["answer"], self._told["reasoning"])
        self.dirty = True

    def pack_more(self) -> None:
        """Pack rounds that came since, so that little is left for the end."""
        if len(self.trace.rounds) > self._begun_rounds:
            self._packer.catch_up()

    def packed_trace(self) -> bytes | None:
        """All rounds as they are stored, once the reply has ended."""
        return self._packer.finish() if len(self.trace.rounds) > self._begun_rounds else self.stored_trace

    def _agrees(self, before: StoredMessage) -> bool:
        pairs = ((before.content, self._told["answer"]), (before.reasoning, self._told["reasoning"]))
        # The part may end inside a character; the whole has it.
        return all(new.startswith(old.rstrip("\ufffd")) or old.startswith(new) for old, new in pairs)

    def finish(self, finished: Finished) -> None:
        """The whole reply, unless it ended before it was where it had been."""
        self._show(finished.answer, finished.reasoning)

    def fell_short(self, finished: Finished) -> bool:
        """Whether it ended before it was where it had been: then it is what it was."""
        before = self.before
        if before is None:
            return False
        tokens = before.reply.tokens if before.reply is not None else ()
        if tokens:
            return len(finished.tokens) <= len(tokens)
        was, told = (before.content, before.reasoning), (finished.answer, finished.reasoning)
        return was != told and all(old.startswith(new) for old, new in zip(was, told, strict=True))

    def _show(self, answer: str, reasoning: str) -> None:
        before = self.before
        self.item.content = _longer(before.content if before else "", answer)
        self.item.reasoning = _longer(before.reasoning if before else "", reasoning)

    def figures(self, stats: ReplyStats) -> dict[str, Any]:
        """Of the whole reply: what it had before is of the same reply, and its prompt was read then."""
        reply = self.before.reply if self.before is not None else None
        if reply is None or not reply.tokens or not reply.figures:
            return stats_dict(stats)
        first = read_stats(reply.figures)
        return stats_dict(
            dataclasses.replace(
                merge([first, stats]),
                prompt_tokens=first.prompt_tokens,
                restored_tokens=first.restored_tokens,
                prefill_seconds=first.prefill_seconds,
            )
        )

    def as_before(self) -> dict[str, Any]:
        """What the store had of it, for a reply that did not go on: nothing of it may get lost."""
        reply = self.before.reply if self.before is not None else None
        if reply is None:
            return {}
        return {"segments": reply.segments, "last_token": reply.last_token, "figures": reply.figures}


def refusal(before: StoredMessage, weights_hash: str, name: str) -> str:
    """Why a reply does not go on with this model: another one wrote it. "" when it does."""
    model = before.reply.model if before.reply is not None else {}
    written = model.get("weights_hash")
    if written is None or written == weights_hash:
        return ""
    return f"Not continued: {model.get('name') or 'another model'} wrote this, and {name} is loaded."


def state_before(before: StoredMessage) -> State:
    return before.state if before.state is not State.STREAMING else State.INTERRUPTED


def _longer(shown: str, told: str) -> str:
    """What is told, once it is beyond what is shown; at once where it says something else."""
    return shown if len(told) < len(shown) and shown.startswith(told) else told
