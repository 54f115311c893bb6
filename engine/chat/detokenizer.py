"""Token ids -> text, one token at a time, never showing half a character.

Two stages with different reasons to wait:

`Detokenizer` waits for whole *characters*. A byte-level token may end inside a UTF-8 sequence. Everything
that decides (stop strings, reasoning tags) works on its output, so that nothing is decided late.

`Graphemes` waits for whole *user-perceived characters*: an emoji and its skin tone, a letter and its
accent. Only what is shown goes through it. The last cluster is always held, because the next character may
still join it; that is a lag of one cluster and is gone with the next token.
"""

from __future__ import annotations

import codecs

# `regex` knows the cluster rules of Unicode (UAX #29); the standard library does not.
import regex  # type: ignore[import-untyped]

from engine.chat.tokenizer import Tokenizer

_CLUSTER = regex.compile(r"\X")

MAX_CLUSTER = 64
"""Characters. A longer cluster (an unbounded pile of accents) is let go, to keep the cost linear. UAX #15
calls text with more than 30 marks in a row not stream-safe; family emoji have at most 10 characters."""


class Detokenizer:
    """Joined output equals `Tokenizer.decode` of the whole, however the tokens arrive.

    skip_special: leave out the tokens of `Tokenizer.hidden_ids`.
    """

    def __init__(self, tokenizer: Tokenizer, skip_special: bool = False) -> None:
        self._bytes_of = tokenizer.token_bytes
        self._hidden = tokenizer.hidden_ids if skip_special else frozenset()
        # The standard decoder replaces every maximal broken part by one U+FFFD, as Rust's lossy decoding does.
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """The characters that are complete now."""
        return "" if token in self._hidden else self._utf8.decode(self._bytes_of(token))

    def finish(self) -> str:
        """What was waiting for bytes that never came, as U+FFFD."""
        return self._utf8.decode(b"", final=True)


class Graphemes:
    """Text in any pieces -> the same text in pieces that never split a grapheme cluster."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, text: str) -> str:
        """The clusters that no later character can join."""
        if not text:
            return ""
        text = self._held + text
        cut = 0
        for match in _CLUSTER.finditer(text):
            cut = match.start()
        # Nothing joins a line feed from behind; a line is shown when it ends.
        if text[-1] == "\n" or len(text) - cut > MAX_CLUSTER:
            cut = len(text)
        self._held = text[cut:]
        return text[:cut]

    def finish(self) -> str:
        """The last cluster."""
        held, self._held = self._held, ""
        return held
