"""Detokenizer, grapheme clusters, stop strings: equal to what the whole text says, however it is cut."""

from __future__ import annotations

import time

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from engine.chat.detokenizer import MAX_CLUSTER, Detokenizer, Graphemes
from engine.chat.stops import StopMatcher
from tests.support.texts import STOPS, chunked, texts
from tests.support.tiny_tokenizer import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
any_tokens = st.lists(st.integers(0, TOKENIZER.vocab_size + 3), max_size=60)
stop_sets = st.lists(st.sampled_from(STOPS) | st.text("abST`", min_size=1, max_size=4), max_size=4)


class TestDetokenizer:
    @given(tokens=any_tokens, skip=st.booleans())
    def test_joined_equals_the_whole_for_any_ids(self, tokens, skip):
        stream = Detokenizer(TOKENIZER, skip_special=skip)
        joined = "".join(map(stream.push, tokens)) + stream.finish()
        assert joined == TOKENIZER.decode(tokens, skip_special=skip)

    @given(text=texts)
    def test_no_broken_character_of_a_sound_text_is_seen(self, text):
        """Byte by byte, the worst cut there is."""
        by_byte = {TOKENIZER.token_bytes(i): i for i in range(256)}
        stream = Detokenizer(TOKENIZER)
        shown = ""
        for byte in text.encode():
            shown += stream.push(by_byte[bytes([byte])])
            assert text.startswith(shown)
        assert shown == text
        assert stream.finish() == ""

    def test_a_character_without_its_end_becomes_one_replacement(self):
        stream = Detokenizer(TOKENIZER)
        family = TOKENIZER.encode("👩")
        assert "".join(map(stream.push, family[:-1])) == ""
        assert stream.finish() == "\ufffd"


class TestGraphemes:
    @given(chunks=chunked())
    @example(chunks=["👩", "\u200d", "👧", "x"])
    @example(chunks=["🇩", "🇪", "🇫", "🇷"])
    @example(chunks=["\r", "\n"])
    def test_no_cut_inside_a_cluster(self, chunks):
        text = "".join(chunks)
        borders = {m.start() for m in regex.finditer(r"\X", text)} | {len(text)}
        stream = Graphemes()
        at = 0
        joined = ""
        for chunk in chunks:
            piece = stream.push(chunk)
            joined += piece
            at += len(piece)
            assert at in borders
        assert joined + stream.finish() == text

    @given(chunks=chunked())
    def test_never_more_than_one_cluster_is_held(self, chunks):
        stream = Graphemes()
        arrived = shown = ""
        for chunk in chunks:
            arrived += chunk
            shown += stream.push(chunk)
            assert len(regex.findall(r"\X", arrived[len(shown) :])) <= 1

    def test_a_finished_line_is_shown_at_once(self):
        assert Graphemes().push("line\n") == "line\n"

    def test_a_tower_of_accents_is_let_go(self):
        stream = Graphemes()
        shown = "".join(stream.push("\u0301") for _ in range(MAX_CLUSTER + 1))
        assert len(shown) == MAX_CLUSTER + 1


def first_stop(text: str, stops: list[str]) -> tuple[int, int] | None:
    """(start, end) of the stop string that ends the text. The definition, written down naively."""
    for end in range(len(text) + 1):
        starts = [end - len(s) for s in stops if text[:end].endswith(s)]
        if starts:
            return min(starts), end
    return None


class TestStopMatcher:
    @given(chunks=chunked(), stops=stop_sets)
    @example(chunks=["abcd"], stops=["abcd", "bc"])
    @example(chunks=["ab", "cd"], stops=["bcd", "abc"])
    @example(chunks=["ST", "STOP"], stops=["STOP"])
    @example(chunks=["aab", "aac"], stops=["aabaac", "c"])
    def test_shows_all_before_the_stop_string_and_nothing_of_it(self, chunks, stops):
        text = "".join(chunks)
        expected = first_stop(text, stops)
        matcher = StopMatcher(stops)
        shown, arrived = "", 0
        for chunk in chunks:
            arrived += len(chunk)
            shown += matcher.push(chunk)
            # The chunk that completes the stop string is the one that says so.
            assert (matcher.matched is not None) == (expected is not None and arrived >= expected[1])
        shown += matcher.finish()
        assert shown == (text if expected is None else text[: expected[0]])

    @given(chunks=chunked(), stops=stop_sets)
    def test_holds_only_what_may_become_a_stop_string(self, chunks, stops):
        matcher = StopMatcher(stops)
        arrived = shown = ""
        for chunk in chunks:
            arrived += chunk
            shown += matcher.push(chunk)
            if matcher.matched is not None:
                break
            held = arrived[len(shown) :]
            beginnings = {s[:n] for s in stops for n in range(1, len(s))}
            assert held == max((b for b in beginnings if arrived.endswith(b)), key=len, default="")

    def test_an_empty_stop_string_is_a_mistake(self):
        with pytest.raises(ValueError, match="empty"):
            StopMatcher([""])


@pytest.mark.parametrize("unit", ["\u0301", "🇩", "👩\u200d", " ", "S", "\r", "a"])
def test_cost_is_linear_for_hostile_streams(unit):
    """20,000 pieces that are always "perhaps not finished". A quadratic stage would take minutes."""
    matcher, clusters = StopMatcher(["S" * 40 + "T"]), Graphemes()
    started = time.process_time()
    total = sum(len(clusters.push(matcher.push(unit))) for _ in range(20_000))
    total += len(clusters.push(matcher.finish())) + len(clusters.finish())
    assert total == 20_000 * len(unit)
    assert time.process_time() - started < 5
