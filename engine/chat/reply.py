"""One reply while it is written: when it ends, and what of it may be shown.

    tokens -> characters -> stop strings -> reasoning or answer -> whole grapheme clusters -> shown

The decode loop pushes every token of a round in order and cuts the round at the first one that ends the
reply; both loops therefore end on the same token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.chat.detokenizer import Detokenizer, Graphemes
from engine.chat.reasoning import Piece, ReasoningSplitter
from engine.chat.stops import StopMatcher
from engine.chat.tokenizer import Tokenizer
from engine.events import EndReason, Text

Channel = Literal["answer", "reasoning"]


class ReplyStream:
    """Args:
    stop: stop strings. They are looked for in the text as it is written, reasoning and tags included,
        special tokens left out.
    max_tokens: budget; the token that ends the reply counts.
    ignore_eos: end tokens do not end the reply (benchmarks). They are still not shown.
    in_reasoning: whether the prompt has opened the reasoning (`Plan.opens_reasoning`).
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        ignore_eos: bool = False,
        in_reasoning: bool = False,
    ) -> None:
        self._eos = tokenizer.eos_ids
        self._max_tokens = max_tokens
        self._ignore_eos = ignore_eos
        self._characters = Detokenizer(tokenizer, skip_special=True)
        self._stops = StopMatcher(stop)
        self._splitter = ReasoningSplitter(in_reasoning)
        self._clusters = Graphemes()
        self._channel: Channel = "answer"
        self._ready: list[Text] = []
        self._parts: dict[Channel, list[str]] = {"answer": [], "reasoning": []}
        self._seen: dict[Channel, int] = {"answer": 0, "reasoning": 0}
        self._ends: list[tuple[int, int]] = [(0, 0)]
        self._finished = False
        self.tokens = 0
        self.reason: EndReason | None = None

    def push(self, token: int) -> EndReason | None:
        """Reads the next token. Returns why the reply ends with it, or None.

        A token that ends the reply in several ways has one reason: EOS, then stop string, then budget.
        """
        if self.reason is not None or self._finished:
            raise ValueError("the reply has ended")
        self.tokens += 1
        if token not in self._eos:
            self._show(self._splitter.push(self._stops.push(self._characters.push(token))))
        elif not self._ignore_eos:
            self.reason = EndReason.EOS
        if self.reason is None and self._stops.matched is not None:
            self.reason = EndReason.STOP_STRING
        if self.reason is None and self.tokens >= self._max_tokens:
            self.reason = EndReason.BUDGET
        self._ends.append((self._seen["answer"], self._seen["reasoning"]))
        return self.reason

    def take(self) -> list[Text]:
        """Text that may be shown and was not taken before. Neighbours of one channel are joined."""
        ready, self._ready = self._ready, []
        joined: list[Text] = []
        for text in ready:
            if joined and joined[-1].channel == text.channel:
                joined[-1] = Text(joined[-1].text + text.text, text.channel)
            else:
                joined.append(text)
        return joined

    def take_ends(self) -> tuple[tuple[int, int], ...]:
        """(characters of the answer, of the reasoning) at the last call, and after each token since.

        Characters that wait for the rest of their cluster count: they are the token's, though shown later.
        """
        ends, self._ends = tuple(self._ends), self._ends[-1:]
        return ends

    def finish(self) -> tuple[str, str]:
        """(answer, reasoning), whole. Releases what was held back: `take` once more afterwards.

        Also right when the reply was stopped from outside. May be called again.
        """
        if not self._finished:
            self._finished = True
            # After a stop string the matcher swallows everything, as it must.
            held = self._stops.push(self._characters.finish()) + self._stops.finish()
            self._show([*self._splitter.push(held), *self._splitter.finish()])
            self._emit(self._clusters.finish())
        return "".join(self._parts["answer"]), "".join(self._parts["reasoning"])

    def _show(self, pieces: list[Piece]) -> None:
        for kind, text in pieces:
            if kind == "markup":
                continue
            self._seen[kind] += len(text)
            if kind != self._channel:
                self._emit(self._clusters.finish())
                self._channel = kind
            self._emit(self._clusters.push(text))

    def _emit(self, text: str) -> None:
        if text:
            self._ready.append(Text(text, self._channel))
            self._parts[self._channel].append(text)


def read_reply(tokenizer: Tokenizer, tokens: Sequence[int], in_reasoning: bool, *, special: bool) -> tuple[str, str]:
    """(answer, reasoning) of a whole reply, stop strings ignored. special: with the text of special tokens."""
    splitter = ReasoningSplitter(in_reasoning)
    text = tokenizer.decode(tokens, skip_special=not special)
    pieces = [*splitter.push(text), *splitter.finish()]
    answer = "".join(p.text for p in pieces if p.kind == "answer")
    return answer, "".join(p.text for p in pieces if p.kind == "reasoning")
