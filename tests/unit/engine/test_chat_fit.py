"""The context limit: a chat fits, is refused in words, or loses its oldest turns and says which."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    ContextFull,
    ContextUse,
    EndReason,
    Engine,
    Finished,
    Message,
    Notice,
    Request,
    Speculation,
    Text,
    WhenFull,
)
from engine.chat.fit import LEAST_ROOM, fit, warning
from tests.support.chat import NEVER, Chat, answer_of, write
from tests.support.rig import load_tiny
from tests.support.tiny_pair import Shape, write_head, write_target
from tests.support.tiny_tokenizer import KEEPING, REWRITING, tiny_tokenizer

WORDS = st.integers(0, 40).map(lambda n: "the lazy dog " * n + "!")


@st.composite
def chats(draw: st.DrawFn) -> tuple[Message, ...]:
    """A system message or none, whole turns, and a last question."""
    messages = [Message("system", "be brief")] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 8))):
        messages += [Message("user", draw(WORDS)), Message("assistant", draw(WORDS))]
    return (*messages, Message("user", draw(WORDS)))


@given(chats(), st.integers(40, 600), st.integers(1, 400), st.sampled_from([KEEPING, REWRITING]))
@settings(max_examples=120)
def test_what_is_left_out_is_the_oldest_turns_and_no_more_than_a_step_too_many(
    messages: tuple[Message, ...], limit: int, most: int, template: str
) -> None:
    tokenizer = tiny_tokenizer(template)
    request = Request(messages, max_tokens=most, when_full=WhenFull.DROP_OLDEST)
    try:
        found = fit(tokenizer, request, limit)
    except ContextFull as refused:
        full = refused
        alone = messages[:1] if messages[0].role == "system" else ()
        least = fit(tokenizer, replace(request, messages=(*alone, messages[-1])), 10**6)
        assert len(least.prompt) + min(LEAST_ROOM, most) > limit, "only a last turn that does not fit alone is refused"
        assert not full.can_drop
        assert full.todo == "Shorten the message."
        return
    talk = [m for m in messages if m.role != "system"]
    assert list(found.dropped) == talk[: len(found.dropped)]
    assert not found.dropped or talk[len(found.dropped)].role == "user"
    assert len(found.prompt) + min(LEAST_ROOM, most) <= limit
    assert fit(tokenizer, request, limit) == found, "a pure function: a reply can be replayed"
    if not found.dropped:
        assert found.told == ""
        assert fit(tokenizer, replace(request, when_full=WhenFull.REFUSE), limit) == found
    else:
        assert f"(messages 1 to {len(found.dropped)})" in found.told


def test_turns_are_left_out_in_steps() -> None:
    """Every cut moves what is behind it and costs a whole prefill: not one turn per turn."""
    tokenizer, cuts, messages = tiny_tokenizer(KEEPING), [], []
    for n in range(60):
        messages.append(Message("user", f"question {n} " + "fox " * 5))
        request = Request(tuple(messages), max_tokens=60, when_full=WhenFull.DROP_OLDEST)
        found = fit(tokenizer, request, 600)
        assert len(found.prompt) <= 600 - 60
        cuts.append(len(found.dropped))
        messages.append(Message("assistant", "answer " * 4))
    assert cuts == sorted(cuts)
    assert cuts[-1] > 60
    assert len(set(cuts)) <= 1 + 2 * cuts[-1] / len(messages) * 60 / 5, "about a quarter of the context at a time"
    assert len(set(cuts)) < 16


def test_it_is_said_which_turns_the_model_does_not_see() -> None:
    """By number, not by their text: notices go into the session log, which holds no word of a chat."""
    messages = [Message("user", "First of all,\n  tell me " + "all " * 60), Message("assistant", "No. " * 50)]
    messages += [Message("user", "Why?"), Message("assistant", "Because."), Message("user", "And?")]
    found = fit(tiny_tokenizer(KEEPING), Request(tuple(messages), max_tokens=20, when_full="drop oldest turns"), 150)
    assert found.told == (
        "The chat no longer fits the model's context. Its oldest turn (messages 1 to 2) stays in the chat; the model "
        "does not see it."
    )


def test_a_warning_comes_before_the_limit() -> None:
    assert warning(84, 100, WhenFull.REFUSE) == ""
    assert "85% of the model's context (85 of 100 tokens)" in warning(85, 100, WhenFull.REFUSE)
    assert "further messages refused, and nothing is lost" in warning(99, 100, WhenFull.REFUSE)
    assert "the oldest turns are left out" in warning(99, 100, WhenFull.DROP_OLDEST)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A model that reads 256 tokens."""
    folder, shape = tmp_path_factory.mktemp("small"), Shape(context=256)
    return Engine(load_tiny(write_target(folder / "t", shape), write_head(folder / "h", shape)))


def context_notices(events: list) -> list[str]:
    return [e.text for e in events if isinstance(e, Notice) and e.kind == "context"]


def test_a_growing_chat_is_warned_then_cut_then_refused_and_never_empty(small: Engine) -> None:
    """LMS #2339, LCPP #12120: never a silent empty answer; what was written is kept."""
    chat, warned = Chat(small), []
    while True:
        chat.messages.append(Message("user", f"fox {len(warned)}"))
        request = chat.request(max_tokens=30, seed=len(warned), ignore_eos=True)
        if len(fit(small._pair.tokenizer, request, 10**6).prompt) + LEAST_ROOM > 256:
            break
        done, events = write(small, request)
        warned.append(context_notices(events))
        uses = [e for e in events if isinstance(e, ContextUse)]
        prompt = done.stats.prompt_tokens
        assert [u.tokens for u in uses] == [prompt + 1, prompt + len(done.tokens)]
        assert uses[-1].limit == 256
        assert (uses[-1].boundary_bytes, uses[-1].budget) == (small.boundary_bytes, small._boundaries.budget)
        assert len(done.tokens) >= LEAST_ROOM
        assert "".join(e.text for e in events if isinstance(e, Text))
        assert (uses[-1].tokens >= 0.85 * 256) == bool(warned[-1])
        assert done.reason is (EndReason.CONTEXT if prompt + len(done.tokens) == 256 else EndReason.BUDGET)
        chat.messages.append(answer_of(done))
    with pytest.raises(ContextFull) as refused:
        list(small.generate(request, NEVER))
    assert refused.value.kept == "All messages are kept."
    assert refused.value.can_drop
    assert "Leave out the oldest turns" in refused.value.todo
    assert len(warned) > 3
    assert warned[-1], "before the refusal"


def test_leaving_out_the_oldest_turns_goes_on_for_ever_and_is_the_same_cold(small: Engine) -> None:
    """Also under speculation, and for Verify, which must leave out the same turns."""
    engine, chat, luck, read_again = Engine(small._pair), Chat(small), random.Random(1), 0
    for n in range(20):
        chat.messages.append(Message("user", "fox " * luck.randint(1, 3)))
        request = chat.request(max_tokens=7, seed=n, when_full=WhenFull.DROP_OLDEST, speculation="always")
        done, events = write(engine, request)
        dropped = [e for e in events if isinstance(e, ContextUse)][-1].dropped
        assert any("the model does not see" in text for text in context_notices(events)) == (dropped > 0)
        read_again += done.stats.restored_tokens == 0
        if n % 3 == 2:
            cold, _ = write(Engine(small._pair), replace(request, speculation=Speculation.OFF))
            assert (done.tokens, done.segments) == (cold.tokens, cold.segments)
            *_, receipt = engine.verify(request, done.tokens, NEVER)
            assert receipt.identical
        chat.messages.append(answer_of(done))
    assert dropped > 10
    assert read_again <= 6, "most turns start where the last one ended"


def test_a_budget_too_small_for_one_boundary_is_told(small: Engine) -> None:
    """No silent fallback: the user learns why every turn reads everything."""
    engine = Engine(small._pair)
    engine._boundaries.budget = 1000
    done, events = write(engine, Request((Message("user", "fox"),), max_tokens=3))
    assert isinstance(done, Finished)
    (told,) = [e.text for e in events if isinstance(e, Notice) and e.kind == "cache"]
    assert "The next turn reads everything again." in told
