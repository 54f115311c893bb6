"""What a caller asks of the engine. Values only; nothing here computes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

MAX_BLOCK = 8
"""Widest verify block. Above it even a perfect drafter gains little (docs/adr/0001)."""


class Speculation(StrEnum):
    """How the caller wants speculation used. What *is* used is in the events."""

    ON = "on"  # wherever it measures faster; parked where it does not
    OFF = "off"  # classic decode
    ALWAYS = "always"  # never parked; still only where the probe passed


class WhenFull(StrEnum):
    """What happens to a chat that does not fit the model's context."""

    REFUSE = "refuse"  # ContextFull, and nothing is lost
    DROP_OLDEST = "drop oldest turns"  # the model does not see them; a Notice says which


Role = Literal["system", "user", "assistant"]

Thinking = bool | str | None
"""How much a model reasons, where its template has a switch: on, off, an effort ("low"), or the template's default."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """How a token is chosen from a row of logits.

    temperature: 0 is greedy. top_k: 0 is off. top_p: 1 is off. min_p: 0 is off.
    repetition_penalty: 1 is off; divides positive and multiplies negative logits of every token in the
    prompt or the reply. presence_penalty: 0 is off; subtracted from the logits of tokens in the reply.
    logit_bias: (token id, added logit) pairs.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        checks = (
            (0.0 <= self.temperature <= 10.0, "temperature must be between 0 and 10"),
            (self.top_k >= 0, "top_k must be 0 (off) or more"),
            (0.0 < self.top_p <= 1.0, "top_p must be above 0 and at most 1"),
            (0.0 <= self.min_p <= 1.0, "min_p must be between 0 and 1"),
            (0.0 < self.repetition_penalty < math.inf, "repetition_penalty must be above 0 and finite"),
            (math.isfinite(self.presence_penalty), "presence_penalty must be finite"),
            (all(math.isfinite(bias) for _, bias in self.logit_bias), "logit_bias must be finite"),
        )
        for ok, text in checks:
            if not ok:
                raise ValueError(text)


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a chat's segment schedule: how these tokens entered the caches.

    prefill: in chunks of the backend's size counted from the segment's start, the last token alone.
    decode: one row at a time, or by verify blocks that passed the probe.
    """

    kind: Literal["prefill", "decode"]
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat, oldest first in a request.

    For an assistant message that this engine wrote, `segments` is what `Finished.segments` gave: the
    prefill that led to it and its own tokens. Without it the text is tokenized and prefilled.
    last_token: `Finished.tokens[-1]`. The caches never held it (canonical end of a reply), so it stands in
    no segment; the next turn's prefill starts with it. None when the reply had no token.
    """

    role: Role
    content: str
    reasoning: str = ""
    segments: tuple[Segment, ...] = ()
    last_token: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One reply to write. The last message is normally the user's.

    seed: 0 to 2**32 - 1. With the same weights, messages, sampler and seed the text is the same,
    whatever `speculation` and `block_size` say.
    block_size: rows of a verify block (1 bonus + drafts), 2 to MAX_BLOCK.
    thinking: for templates with a reasoning switch (`EngineInfo.supports_thinking`) or with efforts
    (`Engine.efforts`). None leaves the template's default. What the template does not know is declined in a Notice.
    when_full: what to do with a chat that leaves no room for a reply. Part of what the text depends on.
    begun: tokens of this reply that are written already (`Finished.tokens` of the part, with the same messages,
    sampler and seed). It goes on behind them as if it had never stopped; `max_tokens` counts what is new.
    Under DROP_OLDEST `max_tokens` must be the same too: it decides how much is left out.
    """

    messages: tuple[Message, ...]
    sampler: Sampler = Sampler()
    seed: int = 0
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    speculation: Speculation = Speculation.ON
    block_size: int = 3
    thinking: Thinking = None
    when_full: WhenFull = WhenFull.REFUSE
    ignore_eos: bool = False  # benchmarks that need a fixed length
    begun: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        # A plain "always" from a caller or a file would fail every `is` comparison silently.
        object.__setattr__(self, "speculation", Speculation(self.speculation))
        object.__setattr__(self, "when_full", WhenFull(self.when_full))
        if not 2 <= self.block_size <= MAX_BLOCK:
            raise ValueError(f"block_size must be between 2 and {MAX_BLOCK}")
        if not 0 <= self.seed < 2**32:
            raise ValueError("seed must be between 0 and 2**32 - 1")
        if self.max_tokens < 1:
            raise ValueError("max_tokens must be at least 1")
        if self.thinking == "":
            raise ValueError("an effort of reasoning has a name")
        if any(not s for s in self.stop):
            raise ValueError("a stop string must not be empty")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to load a pair.

    target: folder, or hub repo id that is already in the Hugging Face cache. None: the bundled demo pair.
    head: a second folder or repo with the MTP head. None: look inside the target, then in its `mtp/` folder.
    quantize_drafter: None follows PACENOTE_MTP_QUANTIZE_DRAFTER, on when unset.
    allow_inexact: speculate although the probe failed. Stamped into every log.
    max_block: widest block that is probed, and so the widest that may be used, 2 to MAX_BLOCK.
    boundary_bytes: memory that chats may be kept in between turns. None: from the device's working set.
    load_anyway: load also what needs more memory than is free. The system may page, or end this program.
    probe_again: check exactness anew, whatever an earlier load found.
    """

    target: str | None = None
    head: str | None = None
    quantize_drafter: bool | None = None
    allow_inexact: bool = False
    max_block: int = 5
    boundary_bytes: int | None = None
    load_anyway: bool = False
    probe_again: bool = False

    def __post_init__(self) -> None:
        if not 2 <= self.max_block <= MAX_BLOCK:
            raise ValueError(f"max_block must be between 2 and {MAX_BLOCK}")
        if self.boundary_bytes is not None and self.boundary_bytes < 0:
            raise ValueError("boundary_bytes must not be negative")
