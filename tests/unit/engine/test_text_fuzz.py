"""Streamed text does not depend on how it was cut: every cut of hundreds of texts, through every stage.

Short texts (at most SHORT units) in all 2 ** (n - 1) chunkings; longer ones (at most LONG units) whole, unit by unit,
and in every chunking with one or two cuts. Units are bytes for the detokenizer, where a token may end inside a
character, and characters behind it. CI takes a part of the texts; PACENOTE_FUZZ_TEXTS=500 takes all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
import regex

from engine.chat.detokenizer import Detokenizer, Graphemes
from engine.chat.reasoning import ReasoningSplitter
from engine.chat.reply import ReplyStream, read_reply
from engine.chat.stops import StopMatcher
from tests.support.texts import STOPS

TEXTS = int(os.environ.get("PACENOTE_FUZZ_TEXTS", "40"))
SHORT, LONG = 9, 48

KINDS = {
    "emoji": ("😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🇫🇷", "1️⃣", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\u200d", "a"),
    "CJK": ("東", "京", "你好", "한", "\u1112\u1161\u11ab", "か\u3099", "𠮷", "。", " "),
    "RTL": ("ש", "\u05c1", "ָ", "שלום", "السلام", "\u202e", "\u202c", "\u200f", "क्षि", "x"),
    "code": ("`", "``", "```", "```py\n", "\n", "if a < b:\n", "    return", "</", "x = '<'", "`</think>`", "e\u0301"),
    "tags": ("<think>", "</think>", "<", "</", "think>", "<thi", "nk>", "\n\n", " ", "`", "a", "STOP", "S", "\ufffd"),
}  # fmt: skip


def texts(most: int) -> list[tuple[str, str]]:
    """(kind, text): TEXTS of them, as many of each kind, half of them short, from a fixed seed."""
    found = []
    for n in range(TEXTS):
        kind = list(KINDS)[n % len(KINDS)]
        luck = random.Random(n)
        limit = SHORT if n // len(KINDS) % 2 == 0 else most
        text = ""
        while len(text) < limit and luck.random() < 0.95:
            piece = luck.choice(KINDS[kind])
            text += piece if len(text) + len(piece) <= limit else piece[: limit - len(text)]
        found.append((kind, text))
    return found


def chunkings(units: Sequence) -> Iterator[list]:
    """Cut in the ways that this module's head names."""
    n = len(units)
    counts = range(n) if n <= SHORT else (0, 1, 2)
    for count in counts:
        for cuts in combinations(range(1, n), count):
            yield [units[a:b] for a, b in zip((0, *cuts), (*cuts, n), strict=True)]
    if n > SHORT:
        yield [units[k : k + 1] for k in range(n)]


class Chunks:
    """A tokenizer whose tokens are the chunks: any bytes, ending anywhere. EOS is a token of its own."""

    hidden_ids = frozenset({1_000_000})
    eos_ids = hidden_ids

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def token_bytes(self, token: int) -> bytes:
        return self._chunks[token]

    def decode(self, ids: Sequence[int], skip_special: bool = False) -> str:
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")


def test_there_are_as_many_chunkings_as_there_should_be() -> None:
    assert len(list(chunkings("abcdefghi"))) == 2**8
    assert len(list(chunkings("x" * 40))) == 1 + 39 + 39 * 38 // 2 + 1
    assert list(chunkings("abc")) == [["abc"], ["a", "bc"], ["ab", "c"], ["a", "b", "c"]]
    assert {kind for kind, _ in texts(LONG)} == set(KINDS)
    assert any(len(text) > SHORT for _, text in texts(LONG))


def test_the_detokenizer_gives_the_text_however_its_bytes_are_cut() -> None:
    """Every third text also with a byte lost or made up, as a model can write it."""
    for n, (kind, text) in enumerate(texts(LONG // 2)):
        data = bytearray(text.encode())
        if n % 3 == 0 and data:
            data[n % len(data)] ^= 0x80
        whole = bytes(data).decode("utf-8", errors="replace")
        for chunks in chunkings(bytes(data)):
            stream = Detokenizer(Chunks(chunks))
            shown = [*map(stream.push, range(len(chunks))), stream.finish()]
            assert "".join(shown) == whole, (kind, chunks)


def test_graphemes_are_whole_and_nothing_is_lost() -> None:
    for kind, text in texts(LONG):
        ends = {m.end() for m in regex.finditer(r"\X", text)} | {0}
        for chunks in chunkings(text):
            stream = Graphemes()
            at = 0
            for piece in [*map(stream.push, chunks), stream.finish()]:
                assert text.startswith(piece, at), (kind, chunks)
                at += len(piece)
                assert at in ends, (kind, chunks, "a user-perceived character was split")
            assert at == len(text), (kind, chunks)


@pytest.mark.parametrize("inside", [False, True])
def test_reasoning_and_answer_do_not_depend_on_the_cuts(inside: bool) -> None:
    """MTPLX #149 (think tag split across chunks). Joined, the pieces are the text."""
    for kind, text in texts(LONG):
        expected = None
        for chunks in chunkings(text):  # the first one is the whole text
            splitter = ReasoningSplitter(inside)
            pieces = [p for chunk in chunks for p in splitter.push(chunk)] + splitter.finish()
            assert "".join(p.text for p in pieces) == text, (kind, chunks)
            channels = [
                "".join(p.text for p in pieces if p.kind == channel) for channel in ("reasoning", "answer", "markup")
            ]
            expected = expected or channels
            assert channels == expected, (kind, chunks)


def test_stop_strings_do_not_depend_on_the_cuts() -> None:
    for n, (kind, text) in enumerate(texts(LONG)):
        stops = [STOPS[n % len(STOPS)], text[len(text) // 2 :][:3] or "x"]
        expected = None
        for chunks in chunkings(text):
            matcher = StopMatcher(stops)
            shown = "".join([*map(matcher.push, chunks), matcher.finish()])
            expected = expected or (shown, matcher.matched)
            assert (shown, matcher.matched) == expected, (kind, stops, chunks)


@pytest.mark.parametrize("inside", [False, True])
def test_a_whole_reply_does_not_depend_on_its_tokens(inside: bool) -> None:
    """All stages in a row, from bytes to the two channels; what is shown while streaming is the result."""
    for kind, text in texts(LONG // 2):
        data = text.encode()
        expected = None
        for chunks in chunkings(data):
            tokenizer = Chunks(chunks)
            stream = ReplyStream(tokenizer, max_tokens=10**6, in_reasoning=inside)
            for token in range(len(chunks)):
                stream.push(token)
            reply = stream.finish()
            shown = stream.take()
            assert ("".join(t.text for t in shown if t.channel == "answer"),
                    "".join(t.text for t in shown if t.channel == "reasoning")) == reply, (kind, chunks)  # fmt: skip
            expected = expected or read_reply(tokenizer, range(len(chunks)), inside, special=False)
            assert reply == expected, (kind, chunks)
