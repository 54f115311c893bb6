"""The recipe's filters and packing: what decides what the demo model learns. The sources themselves are not needed."""

import json
from pathlib import Path

import numpy as np
import pytest
from demo_model import clean, evaluate, pack
from tokenizers import Tokenizer
from transformers import AutoTokenizer

TARGET = Path(__file__).resolve().parents[3] / "resources" / "demo" / "target"


@pytest.mark.parametrize(
    "text",
    [
        "What is a volcano?",
        "what's a volcano",
        "Please what is the volcano",
        "Hi! What is a volcano?",
        "WHAT IS VOLCANO",
    ],
)
def test_a_held_out_prompt_is_recognised_in_other_dress(text: str) -> None:
    assert clean.is_held_out(text)


@pytest.mark.parametrize("text", ["What is a valley?", "Tell me what a volcano is.", "Hi"])
def test_other_prompts_are_not_held_out(text: str) -> None:
    assert not clean.is_held_out(text)


def test_the_two_evaluation_sets_do_not_overlap() -> None:
    more = [clean.normal(p) for p in json.loads(Path(clean.__file__).with_name("acceptance_prompts.json").read_text())]
    assert len(set(more)) == len(more)
    assert not set(more) & clean.held_out()


def test_the_quality_set_is_70_items_and_counts_none_that_training_had_met() -> None:
    raw = json.loads(Path(clean.__file__).with_name("eval_prompts.json").read_text())
    counted, retired = (evaluate.dialogues(), evaluate.dialogues(retired=True))
    assert [len(turns) for _, turns in counted].count(1) == 60
    assert [len(turns) for _, turns in counted].count(3) == 10
    assert len(retired) == len(raw["newer"]) == 26
    assert set(raw["newer"]) <= {turns[0] for _, turns in counted}
    kinds = [sorted(clean.normal(t) for _, turns in part for t in turns) for part in (counted, retired)]
    assert not set(kinds[0]) & set(kinds[1])
    assert set(kinds[0]) | set(kinds[1]) == clean.held_out()


def test_a_prompt_is_found_as_a_text_of_its_own_and_as_the_end_of_one() -> None:
    texts = ["Hi! What's a volcano?", "What is a volcano made of?", "Tell me, what is a volcano?", "hello"]
    equal, ends = evaluate.meetings(texts, {"what is volcano", "hello"})
    assert equal == {"what is volcano": 1, "hello": 1}
    assert ends == {"what is volcano": 1}


def test_earlier_replies_are_kept_only_for_the_same_turns_of_the_same_kind() -> None:
    chat = [{"user": u, "group": "chat"} for u in "abc"]
    before = [{"user": "a", "group": "list"}, *chat]
    assert evaluate.kept(before, "retired chat", list("abc")) == chat
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
