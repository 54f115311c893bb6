"""Whether a chat fits the model's context, and which turns are left out when that was asked for.

What is left out depends on nothing but the messages and the request, so that a reply can be replayed. It goes in
steps of a quarter of the context: every cut moves all positions behind it, so that the rest must be read again,
and cutting one turn per turn would cost a whole prefill each time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from engine.chat.prompt import Plan, plan
from engine.chat.tokenizer import Tokenizer
from engine.errors import ContextFull
from engine.request import Message, Request, WhenFull

LEAST_ROOM = 16
"""Tokens. A reply that must be shorter is no reply: a model may spend as many on its opening."""
RESERVE_SHARE = 0.25
"""Of the context, at most, that leaving out turns keeps free for the reply."""
STEP_SHARE = 0.25
"""Of the context: what is left out goes in steps of this size."""
WARN_SHARE = 0.85
"""Of the context, from which on the user is warned."""
_TEMPLATE_TOKENS = 6
"""Of a message's role and end markers, roughly."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A chat that fits. dropped: the oldest messages, that the model does not see."""

    plan: Plan
    prompt: tuple[int, ...]
    dropped: tuple[Message, ...]

    @property
    def told(self) -> str:
        """What was left out, in words; "" when nothing was. Quotes no text: notices go into the session log."""
        if not self.dropped:
            return ""
        turns = sum(m.role == "user" for m in self.dropped)
        which, stay = (f"oldest {turns} turns", "stay") if turns > 1 else ("oldest turn", "stays")
        return (
            f"The chat no longer fits the model's context. Its {which} (messages 1 to {len(self.dropped)}) {stay} in "
            f"the chat; the model does not see {'them' if turns > 1 else 'it'}."
        )


def fit(tokenizer: Tokenizer, request: Request, limit: int) -> Fit:
    """The plan for the next reply.

    Args:
        limit: tokens that the model reads.

    Raises:
        ContextFull: the chat leaves no room for a reply, and nothing may or can be left out.
        CheckpointError: the template refuses the chat.
    """
    found = _fit(tokenizer, request, ())
    least = min(LEAST_ROOM, request.max_tokens)
    if request.when_full is WhenFull.DROP_OLDEST:
        reserve = max(least, min(request.max_tokens, int(RESERVE_SHARE * limit)))
        found = _without_oldest(tokenizer, request, found, limit - reserve, int(STEP_SHARE * limit))
    if len(found.prompt) + least > limit:
        alone = bool(found.dropped) or not _fits_alone(tokenizer, request, limit - least)
        raise ContextFull(
            f"This {'message' if alone else 'chat'} has {len(found.prompt)} tokens, the model reads {limit}.",
            kept="All messages are kept.",
            todo="Shorten the message." if alone else "Leave out the oldest turns, shorten the message, or start a "
            "new chat.",
            can_drop=not alone,
        )  # fmt: skip
    return found


def warning(used: int, limit: int, when_full: WhenFull) -> str:
    """What the user should know of a context that is nearly full; "" while it is not."""
    if used < WARN_SHARE * limit:
        return ""
    then = (
        "the oldest turns are left out"
        if when_full is WhenFull.DROP_OLDEST
        else "replies are cut short and further messages refused, and nothing is lost"
    )
    share = f"{used / limit:.0%} of the model's context ({used} of {limit} tokens)"
    return f"This chat fills {share}. When it is full, {then}."


def _fits_alone(tokenizer: Tokenizer, request: Request, most: int) -> bool:
    """Whether the last turn fits without those before it; false when there are none."""
    earlier = [m for turn in _turns(request.messages)[:-1] for m in turn]
    return bool(earlier) and len(_fit(tokenizer, request, earlier).prompt) <= most


def _without_oldest(tokenizer: Tokenizer, request: Request, whole: Fit, most: int, step: int) -> Fit:
    """The chat less its oldest turns, until the prompt has `most` tokens, or only the last turn is there."""
    if len(whole.prompt) <= most:
        return whole
    cuts = _cuts(tokenizer, _turns(request.messages), max(1, step))
    if not cuts:
        return whole
    place = bisect_left(cuts[:-1], True, key=lambda cut: len(_fit(tokenizer, request, cut).prompt) <= most)
    return _fit(tokenizer, request, cuts[place])


def _cuts(tokenizer: Tokenizer, turns: Sequence[Sequence[Message]], step: int) -> list[list[Message]]:
    """What may be left out: from one cut to the next at least `step` tokens more, at last all turns but one.

    A message counts what its text alone has. Unlike its share of the prompt that never changes, so a chat that
    grows meets the same cuts again and keeps the one it has while that still fits.
    """
    cuts: list[list[Message]] = []
    dropped: list[Message] = []
    size = 0
    for n, turn in enumerate(turns[:-1]):
        dropped += turn
        size += sum(len(tokenizer.encode(m.content)) + _TEMPLATE_TOKENS for m in turn)
        if size >= step or n == len(turns) - 2:
            cuts.append(list(dropped))
            size = 0
    return cuts


def _fit(tokenizer: Tokenizer, request: Request, dropped: Sequence[Message]) -> Fit:
    system = [m for m in request.messages if m.role == "system"]
    rest = [m for m in request.messages if m.role != "system"]
    todo = plan(tokenizer, (*system, *rest[len(dropped) :]) if dropped else request.messages, request.thinking)
    return Fit(todo, tuple(t for s in todo.schedule for t in s.tokens), tuple(dropped))


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Each begins with a user's message. System messages are in none: they are never left out."""
    turns: list[list[Message]] = []
    for message in messages:
        if message.role == "system":
            continue
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns
