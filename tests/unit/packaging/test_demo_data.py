"""The recipe's filters and packing: what decides what the demo model learns. The sources themselves are not needed."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from demo_model import clean, corpus, evaluate, grammar, kinds, pack, subjects, sums, talks
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer

TARGET = Path(__file__).resolve().parents[3] / "resources" / "demo" / "target"


@pytest.mark.parametrize(
    "text",
    [
        "What is a pyramid?",
        "what's a pyramid",
        "Please what is the pyramid",
        "Hi! What is a pyramid?",
        "WHAT IS PYRAMID",
        "Sorry to bother you, I have a question. What is a pyramid?",
    ],
)
def test_a_held_out_prompt_is_recognised_in_other_dress(text: str) -> None:
    assert clean.is_held_out(text)


@pytest.mark.parametrize("text", ["What is a valley?", "Tell me what a pyramid is.", "Hi", "What is a pyramid for?"])
def test_other_prompts_are_not_held_out(text: str) -> None:
    assert not clean.is_held_out(text)


def test_the_evaluation_sets_do_not_overlap() -> None:
    here = Path(clean.__file__).parent
    more = [clean.normal(p) for p in json.loads((here / "acceptance_prompts.json").read_text())]
    counted = [clean.normal(t) for _, turns in evaluate.dialogues() for t in turns]
    raw = json.loads((here / "dev_prompts.json").read_text())
    development = {clean.normal(p) for group in [*raw["single"].values(), *raw["chats"]] for p in group}
    assert len({*more, *counted}) == len(more) + len(counted)
    assert not development & {*more, *counted}


def test_the_quality_set_is_70_items() -> None:
    lengths = [len(turns) for _, turns in evaluate.dialogues()]
    assert (lengths.count(1), lengths.count(3), len(lengths)) == (60, 10, 70)


def test_no_chat_made_by_rule_holds_an_evaluation_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [subjects.Chat(["What is a pyramid?", "No."], "what is"), subjects.Chat(["Hello", "Hi."], "greeting")]
    monkeypatch.setattr(corpus, "singles", lambda r: list(made))
    monkeypatch.setattr(corpus, "chain", lambda r, first, rest: first)
    assert [c.turns[0] for c in corpus.build(random.Random(0))] == ["Hello"]


@given(st.integers(0, 2**32))
def test_every_scripted_turn_expands_without_leftovers(seed: int) -> None:
    r = random.Random(seed)
    for name in ("scripts", "self", "chats"):
        chat = corpus.script(r, name)
        for text in [*chat.turns, *(t for pair in (*chat.answers, *chat.more) for t in pair)]:
            assert text
            assert not set(text) & set("{}|<>")


@given(st.integers(0, 2**32))
def test_sums_are_right(seed: int) -> None:
    chat = sums.arithmetic(random.Random(seed))
    for reply in (chat.turns[1], *(said for _, said in (*chat.answers, *chat.more))):
        if m := re.search(r"(\d+) ([+-]) (\d+) = (\d+)", reply):
            a, b, result = int(m[1]), int(m[3]), int(m[4])
            assert result == (a + b if m[2] == "+" else a - b)
        elif m := re.match(r"(\d+) (times|divided by) (\d+) is (\d+)[.,]", reply):
            a, b, result = int(m[1]), int(m[3]), int(m[4])
            assert (a * b == result) if m[2] == "times" else (a == b * result)


def test_questions_that_go_on_from_a_result_take_it_further() -> None:
    r = random.Random(3)
    for _ in range(200):
        result = r.randint(0, 40)
        for _, said in sums._going_on(r, result):
            numbers = [int(n) for n in re.findall(r"\d+", said)]
            assert result in numbers[:-1], said
            result = numbers[-1]


@given(st.integers(0, 2**32))
def test_talks_stay_with_their_subject(seed: int) -> None:
    r = random.Random(seed)
    trip = talks.trip(r)
    packing = [said for said in [trip.turns[1], *(b for _, b in trip.more)] if said.startswith("For ")]
    assert packing
    where = {said[4:].split(", take")[0].removeprefix("your ") for said in packing}
    assert len(where) == 1
    assert where.pop() in trip.turns[0].replace("My ", "my ")
    dish = talks.cook(r).answers[0][1].removeprefix("Good choice! Do you want to know how to make ").rstrip("?")
    assert dish in talks.dishes()
    for chat in (trip, talks.cook(r), talks.pet(r)):
        for text in [*chat.turns, *(t for pair in (*chat.answers, *chat.more, *chat.asides) for t in pair)]:
            assert text
            assert not set(text) & set("{}|<>")


def test_a_trouble_stands_for_its_task_and_every_one_has_a_task() -> None:
    tasks = {row[0]: row for row in subjects.table("howto")}
    assert set(subjects.problems()) <= set(tasks)
    for name in subjects.problems():
        for seed in range(20):
            told = subjects.problem(random.Random(seed), tasks[name], "How?")
            assert not set(told) & set("{}|<>"), told


def test_other_names_of_a_list_belong_to_one() -> None:
    plurals = [row[1] for row in subjects.table("lists")]
    assert set(kinds.other_names()) <= set(plurals)


def test_a_wording_with_a_missing_brace_is_refused() -> None:
    with pytest.raises(ValueError, match="open brace"):
        grammar.expand(random.Random(0), "{a|b")


@pytest.mark.parametrize(
    ("task", "doing"), [("tie a tie", "tying a tie"), ("bake bread", "baking bread"), ("free a bird", "freeing a bird")]
)
def test_gerunds(task: str, doing: str) -> None:
    assert subjects.gerund(task) == doing


def test_a_prompt_is_found_as_a_text_of_its_own_and_as_the_end_of_one() -> None:
    texts = ["Hi! What's a volcano?", "What is a volcano made of?", "Tell me, what is a volcano?", "hello"]
    equal, ends = evaluate.meetings(texts, {"what is volcano", "hello"})
    assert equal == {"what is volcano": 1, "hello": 1}
    assert ends == {"what is volcano": 1}


def test_earlier_replies_are_kept_only_for_the_same_turns_of_the_same_kind() -> None:
    chat = [{"user": u, "group": "chat"} for u in "abc"]
    before = [{"user": "a", "group": "list"}, *chat]
    assert evaluate.kept(before, "chat", list("abc")) == chat
    assert evaluate.kept(before, "chat", list("ab")) == chat[:2]
    assert evaluate.kept(before, "list", list("abc")) == []


def test_replies_are_cut_at_whole_sentences() -> None:
    assert clean.cut("One is here. Two is there. Three and", 2) == "One is here. Two is there."
    assert clean.cut("Dr. Smith came. He left.", 1) == "Dr. Smith came."
    assert clean.cut("no end at all", 2) is None
    assert (
        clean.cut("Here:\n1. First thing. More.\n2. Second thing.\n3. Thi", 3)
        == "Here:\n1. First thing.\n2. Second thing."
    )


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        ("What is a cup?", "A cup is a cup."),
        ("I like tea.", "I like tea too, I like tea."),
        ("What is a cup?", "As an AI, I do not know cups."),
        ("What is a cup?", "The weather is nice today."),
        ("Why?", "It is red and round and it is red and round and it is red and round."),
    ],
)
def test_bad_replies_are_refused(prompt: str, reply: str) -> None:
    assert not clean.acceptable(prompt, reply, on_topic=True)


def test_a_good_reply_passes() -> None:
    assert clean.acceptable("What is a cup?", "A cup is a small vessel that people drink from.", on_topic=True)


def test_training_text_is_what_the_template_renders() -> None:
    auto = AutoTokenizer.from_pretrained(TARGET)
    turns = ["Hi", "Hello!", "Bye", "Goodbye!"]
    messages = [{"role": "assistant" if i % 2 else "user", "content": t} for i, t in enumerate(turns)]
    messages.insert(0, {"role": "system", "content": "Be brief."})
    assert pack.chat_text(turns, "Be brief.") == auto.apply_chat_template(messages, tokenize=False)


def test_only_the_assistants_words_carry_full_weight() -> None:
    tok = Tokenizer.from_file(str(TARGET / "tokenizer.json"))
    ids, lengths = pack.encode(
        tok, [pack.chat_text(["Hi", "Yes."], None, "A thought."), pack.chat_text(["Bye", "Ok."])]
    )
    said = pack.chat_flags(tok, ids)
    text = tok.decode(ids[said].tolist(), skip_special_tokens=False)
    # The opened "<think>" line is given to the model, not said by it.
    assert text == "A thought.\n</think>\n\nYes.<|im_end|>Ok.<|im_end|>"
    assert lengths.sum() == len(ids)


def test_packing_keeps_documents_whole_and_marks_their_starts() -> None:
    lengths = np.array([300, 300, 100, 700])
    ids = np.concatenate([np.full(n, 10 + i) for i, n in enumerate(lengths)]).astype(np.uint16)
    rows = pack.pack(ids, np.ones(len(ids), bool), lengths, seed=0)
    tokens = rows & pack.TOKEN_MASK
    for i, n in enumerate(np.minimum(lengths, pack.ROW)):
        where = np.argwhere(tokens == 10 + i)
        assert len(where) == n
        assert len(set(where[:, 0])) == 1
        first = where[0]
        assert rows[tuple(first)] & pack.START
        assert not (rows[first[0], first[1] + 1 : first[1] + n] & pack.START).any()
