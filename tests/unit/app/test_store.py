"""The store: the tree, drafts, search, undo, recovery, migrations, and a disk that is full."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from app.store import Attachment, Database, Repository, StoreError
from app.store.repository import NEW_CHAT, title_from
from app.store.schema import MIGRATIONS
from app.store.values import Draft, State
from engine import Segment


def begin(store: Repository, conversation: int, parent: int, seed: int = 7) -> int:
    return store.begin_reply(conversation, parent, seed=seed, request={"max_tokens": 9}, model={"name": "m"}).id


def test_a_turn_keeps_everything_that_makes_it_again(store: Repository) -> None:
    chat = store.create_conversation()
    user = store.add_user_message(chat.id, None, "Hello", title="Hello")
    reply = begin(store, chat.id, user.id, seed=2**32 - 1)
    schedule = (Segment("prefill", (1, 2, 3)), Segment("decode", (4, 5)))
    store.finish_reply(
        reply,
        State.COMPLETE,
        "Hi <b>there</b>",
        "thinking",
        end_reason="eos",
        segments=schedule,
        last_token=6,
        figures={"tokens": 3},
        notices=[{"kind": "park", "text": "slower"}],
        model={"name": "m2"},
    )
    first, second = store.history(reply)
    assert (first.role, first.content) == ("user", "Hello")
    assert (second.content, second.reasoning, second.state) == ("Hi <b>there</b>", "thinking", State.COMPLETE)
    kept = second.reply
    assert kept is not None
    assert (kept.seed, kept.segments, kept.figures) == (2**32 - 1, schedule, {"tokens": 3})
    assert (kept.last_token, kept.tokens) == (6, (4, 5, 6))
    assert (kept.end_reason, kept.model) == ("eos", {"name": "m2"})
    assert kept.notices == ({"kind": "park", "text": "slower"},)
    store.add_receipt(reply, "verify", {"equal": True})
    assert store.receipts(reply) == [("verify", {"equal": True})]


def test_editing_makes_a_sibling_and_drops_nothing(store: Repository) -> None:
    """Bug 29: editing without branching deletes later messages."""
    chat = store.create_conversation()
    first = store.add_user_message(chat.id, None, "one")
    reply = begin(store, chat.id, first.id)
    store.finish_reply(reply, State.COMPLETE, "1", "")
    later = store.add_user_message(chat.id, reply, "later")
    edited = store.add_user_message(chat.id, None, "one, edited")
    assert [m.content for m in store.path(chat.id)] == ["one, edited"]
    assert (store.path(chat.id)[0].branch, store.path(chat.id)[0].branches) == (2, 2)
    assert store.switch_branch(edited.id, -1) == first.id
    assert [m.id for m in store.path(chat.id)] == [first.id, reply, later.id]
    assert store.switch_branch(first.id, -1) == first.id, "the ends do not wrap"


def test_deleting_the_visible_branch_shows_its_sibling_and_undo_brings_it_back(store: Repository) -> None:
    chat = store.create_conversation()
    user = store.add_user_message(chat.id, None, "q")
    one, two = begin(store, chat.id, user.id), begin(store, chat.id, user.id)
    for number, text in ((one, "first"), (two, "second")):
        store.finish_reply(number, State.COMPLETE, text, "")
    store.delete_message(two)
    assert [m.content for m in store.path(chat.id)] == ["q", "first"]
    store.restore_message(two)
    assert [m.content for m in store.path(chat.id)] == ["q", "second"]


def test_a_reply_that_streamed_when_the_program_ended_is_interrupted(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db")
    store = Repository(database)
    chat = store.create_conversation()
    reply = begin(store, chat.id, store.add_user_message(chat.id, None, "q").id)
    store.flush_reply(reply, "half of", "thought")
    database.close()
    again = Repository(Database(tmp_path / "a.db"))
    message = again.path(chat.id)[-1]
    assert (message.content, message.reasoning, message.state) == ("half of", "thought", State.INTERRUPTED)
    again.db.close()


def test_a_flush_after_the_end_changes_nothing(store: Repository) -> None:
    chat = store.create_conversation()
    reply = begin(store, chat.id, store.add_user_message(chat.id, None, "q").id)
    store.finish_reply(reply, State.STOPPED, "whole", "")
    store.flush_reply(reply, "late", "")
    assert store.path(chat.id)[-1].content == "whole"


def test_a_draft_goes_with_the_message_in_one_transaction(store: Repository) -> None:
    chat = store.create_conversation()
    store.save_draft(chat.id, Draft("being written", (Attachment("a.txt", "1"),)))
    store.save_draft(NEW_CHAT, Draft("new"))
    assert (store.draft(chat.id), store.draft(NEW_CHAT)) == (
        Draft("being written", (Attachment("a.txt", "1"),)),
        Draft("new"),
    )
    store.add_user_message(chat.id, None, "being written")
    assert (store.draft(chat.id), store.draft(NEW_CHAT)) == (Draft(), Draft("new"))
    store.save_draft(NEW_CHAT, Draft())
    assert store.draft(NEW_CHAT) == Draft()


def test_deleted_chats_are_out_of_sight_until_undo(store: Repository) -> None:
    chat = store.create_conversation("a")
    store.delete_conversation(chat.id)
    assert store.conversations() == []
    assert store.conversation(chat.id) is None
    store.restore_conversation(chat.id)
    assert [c.title for c in store.conversations()] == ["a"]


def test_old_deletions_go_for_good_at_start(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db")
    store = Repository(database)
    old, fresh = store.create_conversation("old"), store.create_conversation("fresh")
    store.add_user_message(old.id, None, "text")
    store.save_draft(old.id, Draft("draft"))
    store.delete_conversation(old.id)
    store.delete_conversation(fresh.id)
    database.connection.execute("UPDATE conversation SET deleted_at = 1 WHERE id = ?", (old.id,))
    store.recover()
    assert [row["id"] for row in database.rows("SELECT id FROM conversation")] == [fresh.id]
    assert database.rows("SELECT id FROM message") == []
    assert database.rows("SELECT * FROM draft") == []
    database.close()


def test_search_looks_into_text_of_every_branch_and_takes_wildcards_literally(store: Repository) -> None:
    chat = store.create_conversation()
    store.add_user_message(chat.id, None, "about 会話 and 100 % wool", title="One")
    store.add_user_message(chat.id, None, "edited")
    other = store.create_conversation("Other_title")
    assert [c.id for c in store.conversations("会話")] == [chat.id]
    assert [c.id for c in store.conversations("100 %")] == [chat.id]
    assert [c.id for c in store.conversations("R_T")] == [other.id]
    assert store.conversations("no_such") == []
    assert len(store.conversations("  ")) == 2


def test_titles_come_from_the_first_line_with_words() -> None:
    assert title_from("\n  \n Hello   there\nmore") == "Hello there"
    assert title_from(" \n ") == "New chat"
    assert len(title_from("word " * 50)) <= 60


def test_a_users_title_is_kept(store: Repository) -> None:
    chat = store.create_conversation()
    store.rename(chat.id, " Mine ")
    store.add_user_message(chat.id, None, "text", title="From text")
    found = store.conversation(chat.id)
    assert found is not None
    assert found.title == "Mine"


def test_sampler_and_system_prompt_of_one_chat(store: Repository) -> None:
    chat = store.create_conversation()
    store.set_sampler(chat.id, {"temperature": 0.2})
    store.set_system_prompt(chat.id, "Be brief.")
    found = store.conversation(chat.id)
    assert found is not None
    assert (found.sampler, found.system_prompt) == ({"temperature": 0.2}, "Be brief.")
    store.set_sampler(chat.id, None)
    assert store.conversations()[0].sampler is None


FILLED = """
INSERT INTO conversation(id, uid, title, created_at, updated_at, active_root_id) VALUES (1, 'c', 'Title', 1, 1, NULL);
INSERT INTO message(id, uid, conversation_id, role, content, state, created_at)
    VALUES (1, 'q', 1, 'user', 'about Äpfel', 'complete', 1);
INSERT INTO message(id, uid, conversation_id, parent_id, role, content, state, created_at)
    VALUES (2, 'r', 1, 1, 'assistant', 'written half', 'streaming', 2);
UPDATE conversation SET active_root_id = 1; UPDATE message SET active_child_id = 2 WHERE id = 1;
INSERT INTO reply(message_id, seed, request, model) VALUES (2, 7, '{}', '{}');
INSERT INTO receipt(message_id, created_at, kind, body) VALUES (2, 3, 'classic replay', '{}');
INSERT INTO draft(conversation_id, text, updated_at) VALUES (1, 'unsent', 1);
"""
"""What a file of every version could hold; written in the words of version 1."""


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_every_past_schema_is_migrated_after_a_backup(tmp_path: Path, version: int) -> None:
    """Bug 27: chats gone after an update."""
    path = tmp_path / "a.db"
    old = Database(path, MIGRATIONS[:version])
    old.connection.executescript(FILLED)
    old.close()
    new = Database(path)
    assert new.rows("PRAGMA user_version")[0][0] == len(MIGRATIONS)
    store = Repository(new)
    question, reply = store.path(1)
    assert (question.content, question.attachments) == ("about Äpfel", ())
    assert (reply.content, reply.state) == ("written half", State.INTERRUPTED)
    assert reply.reply is not None
    assert (reply.reply.seed, store.trace(2)) == (7, None)
    assert store.receipts(2) == [("classic replay", {})]
    assert store.draft(1) == Draft("unsent")
    # What was there before is found by what came later.
    assert [c.id for c in store.conversations("ÄPFEL")] == [1]
    assert [c.id for c in store.conversations("written half")] == [1]
    assert new.rows("PRAGMA integrity_check")[0][0] == "ok"
    new.connection.execute("INSERT INTO message_text(message_text, rank) VALUES ('integrity-check', 1)")
    new.close()
    backup = sqlite3.connect(tmp_path / f"a.db.v{version}.backup")
    assert backup.execute("SELECT title FROM conversation").fetchone() == ("Title",)
    assert backup.execute("PRAGMA user_version").fetchone() == (version,)
    backup.close()


def test_the_next_migration_will_have_its_backup_too(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Database(path).close()
    new = Database(path, (*MIGRATIONS, "ALTER TABLE conversation ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;"))
    assert "pinned" in [row["name"] for row in new.rows("PRAGMA table_info(conversation)")]
    new.close()
    assert (tmp_path / f"a.db.v{len(MIGRATIONS)}.backup").exists()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    Database(path).close()
    with pytest.raises(StoreError):
        Database(
            path, (*MIGRATIONS, "ALTER TABLE conversation ADD COLUMN x INTEGER; SELECT no_such_column FROM message;")
        )
    same = Database(path)
    assert "x" not in [row["name"] for row in same.rows("PRAGMA table_info(conversation)")]
    same.close()


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made = Database(path)
    made.connection.execute("PRAGMA user_version = 99")
    made.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer Pacenote"):
        Database(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"not a database at all, but longer than a header " * 40)
    with pytest.raises(StoreError, match="damaged") as caught:
        Database(path)
    assert caught.value.todo


def test_a_full_disk_is_told_and_loses_nothing(store: Repository) -> None:
    chat = store.create_conversation("kept")
    user = store.add_user_message(chat.id, None, "kept")
    pages = store.db.rows("PRAGMA page_count")[0][0]
    store.db.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full") as caught:
        store.add_user_message(chat.id, user.id, "x" * 200_000)
    assert "space" in caught.value.todo
    assert not store.db.connection.in_transaction
    assert [m.content for m in store.path(chat.id)] == ["kept"]
    store.db.connection.execute("PRAGMA max_page_count = 100000")
    store.add_user_message(chat.id, user.id, "x" * 200_000)
    assert len(store.path(chat.id)) == 2
    assert store.db.rows("PRAGMA integrity_check")[0][0] == "ok"


def test_a_transaction_that_raises_leaves_no_trace(store: Repository) -> None:
    def fail() -> None:
        with store.db.write():
            store.create_conversation("never")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.conversations() == []


def test_a_damaged_schedule_is_told_when_it_is_needed(store: Repository) -> None:
    chat = store.create_conversation()
    reply = begin(store, chat.id, store.add_user_message(chat.id, None, "q").id)
    store.finish_reply(reply, State.COMPLETE, "a", "", segments=(Segment("decode", (1,)),))
    store.db.connection.execute("UPDATE reply SET segments = x'02'")
    assert [m.content for m in store.path(chat.id)] == ["q", "a"], "the text can still be read"
    with pytest.raises(StoreError, match="damaged"):
        store.history(reply)


def test_a_long_chat_is_read_fast_enough_to_be_one_query(store: Repository) -> None:
    """Counted, not timed: the number of statements does not grow with the chat."""
    chat = store.create_conversation()
    parent: int | None = None
    for n in range(60):
        parent = store.add_user_message(chat.id, parent, str(n)).id
    statements: list[str] = []
    store.db.connection.set_trace_callback(statements.append)
    store.path(chat.id)
    assert parent is not None
    store.history(parent)
    store.db.connection.set_trace_callback(None)
    assert len(statements) <= 6
