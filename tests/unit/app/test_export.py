"""Exports hold the whole tree and come back the same; a file that is none of ours adds nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.panel.meter import stats_dict
from app.replay import stats_of
from app.store import Attachment, Database, Repository, export
from app.store.values import State
from engine import KnownError, Segment
from tests.support.rounds import some_round

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
steps = st.lists(
    st.tuples(st.sampled_from(["user", "reply", "streaming", "switch", "delete"]), st.integers(0, 30), text)
)


def figures(tokens: int) -> dict[str, Any]:
    return stats_dict(stats_of([some_round(n) for n in range(tokens)], 12))


def build(store: Repository, plan: list[tuple[str, int, str]]) -> int:
    """A chat with a tree of its own shape."""
    chat = store.create_conversation('A "title" <b>')
    nodes: list[int] = [store.add_user_message(chat.id, None, "root").id]
    for kind, pick, words in plan:
        at = nodes[pick % len(nodes)]
        if kind == "user":
            files = (Attachment("a.txt", words), Attachment("Pasted text", "x", pasted=True))[: pick % 3]
            nodes.append(store.add_user_message(chat.id, at, words, attachments=files).id)
        elif kind in ("reply", "streaming"):
            nodes.append(store.begin_reply(chat.id, at, seed=pick, request={"n": pick}, model={"name": words}).id)
            if kind == "reply":
                store.finish_reply(
                    nodes[-1],
                    State.COMPLETE,
                    words,
                    words[::-1],
                    segments=(Segment("decode", (1, 2, pick)),),
                    last_token=pick,
                    figures=figures(pick),
                    notices=[{"kind": "park", "text": words}],
                    trace=words.encode() or None,
                )
                store.add_receipt(nodes[-1], "classic replay", {"identical": True})
        elif kind == "switch":
            store.switch_branch(at, -1)
        elif at != nodes[0]:
            store.delete_message(at)
    return chat.id


def shape(store: Repository, conversation: int) -> list[Any]:
    """Everything a chat holds, without ids."""
    result: list[Any] = []
    for message in store.path(conversation):
        full = store.message(message.id)
        assert full is not None
        state = State.INTERRUPTED if full.state is State.STREAMING else full.state
        result.append(
            (full.role, full.content, full.reasoning, state, full.branch, full.branches, full.reply, full.created_at)
        )
        result += [full.attachments, store.trace(message.id), store.receipts(message.id)]
    return result


@given(steps)
@settings(max_examples=20, deadline=None)
def test_an_export_comes_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[str, int, str]]
) -> None:
    """Bug 31: only the selected branch was exported."""
    folder = tmp_path_factory.mktemp("x")
    store, other = Repository(Database(folder / "a.db")), Repository(Database(folder / "b.db"))
    chat = build(store, plan)
    exported = export.to_json(store, [chat])
    (there,) = export.from_json(other, exported)
    assert shape(other, there) == shape(store, chat)
    again = json.loads(export.to_json(other, [there]))
    assert len(again["chats"][0]["messages"]) == len(json.loads(exported)["chats"][0]["messages"])
    (copy,) = export.from_json(store, exported)
    assert copy != chat
    assert shape(store, copy) == shape(store, chat)
    assert store.db.rows("PRAGMA foreign_key_check") == []
    store.db.close()
    other.db.close()


def test_an_export_of_the_first_version_is_read(store: Repository) -> None:
    """It knows neither attachments nor the rounds of a reply."""
    chat = build(store, [("reply", 0, "words"), ("user", 1, "more")])
    old = json.loads(export.to_json(store, [chat]))
    for message in old["chats"][0]["messages"]:
        del message["attachments"]
        message.get("reply", {}).pop("trace", None)
    (there,) = export.from_json(store, json.dumps(old))
    assert [m.content for m in store.path(there)] == [m.content for m in store.path(chat)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"pacenote": 99, "chats": []}',
        '{"pacenote": 1, "chats": [{}]}',
        '{"pacenote": 1, "chats": 5}',
    ],
)
def test_a_foreign_file_adds_nothing(store: Repository, text: str) -> None:
    with pytest.raises(KnownError, match="no export"):
        export.from_json(store, text)
    assert store.conversations() == []


@pytest.mark.parametrize(
    ("key", "value"), [("role", "system"), ("content", None), ("content", [1]), ("parent", "nobody"), ("state", "odd")]
)
def test_a_damaged_export_adds_nothing(store: Repository, tmp_path: Path, key: str, value: object) -> None:
    chat = build(store, [("reply", 0, "a")])
    data = json.loads(export.to_json(store, [chat]))
    data["chats"].append(json.loads(json.dumps(data["chats"][0])))
    data["chats"][1]["messages"][1][key] = value
    with pytest.raises(KnownError, match="no export"):
        export.from_json(store, json.dumps(data))
    assert len(store.conversations()) == 1


def test_markdown_is_the_visible_branch_without_reasoning(store: Repository) -> None:
    chat = store.create_conversation("Title")
    user = store.add_user_message(chat.id, None, "question")
    reply = store.begin_reply(chat.id, user.id, seed=1, request={}, model={}).id
    store.finish_reply(reply, State.COMPLETE, "**answer**", "secret")
    assert export.to_markdown(store, chat.id) == "# Title\n\n**You**\n\nquestion\n\n**Reply**\n\n**answer**\n"


@pytest.mark.parametrize("kept", [None, "", "x", "{}", "[]", "3", "null", '{"tokens": 3}'])
@pytest.mark.parametrize(
    "change", [{}, {"tokens": "x"}, {"tokens": 10**400}, {"acceptance_rate": None}, {"drafted_at": 5}]
)
def test_figures_that_no_reply_can_have_are_not_imported(
    store: Repository, kept: str | None, change: dict[str, Any]
) -> None:
    """A chat that came with them once could not be opened: its caption and the panel read them."""
    chat = build(store, [("reply", 3, "a")])
    data = json.loads(export.to_json(store, [chat]))
    (reply,) = (m["reply"] for m in data["chats"][0]["messages"] if "reply" in m)
    if change:
        reply["figures"] = json.dumps({**json.loads(reply["figures"]), **change})
    else:
        reply["figures"] = kept
    if kept is None and not change:
        assert export.from_json(store, json.dumps(data))
        return
    with pytest.raises(KnownError, match="no export"):
        export.from_json(store, json.dumps(data))
