"""From a chat to the tokens that the caches need: what is known already, and what must be read now.

The canonical end of a reply. After a prefill of P tokens and a reply r_1..r_m,

    Finished.tokens   = r_1 .. r_m
    Finished.segments = (Segment("prefill", P tokens), Segment("decode", r_1 .. r_m-1))

because the caches hold everything but r_m in every arm. `Message.last_token` is r_m, and the next turn's
prefill starts with it. A reply of one token has an empty decode segment, or none.

Stored tokens are never tokenized again: a model may write "un" + "able" where the tokenizer would write
"unable", and every later cache entry would differ. Instead the *text* of the stored tokens is compared with
the new prompt, and only the text behind it is encoded. Where the template rewrote earlier text (it drops
old reasoning, trims white space), the deepest stored boundary whose text still is a beginning of the prompt
is used. Those boundaries are the ends of all segments, so also the one right before a reply.

A message does not say at which boundary its own prefill began (after a rewrite it began before the previous
reply). It need not: it began at the deepest boundary that fitted its prompt, and as long as its own text
still fits, that boundary still is the deepest of the earlier ones that do.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine.chat.reasoning import opens_reasoning
from engine.chat.reply import read_reply
from engine.chat.tokenizer import Tokenizer
from engine.errors import CheckpointError
from engine.request import Message, Segment, Thinking


@dataclass(frozen=True, slots=True)
class Plan:
    """How to bring the caches to the start of a reply.

    history: known segments, a beginning of the stored schedule: restored or replayed, in this order.
    fresh: tokens to prefill after them, never empty.
    stable: how many of `fresh` come before the generation prompt, when the template will write that part
        differently once the reply is history (Qwen3.5 writes "<think>..." only before a reply). A boundary
        there is one that the next turn can use; without it such a template costs a full prefill each turn.
        0 when the end of `fresh` is such a boundary itself.
    reason: why known tokens are read again, for a Notice. "" when none are.
    opens_reasoning: the reply starts inside <think>.
    """

    history: tuple[Segment, ...]
    fresh: tuple[int, ...]
    stable: int
    reason: str
    opens_reasoning: bool

    @property
    def prefill(self) -> tuple[Segment, ...]:
        """`fresh` as segments, cut at `stable`: what to prefill now and to store with the reply."""
        parts = (self.fresh[: self.stable], self.fresh[self.stable :])
        return tuple(Segment("prefill", part) for part in parts if part)

    @property
    def schedule(self) -> tuple[Segment, ...]:
        """Everything up to the reply, in order."""
        return (*self.history, *self.prefill)


def plan(tokenizer: Tokenizer, messages: Sequence[Message], thinking: Thinking) -> Plan:
    """The plan for the next reply. A pure function: the same chat gives the same schedule, warm or cold.

    Assistant messages that someone edited must come without `segments`.

    Raises:
        CheckpointError: the template refuses the chat.
    """
    messages = [as_written(tokenizer, message) for message in messages]
    text = tokenizer.render(messages, thinking)
    points = _boundaries(tokenizer, messages, text)
    for point in points:
        start = _fresh_start(tokenizer, text, point)
        if start is None:
            continue
        first, at = start
        rest = tokenizer.encode(text[at:])
        if first or rest:
            return Plan(
                history=point.segments,
                fresh=(*first, *rest),
                stable=_stable(tokenizer, messages, thinking, text, at, len(first), rest),
                reason=_reason(messages, point),
                opens_reasoning=opens_reasoning(text),
            )
    raise CheckpointError("The model's chat template wrote nothing.", todo="Choose another model.")


def as_written(tokenizer: Tokenizer, message: Message) -> Message:
    """The message as the model has it, for rendering.

    Text without tokens is brought to the form the tokenizer reads (Qwen: NFC), or a decomposed "é" typed by
    the user would never match its own tokens again. A stored reply gets its text from its tokens: it may end
    with a stop string, or contain special tokens, that were not shown.
    """
    if message.role != "assistant" or not message.segments:
        return replace(
            message, content=tokenizer.normalize(message.content), reasoning=tokenizer.normalize(message.reasoning)
        )
    tokens = [t for segment in message.segments if segment.kind == "decode" for t in segment.tokens]
    if message.last_token is not None and message.last_token not in tokenizer.eos_ids:
        tokens.append(message.last_token)
    prefill = next((s.tokens for s in reversed(message.segments) if s.kind == "prefill"), ())
    inside = opens_reasoning(tokenizer.decode(prefill[-8:]))
    shown = read_reply(tokenizer, tokens, inside, special=False)
    if not (shown[0].startswith(message.content) and shown[1].startswith(message.reasoning)):
        return message  # not these tokens' text: the boundary before the reply will be used
    if not tokenizer.hidden_ids.isdisjoint(tokens):
        shown = read_reply(tokenizer, tokens, inside, special=True)
    return replace(message, content=shown[0], reasoning=shown[1])


class _Point(NamedTuple):
    """A boundary whose text is a beginning of the prompt.

    at: characters of the prompt that it covers. tail: bytes of an unfinished character after them.
    last: the reply's last token, to be fed next. owner: index of the message it belongs to, -1 for the empty
    cache. whole: it is the end of that message's segments.
    """

    at: int
    tail: bytes
    segments: tuple[Segment, ...]
    last: int | None
    owner: int
    whole: bool


def _boundaries(tokenizer: Tokenizer, messages: Sequence[Message], text: str) -> list[_Point]:
    """All stored boundaries that the prompt can continue, deepest first. The last one is the empty cache."""
    points = [_Point(0, b"", (), None, -1, True)]
    for owner, message in enumerate(messages):
        if message.role == "assistant":
            points[:0] = reversed(list(_grow(tokenizer, text, points[0], message, owner)))
    return points


def _grow(tokenizer: Tokenizer, text: str, base: _Point, message: Message, owner: int) -> Iterable[_Point]:
    """The boundaries of one message's segments, as far as the prompt agrees with them."""
    point = base
    for n, segment in enumerate(message.segments):
        reached = _advance(tokenizer, text, point.at, point.tail, segment.tokens)
        if reached is None:
            return
        whole = n == len(message.segments) - 1
        last = message.last_token if whole else None
        point = _Point(*reached, (*point.segments, segment), last, owner, whole)
        yield point


def _advance(tokenizer: Tokenizer, text: str, at: int, tail: bytes, tokens: Sequence[int]) -> tuple[int, bytes] | None:
    """Where the prompt stands after these tokens, None if it says something else, or if one of them has no text.

    Such a token is no token of this model, or none that it was taught. Feeding it could read beyond the embeddings.
    """
    written = list(map(tokenizer.token_bytes, tokens))
    if b"" in written:
        return None
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    piece = decoder.decode(tail + b"".join(written))
    return (at + len(piece), decoder.getstate()[0]) if text.startswith(piece, at) else None


def _fresh_start(tokenizer: Tokenizer, text: str, point: _Point) -> tuple[tuple[int, ...], int] | None:
    """(the last token of the reply if it fits the prompt, where the text to encode starts).

    It does not fit when the model ended with another end token than the template writes. Nothing is lost
    then: that token is in no cache.
    """
    if point.last is not None:
        reached = _advance(tokenizer, text, point.at, point.tail, (point.last,))
        at = None if reached is None else _close(text, *reached)
        if at is not None:
            return (point.last,), at
    at = _close(text, point.at, point.tail)
    return None if at is None else ((), at)


def _close(text: str, at: int, tail: bytes) -> int | None:
    """Where text may follow an unfinished character: behind the U+FFFD that stands for it."""
    if not tail:
        return at
    return at + 1 if text.startswith("\ufffd", at) else None


def _stable(
    tokenizer: Tokenizer,
    messages: Sequence[Message],
    thinking: Thinking,
    text: str,
    at: int,
    before: int,
    rest: list[int],
) -> int:
    """See `Plan.stable`. before: tokens of `fresh` before `rest`, which encodes text[at:]."""
    if tokenizer.keeps_prompt(thinking):
        return 0
    chat = tokenizer.render(messages, thinking, add_generation_prompt=False)
    if not text.startswith(chat) or len(chat) < at:
        return 0
    head = tokenizer.encode(chat[at:])
    # The cut must not change the tokens. It does not where the generation prompt starts with a special token.
    if rest[: len(head)] != head or head + tokenizer.encode(text[len(chat) :]) != rest or len(head) == len(rest):
        return 0
    return before + len(head)


def _reason(messages: Sequence[Message], used: _Point) -> str:
    latest = max((n for n, m in enumerate(messages) if m.role == "assistant" and m.segments), default=-1)
    if used.owner == latest and used.whole:
        return ""
    kept = sum(len(segment.tokens) for segment in used.segments)
    return f"The chat template changed text that was already read. {kept} tokens are kept, the rest is read again."
