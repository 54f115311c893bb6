"""Random chats as a function of a seed: what is said, edited, stopped, evicted and restarted, step by step."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.events import Finished
from engine.request import Message, Request, Sampler, Segment, Speculation

WORDS = (
    "tell", "me", "a", "story", "about", "the", "lazy", "dog", "and", "what", "is", "24", "times", "17", "why", "blue",
    "sky", "list", "ten", "animals", "Grüße", "東京", "👩‍👩‍👧‍👦", "def", "answer(x):", "return", "`x`", "<think>",
    "</think>", "שלום", "then", "go", "on", "please", "shorter", "longer", "again", "no", "yes", "###", "STOP",
)  # fmt: skip
SAMPLERS = (
    Sampler(),
    Sampler(temperature=0.8),
    Sampler(temperature=1.0, top_k=40, top_p=0.95),
    Sampler(temperature=0.7, repetition_penalty=1.2, presence_penalty=0.3),
)
STOPS: tuple[tuple[str, ...], ...] = ((), (), (), ("e",), (".", "\n"))

KINDS = {"turn": 50, "edit": 14, "regenerate": 12, "branch": 8, "evict": 9, "restart": 7}
"""How often a step is of each kind, in per cent, once there is a reply."""

Chat = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """steps: (least, most) per chat; words: of a message; tokens: of a reply."""

    steps: tuple[int, int] = (3, 7)
    words: tuple[int, int] = (1, 16)
    tokens: tuple[int, int] = (1, 8)


@dataclass(frozen=True, slots=True)
class Write:
    """Write a reply. stop: set Stop once so many chunks were read ("prefill") or tokens written ("decode")."""

    request: Request
    kind: str
    stop: tuple[Literal["prefill", "decode"], int] | None = None


@dataclass(frozen=True, slots=True)
class Evict:
    """Drop boundaries down to a share of their bytes."""

    share: float


@dataclass(frozen=True, slots=True)
class Restart:
    """A new process. saved: the boundary was kept on disk; otherwise all is lost, as after a kill."""

    saved: bool


class RandomChat:
    """One chat. Ask for `next`; tell `took` of every reply.

    tips: every state the chat was in after a reply, so that branches can be taken up again. counts: steps by kind.
    """

    def __init__(self, seed: int, number: int, limits: Limits) -> None:
        self._luck = random.Random(f"{seed}/{number}")
        self._limits = limits
        self._left = self._luck.randint(*limits.steps)
        self._asked: Chat = ()
        self._written = 0
        self.tips: list[Chat] = []
        self.counts: Counter[str] = Counter()

    def next(self) -> Write | Evict | Restart | None:
        """The next step; None at the end. A reply that was stopped before its first token is asked for again."""
        luck = self._luck
        if self._asked:
            return self._write("again after Stop", self._asked)
        if self._left == 0:
            return None
        self._left -= 1
        kind = luck.choices(list(KINDS), list(KINDS.values()))[0] if self.tips else "turn"
        if kind == "evict":
            self.counts["evict"] += 1
            return Evict(luck.random())
        if kind == "restart":
            restart = Restart(luck.random() < 0.6)
            self.counts["restart, chat kept" if restart.saved else "restart, all lost"] += 1
            return restart
        return self._write(kind, self._messages(kind))

    def took(self, finished: Finished) -> None:
        """The reply to the last `Write`."""
        if not finished.tokens:
            self.counts["stopped in prefill"] += 1
            return
        self.counts["stopped in decode"] += finished.reason == "stopped"
        reply = Message(
            "assistant", finished.answer, finished.reasoning, finished.segments, last_token=finished.tokens[-1]
        )
        self.tips.append((*self._asked, reply))
        self._asked = ()

    def _messages(self, kind: str) -> Chat:
        """The chat that is asked to be answered."""
        last = self.tips[-1] if self.tips else ()
        if kind == "regenerate":
            return last[:-1]
        if kind == "edit":
            users = [n for n, m in enumerate(last) if m.role == "user"]
            return (*last[: self._luck.choice(users)], self._message())
        if kind == "branch":
            return (*self._luck.choice(self.tips), self._message())
        return (*last, self._message())

    def _message(self) -> Message:
        count = self._luck.randint(*self._limits.words)
        return Message("user", " ".join(self._luck.choice(WORDS) for _ in range(count)))

    def _write(self, kind: str, messages: Chat) -> Write:
        luck = self._luck
        self._asked = messages
        self._written += 1
        self.counts[kind] += 1
        request = Request(
            messages, luck.choice(SAMPLERS), luck.randrange(2**32), luck.randint(*self._limits.tokens),
            luck.choice(STOPS), luck.choice(list(Speculation)), luck.randint(2, 5),
            luck.choice((None, None, True, False)),
        )  # fmt: skip
        stop: tuple[Literal["prefill", "decode"], int] | None = None
        if luck.random() < 0.15 and kind != "again after Stop":
            stop = "prefill", luck.randint(0, 3)
        # What the pace does follows the clock, and so would the place of a Stop: then a seed would not fix the chat.
        elif luck.random() < 0.25 and request.speculation is not Speculation.ON:
            stop = "decode", luck.randint(1, request.max_tokens)
        return Write(request, kind, stop)

    def to_json(self) -> dict[str, Any]:
        """Everything, between two steps."""
        version, internal, gauss = self._luck.getstate()
        return {
            "luck": [version, list(internal), gauss],
            "left": self._left,
            "written": self._written,
            "counts": dict(self.counts),
            "tips": [[dataclasses.asdict(m) for m in tip] for tip in self.tips],
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any], limits: Limits) -> RandomChat:
        """The inverse."""
        chat = cls(0, 0, limits)
        version, internal, gauss = kept["luck"]
        chat._luck.setstate((version, tuple(internal), gauss))
        chat._left, chat._written = kept["left"], kept["written"]
        chat.counts = Counter(kept["counts"])
        chat.tips = [tuple(_message(m) for m in tip) for tip in kept["tips"]]
        return chat


def _message(kept: dict[str, Any]) -> Message:
    segments = tuple(Segment(s["kind"], tuple(s["tokens"])) for s in kept["segments"])
    return Message(kept["role"], kept["content"], kept["reasoning"], segments, kept["last_token"])


@dataclass
class Tally:
    """What was compared. differences: in words, with what repeats them."""

    replies: int = 0
    tokens: int = 0
    restored: int = 0
    prompt: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "steps": dict(self.steps)}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Tally:
        return cls(**{**kept, "steps": Counter(kept["steps"])})

    def add(self, other: Tally) -> None:
        self.replies += other.replies
        self.tokens += other.tokens
        self.restored += other.restored
        self.prompt += other.prompt
        self.steps += other.steps
        self.differences += other.differences
