"""Reasoning and answer are told apart the same way however the reply is cut, and nothing gets lost."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.chat.reasoning import ReasoningSplitter, opens_reasoning
from tests.support.texts import chunked, texts


def split(chunks, inside):
    splitter = ReasoningSplitter(inside)
    return [piece for chunk in chunks for piece in splitter.push(chunk)] + splitter.finish()


def channel(pieces, kind):
    return "".join(p.text for p in pieces if p.kind == kind)


def read(text, inside=False):
    pieces = split([text], inside)
    return channel(pieces, "reasoning"), channel(pieces, "answer")


replies = st.tuples(
    st.sampled_from(["", " \n", "<think>", "<think>\n", "\n</think>\n\n", "x"]),
    texts,
    st.sampled_from(["", "</think>", "\n</think>\n\n", " </think> `"]),
    texts,
).map("".join)


@given(chunks=chunked(replies), inside=st.booleans())
@example(chunks=["<thi", "nk>a</thi", "nk>b"], inside=False)
@example(chunks=["a `</think>", "` b"], inside=True)
@example(chunks=["a `</think>", "\n\nb"], inside=True)
def test_every_chunking_gives_the_same_channels_and_joins_to_the_whole(chunks, inside):
    text = "".join(chunks)
    pieces = split(chunks, inside)
    assert "".join(p.text for p in pieces) == text
    assert (channel(pieces, "reasoning"), channel(pieces, "answer")) == read(text, inside)


@given(chunks=chunked(texts))
def test_markup_is_only_tags_and_white_space(chunks):
    markup = channel(split(chunks, True), "markup")
    assert markup.replace("<think>", "").replace("</think>", "").strip(" \t\r\n") == ""


@given(text=texts)
def test_what_looks_like_an_answer_is_never_hidden(text):
    """Without a tag at its start a reply is all answer, whatever it says later."""
    assert read("Well, " + text) == ("", "Well, " + text)


@pytest.mark.parametrize(
    ("inside", "text", "reasoning", "answer"),
    [
        # the usual forms
        (False, "<think>\nHm.\n</think>\n\nYes.", "Hm.", "Yes."),
        (True, "Hm.\n</think>\n\nYes.", "Hm.", "Yes."),
        (False, "Yes.", "", "Yes."),
        (True, "\n</think>\n\nYes.", "", "Yes."),
        (True, "</think>Yes.", "", "Yes."),
        # tags the template has written already, or that belong to nothing
        (True, "<think>\nHm.</think>Yes.", "Hm.", "Yes."),
        (False, "</think>\n\nYes.", "", "Yes."),
        (False, "Yes </think> no", "", "Yes </think> no"),
        (False, "Yes <think>no</think>", "", "Yes <think>no</think>"),
        # cut off
        (True, "Hm.", "Hm.", ""),
        (True, "Hm.\n\n", "Hm.\n\n", ""),
        (False, "<think>Hm</thi", "Hm</thi", ""),
        (False, "<thi", "", "<thi"),
        (True, "", "", ""),
        # an answer is text, tags or not, in code or not
        (True, "Hm.</think>Use `<think>` and `</think>`.", "Hm.", "Use `<think>` and `</think>`."),
        (True, "Hm.</think>```\n<think>\nx\n</think>\n```", "Hm.", "```\n<think>\nx\n</think>\n```"),
        (True, "Hm.</think>a</think>b", "Hm.", "a</think>b"),
        # quoted inside reasoning
        (True, "It ends with `</think>`, so.\n</think>\n\nYes.", "It ends with `</think>`, so.", "Yes."),
        (True, "The `<think>` tag\n</think>\nYes.", "The `<think>` tag", "Yes."),
        (True, "The <think> tag\n</think>\nYes.", "The <think> tag", "Yes."),
        (True, "```\n<think>\nx\n</think>\n```\nok</think>Yes.", "```\n<think>\nx\n</think>\n```\nok", "Yes."),
        # a model that forgets to close its code must not hide the answer
        (True, "try `x\n</think>\n\nYes.", "try `x", "Yes."),
        (True, "try `x </think>\n\nYes.", "try `x", "Yes."),
        (True, "```py\nx = 1\n</think>\n\nYes.", "```py\nx = 1", "Yes."),
        (True, "```\n<think>\n```\n```\nx\n</think>\nYes.", "```\n<think>\n```\n```\nx", "Yes."),
        (True, "a `b </think>" + "c" * 100 + "`", "a `b", "c" * 100 + "`"),
    ],
)
def test_cases(inside, text, reasoning, answer):
    assert read(text, inside) == (reasoning, answer)
    assert read_by_character(text, inside) == (reasoning, answer)


def read_by_character(text, inside):
    pieces = split(list(text), inside)
    return channel(pieces, "reasoning"), channel(pieces, "answer")


@pytest.mark.parametrize("space", [60, 64, 65, 100])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("rest", ["<think>a</think>b", "</think>b", "b"])
def test_much_white_space_before_the_first_tag(space, inside, rest):
    text = " " * space + rest
    assert read(text, inside) == read_by_character(text, inside)
    if not inside and space > 64:
        assert read(text, inside) == ("", text)


def test_a_doubtful_tag_is_decided_after_a_while():
    splitter = ReasoningSplitter(True)
    splitter.push("a `b </think>")
    assert channel([p for _ in range(70) for p in splitter.push("c")], "answer") == "c" * 70


def test_text_is_not_held_longer_than_a_tag_could_be():
    splitter = ReasoningSplitter(True)
    assert channel(splitter.push("Let me see <"), "reasoning") == "Let me see"
    assert channel(splitter.push("b"), "reasoning") == " <b"


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [
        ("x<think>\n", True),
        ("x<think>", True),
        ("x<think>\n\n</think>\n\n", False),
        ("assistant\n", False),
        ("", False),
    ],
)
def test_which_prompts_open_the_reasoning(prompt, opens):
    assert opens_reasoning(prompt) is opens


@pytest.mark.parametrize("unit", [" ", "\n", "`", "<", "</think", "`</think>", "<think>", "a ", "```\n<think>"])
@pytest.mark.parametrize("inside", [False, True])
def test_cost_is_linear_for_hostile_streams(unit, inside):
    splitter = ReasoningSplitter(inside)
    started = time.process_time()
    size = sum(len(p.text) for _ in range(20_000) for p in splitter.push(unit))
    size += sum(len(p.text) for p in splitter.finish())
    assert size == 20_000 * len(unit)
    assert time.process_time() - started < 5
