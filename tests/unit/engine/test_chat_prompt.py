"""Known tokens are never tokenized again, and the plan always says exactly the rendered chat."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import EndReason, Message, Segment
from engine.chat.prompt import Plan, as_written, plan
from engine.chat.reply import ReplyStream
from engine.errors import CheckpointError
from tests.support.texts import texts
from tests.support.tiny_tokenizer import KEEPING, REWRITING, tiny_tokenizer

KEEP, REWRITE = tiny_tokenizer(KEEPING), tiny_tokenizer(REWRITING)
EOS, OTHER_EOS = KEEP.encode("<|im_end|>")[0], KEEP.encode("<|endoftext|>")[0]
BY_BYTE = {KEEP.token_bytes(i): i for i in range(256)}


def spelled(text: str) -> list[int]:
    """Ids that the tokenizer would not choose: one per byte, tags and special tokens apart."""
    ids = KEEP.encode(text)
    plain = [[i] if i >= min(KEEP.hidden_ids) else [BY_BYTE[bytes([b])] for b in KEEP.token_bytes(i)] for i in ids]
    return [i for part in plain for i in part]


def write(tokenizer, messages, ids, thinking, *, stop=(), budget=10_000, cut=True) -> tuple[Plan, Message]:
    """A turn, as the engine does it: plan, reply with these ids, message to store."""
    made = plan(tokenizer, messages, thinking)
    stream = ReplyStream(tokenizer, max_tokens=budget, stop=stop, in_reasoning=made.opens_reasoning)
    tokens = []
    for token in ids:
        tokens.append(token)
        if stream.push(token):
            break
    answer, reasoning = stream.finish()
    prefill = made.prefill if cut else (Segment("prefill", made.fresh),)
    segments = (*prefill, Segment("decode", tuple(tokens[:-1])))
    return made, Message("assistant", answer, reasoning, segments, tokens[-1] if tokens else None)


def all_tokens(made: Plan) -> tuple[int, ...]:
    return (*(t for segment in made.history for t in segment.tokens), *made.fresh)


def prompt_text(tokenizer, messages, thinking) -> str:
    return tokenizer.render([as_written(tokenizer, m) for m in messages], thinking)


# ---------------------------------------------------------------------------------------- one turn after another


@pytest.mark.parametrize("thinking", [None, True, False])
@pytest.mark.parametrize("spell", [KEEP.encode, spelled])
def test_next_turn_starts_with_the_last_token_of_the_reply(thinking, spell):
    user = Message("user", "Hi")
    reply = ("Hm.\n</think>\n\n" if thinking else "") + "Yes, unable.<|im_end|>"
    first, answer = write(KEEP, [user], spell(reply), thinking)
    second = plan(KEEP, [user, answer, Message("user", "Go")], thinking)
    assert second.history == answer.segments
    assert second.fresh[0] == answer.last_token == EOS
    assert KEEP.decode(second.fresh).startswith("<|im_end|>\n<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n")
    assert second.reason == ""
    assert first.history == ()
    assert first.stable == second.stable == 0


def test_first_turn_has_no_history():
    made = plan(KEEP, [Message("user", "Hi")], None)
    assert made.history == ()
    assert list(made.fresh) == KEEP.encode("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert made.prefill == (Segment("prefill", made.fresh),)


@pytest.mark.parametrize(
    ("ids", "options", "reason"),
    [
        (spelled("Yes STOP. More"), {"stop": ["STOP"]}, EndReason.STOP_STRING),
        (spelled("Yes, and more"), {"budget": 5}, EndReason.BUDGET),
        (spelled("Yes 😀")[:-2], {}, None),  # Stop in the middle of an emoji
        (spelled("Yes 😀")[:-1], {}, None),
        (spelled("Yes 😀"), {}, None),  # its last token completes a character that the caches hold half of
        (spelled("Y"), {}, None),
    ],
)
def test_a_cut_reply_is_continued_from_its_last_token(ids, options, reason):
    """It has no <|im_end|>: the text behind it supplies it. What a stop string hid stays in the caches."""
    user = Message("user", "Hi")
    _, answer = write(KEEP, [user], ids, None, **options)
    made = plan(KEEP, [user, answer, Message("user", "Go")], None)
    assert made.history == answer.segments
    assert made.fresh[0] == answer.last_token
    assert made.fresh[1] == EOS
    assert made.reason == ""


def test_another_end_token_than_the_templates_is_left_out():
    user = Message("user", "Hi")
    _, answer = write(KEEP, [user], [*KEEP.encode("Yes"), OTHER_EOS], None)
    made = plan(KEEP, [user, answer, Message("user", "Go")], None)
    assert made.history == answer.segments
    assert made.fresh[0] == EOS
    assert made.reason == ""


@pytest.mark.parametrize("token", [KEEP.vocab_size, 10**6, 2**32 - 1])
@pytest.mark.parametrize("kind", ["prefill", "decode"])
def test_tokens_of_no_text_are_never_fed(kind, token):
    """An imported chat held some; they "fitted" any prompt, and reading their embeddings ended the program."""
    user, go = Message("user", "Hi"), Message("user", "Go")
    answer = Message("assistant", "Yes", segments=(Segment(kind, (token,)),), last_token=token)
    made = plan(KEEP, [user, answer, go], None)
    assert made.history == ()
    assert token not in made.fresh
    assert made.reason


def test_a_decomposed_letter_typed_by_the_user_does_not_lose_the_history():
    """The tokenizer composes it, so the tokens read "é" where the message says "e" + U+0301."""
    user = Message("user", "Cafe\u0301?")
    _, answer = write(KEEP, [user], KEEP.encode("Oui.<|im_end|>"), None)
    assert plan(KEEP, [user, answer, Message("user", "e\u0301")], None).history == answer.segments


def test_a_decomposed_letter_written_by_the_model_keeps_its_tokens():
    user = Message("user", "Hi")
    _, answer = write(KEEP, [user], [*spelled("Cafe"), *[BY_BYTE[bytes([b])] for b in "\u0301".encode()], EOS], None)
    assert answer.content == "Cafe\u0301"
    assert plan(KEEP, [user, answer, Message("user", "Go")], None).history == answer.segments


def test_special_tokens_inside_a_reply_are_not_shown_but_kept():
    user = Message("user", "Hi")
    start = KEEP.encode("<|im_start|>")
    _, answer = write(KEEP, [user], [*KEEP.encode("a"), *start, *KEEP.encode("b"), EOS], None)
    assert answer.content == "ab"
    assert plan(KEEP, [user, answer, Message("user", "Go")], None).history == answer.segments


# ----------------------------------------------------------------------------------- templates that rewrite, edits


def test_dropped_reasoning_falls_back_to_the_end_of_the_user_message():
    user = Message("user", "Hi")
    first, answer = write(REWRITE, [user], REWRITE.encode("Hm.\n</think>\n\nYes<|im_end|>"), True)
    assert first.opens_reasoning
    assert REWRITE.decode(first.fresh[: first.stable]) == "<|im_start|>user\nHi<|im_end|>\n"
    second = plan(REWRITE, [user, answer, Message("user", "Go")], True)
    assert second.history == answer.segments[:1]
    assert REWRITE.decode(second.fresh).startswith("<|im_start|>assistant\nYes<|im_end|>\n<|im_start|>user\nGo")
    assert "template" in second.reason


def test_with_such_a_template_a_turn_reads_only_its_own_and_the_reply_before():
    chat: list[Message] = []
    sizes = []
    for turn in range(12):
        chat.append(Message("user", f"Question {turn % 10}?"))
        made, answer = write(REWRITE, chat, REWRITE.encode("Hm.\n</think>\n\nYes.<|im_end|>"), True)
        sizes.append(len(made.fresh))
        chat.append(answer)
    assert len(set(sizes[1:])) == 1


def test_the_cut_counts_the_last_token_of_the_reply():
    """Turn one keeps its prompt, turn two does not, and starts with the last token of turn one."""
    tokenizer = tiny_tokenizer(
        KEEPING.replace("(m.reasoning_content or enable_thinking is defined)", "m.reasoning_content")
    )
    user = Message("user", "Hi")
    _, answer = write(tokenizer, [user], tokenizer.encode("Hm.\n</think>\n\nYes<|im_end|>"), True)
    made = plan(tokenizer, [user, answer, Message("user", "Go")], False)
    assert made.history == answer.segments
    assert [tokenizer.decode(s.tokens) for s in made.prefill] == [
        "<|im_end|>\n<|im_start|>user\nGo<|im_end|>\n",
        "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    ]


def test_without_the_cut_the_boundary_before_the_generation_prompt_does_not_exist():
    """Why `stable` is there: with one prefill segment such a template loses everything, every turn."""
    user = Message("user", "Hi")
    _, answer = write(REWRITE, [user], REWRITE.encode("Hm.\n</think>\n\nYes<|im_end|>"), True, cut=False)
    assert plan(REWRITE, [user, answer, Message("user", "Go")], True).history == ()


def test_trimmed_white_space_is_read_again():
    """The last token fits nowhere, but no cache holds it: only what stands before it must match."""
    template = KEEPING.replace("m.content +", "m.content|trim +")
    tokenizer = tiny_tokenizer(template)
    user = Message("user", "Hi")
    _, answer = write(tokenizer, [user], spelled("Yes\n"), None)
    assert plan(tokenizer, [user, answer, Message("user", "Go")], None).history == answer.segments
    _, answer = write(tokenizer, [user], spelled("Yes\n\n"), None)
    made = plan(tokenizer, [user, answer, Message("user", "Go")], None)
    assert made.history == answer.segments[:1]
    assert made.reason


def test_an_edited_reply_keeps_what_stands_before_it():
    user = Message("user", "Hi")
    _, answer = write(KEEP, [user], spelled("Yes<|im_end|>"), None)
    edited = replace(answer, content="No")  # the caller forgot to drop the segments
    made = plan(KEEP, [user, edited, Message("user", "Go")], None)
    assert made.history == answer.segments[:1]
    assert KEEP.decode(all_tokens(made)) == prompt_text(KEEP, [user, edited, Message("user", "Go")], None)


def test_an_edited_question_starts_from_the_boundary_before_it():
    chat = [Message("system", "Be brief."), Message("user", "Hi")]
    _, one = write(KEEP, chat, spelled("Yes<|im_end|>"), None)
    _, two = write(KEEP, [*chat, one, Message("user", "Go")], spelled("No<|im_end|>"), None)
    made = plan(KEEP, [*chat, one, Message("user", "Went")], None)
    assert made.history == one.segments
    assert plan(KEEP, [chat[0], Message("user", "Ho"), one, Message("user", "Go"), two], None).history == ()


def test_regenerate_plans_the_same_prefill_as_the_first_attempt():
    chat = [Message("user", "Hi")]
    made, _ = write(KEEP, chat, spelled("Yes<|im_end|>"), None)
    assert plan(KEEP, chat, None) == made


def test_after_a_rewrite_the_chain_goes_on_from_where_that_turn_really_began():
    """Reasoning is switched off for turn two: its prefill began before reply one, not after it."""
    user, again = Message("user", "Hi"), Message("user", "Go")
    _, one = write(REWRITE, [user], REWRITE.encode("Hm.\n</think>\n\nYes<|im_end|>"), True)
    made, two = write(REWRITE, [user, one, again], REWRITE.encode("No<|im_end|>"), False)
    three = plan(REWRITE, [user, one, again, two, Message("user", "So")], False)
    assert three.history == (*made.history, *two.segments[:1])


def test_a_template_that_writes_nothing_is_refused():
    tokenizer = tiny_tokenizer("{{ '' }}")
    with pytest.raises(CheckpointError, match="nothing"):
        plan(tokenizer, [Message("user", "Hi")], None)


# ------------------------------------------------------------------------------------------------- random chats


@dataclass
class Turn:
    user: str
    reply: list[int]
    stop: tuple[str, ...]
    budget: int
    thinking: bool | None
    then: str  # what happens next to the chat


turns = st.builds(
    Turn,
    user=texts,
    reply=st.one_of(
        texts.map(lambda t: [*KEEP.encode(t), EOS]),
        texts.map(lambda t: [*spelled("Hm.\n</think>\n\n" + t), EOS]),
        texts.map(spelled),
        st.lists(st.integers(0, KEEP.vocab_size + 3), max_size=20),
    ),
    stop=st.sampled_from([(), ("STOP",), ("###", "\n"), ("</think>",)]),
    budget=st.integers(1, 40),
    thinking=st.sampled_from([None, True, False]),
    then=st.sampled_from(["go on", "go on", "go on", "regenerate", "edit", "forget", "branch"]),
)


@settings(max_examples=100)
@given(template=st.sampled_from([KEEPING, REWRITING]), system=st.none() | texts, chat=st.lists(turns, max_size=6))
def test_any_chat_gives_a_plan_that_says_the_prompt(template, system, chat):
    tokenizer = tiny_tokenizer(template)
    messages = [] if system is None else [Message("system", system)]
    computed: set[tuple[Segment, ...]] = {()}  # every schedule that some turn really went through
    for turn in chat:
        messages.append(Message("user", turn.user))
        ids = turn.reply or [EOS]
        made, answer = write(tokenizer, messages, ids, turn.thinking, stop=turn.stop, budget=turn.budget)

        said, text = tokenizer.decode(all_tokens(made)), prompt_text(tokenizer, messages, turn.thinking)
        if not unicodedata.is_normalized("NFC", text) and made.reason:
            # The model wrote decomposed letters and their text is read again: the tokenizer composes them.
            said, text = unicodedata.normalize("NFC", said), unicodedata.normalize("NFC", text)
        assert said == text
        assert made.fresh
        assert made.history in computed
        assert made == plan(tokenizer, messages, turn.thinking)  # pure
        assert 0 <= made.stable < len(made.fresh)
        assert tuple(t for s in made.prefill for t in s.tokens) == made.fresh
        if template == KEEPING and all(t.thinking == turn.thinking and t.then == "go on" for t in chat):
            earlier = [s for m in messages for s in m.segments]
            shapes = all(well_formed(tokenizer, m, turn.thinking) for m in messages if m.segments)
            assert not shapes or list(made.history) == earlier

        computed.update(beginnings(made, answer))
        match turn.then:
            case "go on":
                messages.append(answer)
            case "regenerate":
                again, other = write(tokenizer, messages, spelled("Other<|im_end|>"), turn.thinking)
                computed.update(beginnings(again, other))
                messages.append(other)
            case "edit":
                messages.append(Message("assistant", "Edited by hand."))
            case "forget":
                messages.append(replace(answer, segments=(), last_token=None))
            case "branch":
                messages = messages[:-2]


def beginnings(made: Plan, answer: Message) -> list[tuple[Segment, ...]]:
    schedule = (*made.history, *answer.segments)
    return [schedule[:n] for n in range(len(schedule) + 1)]


def well_formed(tokenizer, message, thinking) -> bool:
    """Whether the template writes this reply as the model did."""
    written = as_written(tokenizer, message)
    rendered = tokenizer.render([written], thinking, add_generation_prompt=False)
    head = tokenizer.decode(message.segments[0].tokens).rpartition("<|im_start|>assistant")[2]
    body = tokenizer.decode([t for s in message.segments if s.kind == "decode" for t in s.tokens])
    return rendered.startswith("<|im_start|>assistant" + head + body)
