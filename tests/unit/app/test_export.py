"""Exports hold the whole tree and come back the same; a file that is none of ours adds nothing."""

from __future__ import annotations

import errno
import json
import os
import stat
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


def poisoned(store: Repository, where: str, value: object) -> str:
    """An export with another value at "chat/KEY", "message/KEY", "reply/KEY", "reply/KEY/KEY" or "receipt/KEY"."""
    data = json.loads(export.to_json(store, [build(store, [("reply", 3, "a")])]))
    chat = data["chats"][0]
    message = chat["messages"][1]
    kind, key, *inner = where.split("/")
    row = {"chat": chat, "message": message, "reply": message["reply"], "receipt": message["receipts"][0]}[kind]
    if inner:
        value = json.dumps({**json.loads(row[key] or "{}"), inner[0]: value})
    row[key] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("chat/updated_at", 1e13),
        ("chat/updated_at", float("inf")),
        ("chat/created_at", -1),
        ("chat/created_at", 10**400),
        ("chat/title", 3),
        ("chat/sampler", "x"),
        ("chat/sampler", "[]"),
        ("message/created_at", True),
        ("reply/seed", 2**40),
        ("reply/seed", 10**400),
        ("reply/request", "3"),
        ("reply/model", ""),
        ("reply/notices", '[{"kind": 1}]'),
        ("reply/notices", "3"),
        ("reply/error", '{"what": 3}'),
        ("receipt/body", "3"),
        ("receipt/body", '{"tokens": 3}'),
        ("receipt/body", '{"tokens": "3", "compared": "3", "identical": true, "complete": true}'),
    ],
)
def test_a_file_that_would_keep_the_list_or_the_chat_from_opening_is_refused(
    store: Repository, where: str, value: object
) -> None:
    """Bug: a chat of the year 318857, or sampling that is no JSON, was taken, and no start could list the chats."""
    with pytest.raises(KnownError, match="no export"):
        export.from_json(store, poisoned(store, where, value))
    assert len(store.conversations()) == 1


@pytest.mark.parametrize("text", ["[" * 100_000, '{"pacenote": 1, "chats": ' + "[" * 100_000])
def test_a_file_nested_without_end_is_refused(store: Repository, text: str) -> None:
    """Bug: Python's RecursionError came through as a mistake of Pacenote's."""
    with pytest.raises(KnownError, match="no export"):
        export.from_json(store, text)


def test_an_export_that_does_not_come_to_its_end_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: the file was emptied first, so a full disk cost the backup of yesterday."""
    (tmp_path / "chats.json").write_text("yesterday")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(KnownError, match="could not be written"):
        export.write("today", tmp_path / "chats.json")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("chats.json", "yesterday")]


def test_an_export_goes_where_a_link_leads_and_replaces_no_device(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    export.write("words", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "words"
    (tmp_path / "real.json").chmod(0o600)
    export.write("more", tmp_path / "link.json")
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o600, "nobody else may read it now"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(KnownError, match="could not be written"):
        export.write("words", tmp_path / "pipe")


def test_a_title_is_as_long_as_one_can_be_read(store: Repository) -> None:
    """Bug: two million letters in one title, and every drawing of the list took a second."""
    (number,) = export.from_json(store, poisoned(store, "chat/title", "x" * 1000))
    assert store.conversation(number).title == "x" * 200  # type: ignore[union-attr]
    store.rename(number, "  two \n lines " + "y" * 1000)
    assert store.conversation(number).title == ("two lines " + "y" * 1000)[:200]  # type: ignore[union-attr]
