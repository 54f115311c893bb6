"""A reply ends at the same token in every arm, and shows neither less nor more than it may."""

from __future__ import annotations

import codecs

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from engine import EndReason, Text
from engine.chat.reasoning import ReasoningSplitter
from engine.chat.reply import ReplyStream, read_reply
from tests.support.texts import STOPS, texts
from tests.support.tiny_tokenizer import tiny_tokenizer
from tests.unit.engine.test_chat_stream import first_stop

TOKENIZER = tiny_tokenizer()
EOS = min(TOKENIZER.eos_ids)
BY_BYTE = {TOKENIZER.token_bytes(i): i for i in range(256)}

# Ids as a model might give them: sensible text, the same text byte by byte, and anything at all.
replies = st.one_of(
    texts.map(TOKENIZER.encode),
    texts.map(lambda t: [BY_BYTE[bytes([b])] for b in t.encode()]),
    st.lists(st.integers(0, TOKENIZER.vocab_size + 3), max_size=50),
)
stop_sets = st.lists(st.sampled_from(STOPS), max_size=3)


def write(tokens, **options):
    """Pushes until the reply ends. Returns the stream, the texts shown on the way, and how many tokens it took."""
    options.setdefault("max_tokens", 10_000)
    stream = ReplyStream(TOKENIZER, **options)
    shown, used = [], 0
    for token in tokens:
        used += 1
        ended = stream.push(token)
        shown += stream.take()
        if ended:
            break
    stream.finish()
    shown += stream.take()
    return stream, shown, used


def expected_end(tokens, stops, budget, ignore_eos):
    """Where and why a reply ends, from the definition: reads ever longer beginnings of the whole."""
    for used, token in enumerate(tokens, start=1):
        if token in TOKENIZER.eos_ids and not ignore_eos:
            return used, EndReason.EOS
        data = b"".join(TOKENIZER.token_bytes(t) for t in tokens[:used] if t not in TOKENIZER.hidden_ids)
        # As while streaming: bytes that may still become a character are not there yet.
        if first_stop(codecs.getincrementaldecoder("utf-8")("replace").decode(data), stops):
            return used, EndReason.STOP_STRING
        if used >= budget:
            return used, EndReason.BUDGET
    return len(tokens), None


@given(tokens=replies, stops=stop_sets, budget=st.integers(1, 60), ignore_eos=st.booleans(), inside=st.booleans())
@example(tokens=TOKENIZER.encode("a STOP b"), stops=["STOP"], budget=50, ignore_eos=False, inside=False)
def test_ends_where_the_whole_text_says(tokens, stops, budget, ignore_eos, inside):
    stream, shown, used = write(tokens, stop=stops, max_tokens=budget, ignore_eos=ignore_eos, in_reasoning=inside)
    assert (used, stream.reason) == expected_end(tokens, stops, budget, ignore_eos)
    assert stream.tokens == used

    # What was shown is the whole text, split as a whole, up to the stop string.
    text = TOKENIZER.decode(tokens[:used], skip_special=True)
    stop = first_stop(text, stops)
    text = text if stop is None else text[: stop[0]]
    splitter = ReasoningSplitter(inside)
    pieces = [*splitter.push(text), *splitter.finish()]
    for name, whole in zip(("answer", "reasoning"), stream.finish(), strict=True):
        assert whole == "".join(p.text for p in pieces if p.kind == name)
        assert whole == "".join(t.text for t in shown if t.channel == name)


@given(tokens=replies, stops=stop_sets, inside=st.booleans())
def test_no_stop_string_and_no_special_token_is_ever_shown(tokens, stops, inside):
    _, shown, _ = write(tokens, stop=stops, in_reasoning=inside)
    for name in ("answer", "reasoning"):
        text = "".join(t.text for t in shown if t.channel == name)
        assert not any(stop in text for stop in stops)
        assert "<|" not in text or "<|" in TOKENIZER.decode(tokens, skip_special=True)


@given(tokens=replies, inside=st.booleans())
def test_every_text_event_is_whole_clusters_of_its_channel(tokens, inside):
    _, shown, _ = write(tokens, in_reasoning=inside)
    for name in ("answer", "reasoning"):
        texts_ = [t.text for t in shown if t.channel == name]
        borders = {m.start() for m in regex.finditer(r"\X", "".join(texts_))}
        at = 0
        for text in texts_[:-1]:
            at += len(text)
            assert at in borders


@given(tokens=replies, stops=stop_sets, block=st.integers(1, 8), inside=st.booleans())
def test_how_often_text_is_taken_changes_nothing(tokens, stops, block, inside):
    """Classic decode takes after every token, speculation after every block."""
    stream = ReplyStream(TOKENIZER, max_tokens=1000, stop=stops, in_reasoning=inside)
    shown = []
    for n, token in enumerate(tokens, start=1):
        if stream.push(token):
            break
        if n % block == 0:
            shown += stream.take()
    stream.finish()
    shown += stream.take()
    one_by_one, expected, _ = write(tokens, stop=stops, max_tokens=1000, in_reasoning=inside)
    assert stream.finish() == one_by_one.finish()
    assert stream.reason == one_by_one.reason
    for name in ("answer", "reasoning"):
        assert "".join(t.text for t in shown if t.channel == name) == "".join(
            t.text for t in expected if t.channel == name
        )


def test_one_token_that_ends_twice_has_one_reason():
    assert write([EOS], max_tokens=1)[0].reason is EndReason.EOS
    stop = TOKENIZER.encode("STOP")
    assert write(stop, stop=["STOP"], max_tokens=len(stop))[0].reason is EndReason.STOP_STRING


def test_stop_string_over_a_block_border_and_text_behind_it_in_one_token():
    tokens = TOKENIZER.encode("yes ST") + TOKENIZER.encode("OP. And more")
    stream, shown, used = write(tokens, stop=["STOP"])
    assert stream.finish() == ("yes ", "")
    assert TOKENIZER.decode(tokens[:used]).startswith("yes STOP")
    assert "".join(t.text for t in shown) == "yes "


def test_an_almost_stop_string_is_shown_when_the_reply_ends():
    stream, _, _ = write([*TOKENIZER.encode("yes STO"), EOS], stop=["STOP"])
    assert stream.finish() == ("yes STO", "")


def test_stop_strings_hold_in_reasoning_too():
    stream, _, _ = write(TOKENIZER.encode("hm STOP\n</think>\n\nyes"), stop=["STOP"], in_reasoning=True)
    assert stream.finish() == ("", "hm ")


def test_ignored_end_tokens_are_not_shown():
    tokens = [*TOKENIZER.encode("a"), EOS, *TOKENIZER.encode("b")]
    stream, _, used = write(tokens, ignore_eos=True, max_tokens=3)
    assert (used, stream.reason, stream.finish()) == (3, EndReason.BUDGET, ("ab", ""))


def test_stopped_from_outside_in_the_middle_of_an_emoji():
    stream = ReplyStream(TOKENIZER, max_tokens=100)
    for token in [*TOKENIZER.encode("ok "), *TOKENIZER.encode("😀")[:2]]:
        stream.push(token)
    assert stream.finish() == ("ok \ufffd", "")
    assert stream.finish() == ("ok \ufffd", "")
    assert "".join(t.text for t in stream.take()) == "ok \ufffd"


def test_neighbours_of_one_channel_are_one_event():
    _, shown, _ = write(TOKENIZER.encode("hm\n</think>\n\nyes"), in_reasoning=True)
    stream = ReplyStream(TOKENIZER, max_tokens=100, in_reasoning=True)
    for token in TOKENIZER.encode("hm\n</think>\n\nyes"):
        stream.push(token)
    stream.finish()
    assert stream.take() == [Text("hm", "reasoning"), Text("yes", "answer")]
    assert len(shown) > 2


def test_pushing_after_the_end_is_a_mistake():
    stream, _, _ = write([EOS])
    with pytest.raises(ValueError, match="ended"):
        stream.push(0)


@given(tokens=replies, inside=st.booleans())
def test_read_reply_is_what_the_stream_gives(tokens, inside):
    stream, _, _ = write(tokens, ignore_eos=True, in_reasoning=inside)
    assert read_reply(TOKENIZER, tokens, inside, special=False) == stream.finish()
