"""Search of chats: the index against the plain meaning of the words, for every length and every history of a row."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.store import Attachment, Database, Repository
from app.store.search import GONE, MOST_WORDS, condition
from app.store.values import State

LETTERS = st.text(st.sampled_from('abAB ä会話%_"\\\0'), max_size=8)


def add(store: Repository, text: str, *attachments: Attachment, title: str = "") -> int:
    chat = store.create_conversation(title)
    store.add_user_message(chat.id, None, text, attachments=attachments)
    return chat.id


def found(store: Repository, search: str) -> set[int]:
    return {chat.id for chat in store.conversations(search)}


@pytest.mark.parametrize(
    "search", ["会話", "話", "wool", "WOOL", "100 %", "%", "会話 wool", "äpf", "ÄPFEL", '"and 100"']
)
def test_words_of_every_length_are_found(store: Repository, search: str) -> None:
    """The index of trigrams does not know a word of two letters, as a Japanese one often is."""
    chat = add(store, "about 会話 and 100 % wool, Äpfel")
    add(store, "something else")
    assert found(store, search) == {chat}


def test_all_words_must_be_there_in_any_order_and_anywhere_in_the_chat(store: Repository) -> None:
    chat = add(store, "the sea at night", title="Waves")
    store.add_user_message(chat, None, "and a storm")
    assert found(store, "storm waves sea") == {chat}
    assert found(store, "storm desert") == set()
    assert found(store, '"sea at"') == {chat}
    assert found(store, '"at sea"') == set()


@pytest.mark.parametrize(
    "search", ['"', '""', 'a"b', "*", "AND", "NEAR(a b)", "content:x", "-x", "^x", "a\\", "(", "'"]
)
def test_the_syntax_of_the_index_is_taken_literally(store: Repository, search: str) -> None:
    add(store, "nothing of this")
    store.conversations(search)
    chat = add(store, f"here: xx{search}yy")
    words = search.replace('"', " ").split()
    assert all(chat in found(store, word) for word in words)


def test_attachments_are_found(store: Repository) -> None:
    chat = add(store, "look", Attachment("Büro.txt", "some Ähren\nin a line"))
    assert found(store, "ähren") == found(store, "büro.txt") == found(store, "Bü") == {chat}


def test_attachments_are_not_indexed(store: Repository) -> None:
    """Indexing a megabyte took 0.4 s of the window's thread, in the moment of sending."""
    add(store, "look", Attachment("a.txt", "needle " * 1000))
    assert [row["name"] for row in store.db.rows("PRAGMA table_info(message_text)")] == ["content"]
    assert store.db.rows("SELECT rowid FROM message_text WHERE message_text MATCH 'needle'") == []
    plan = store.db.rows("EXPLAIN QUERY PLAN SELECT 1 FROM message m WHERE m.attachments != '[]'")
    assert "message_attached" in plan[0]["detail"], "only messages that have some are looked through"


def test_what_is_deleted_is_not_found_and_comes_back(store: Repository) -> None:
    chat = add(store, "needle")
    (message,) = store.path(chat)
    store.delete_message(message.id)
    assert found(store, "needle") == set()
    store.restore_message(message.id)
    assert found(store, "needle") == {chat}


@pytest.mark.parametrize("search", ["needle", "ne", "pin"])
def test_a_chat_is_not_found_by_what_followed_a_deleted_message(store: Repository, search: str) -> None:
    """Bug: only the first message of a deleted branch is marked, and its reply was found all the same."""
    chat = add(store, "question")
    (question,) = store.path(chat)
    reply = store.begin_reply(chat, question.id, seed=1, request={}, model={})
    store.finish_reply(reply.id, State.COMPLETE, "a needle", "")
    store.add_user_message(chat, reply.id, "more", attachments=[Attachment("a.txt", "a pin")])
    other = add(store, "needle and pin")
    assert found(store, search) == {chat, other}
    store.delete_message(question.id)
    assert found(store, search) == {other}
    store.restore_message(question.id)
    assert found(store, search) == {chat, other}


def test_what_is_deleted_is_looked_up_in_an_index(store: Repository) -> None:
    """The mark of a deletion lies behind a message's text: looking for it in all rows reads all text."""
    plan = [row["detail"] for row in store.db.rows(f"EXPLAIN QUERY PLAN {GONE} SELECT id FROM gone")]
    assert any("COVERING INDEX message_deleted" in line for line in plan), plan
    assert any("message_children (conversation_id=? AND parent_id=?)" in line for line in plan), plan


def test_a_reply_is_found_from_its_end_on_and_again_after_it_went_on(store: Repository) -> None:
    chat = add(store, "question")
    (question,) = store.path(chat)
    reply = store.begin_reply(chat, question.id, seed=1, request={}, model={})
    store.flush_reply(reply.id, "a needle", "")
    assert found(store, "needle") == set()
    store.finish_reply(reply.id, State.STOPPED, "a needle", "")
    assert found(store, "needle") == {chat}
    store.go_on(reply.id)
    assert found(store, "needle") == set(), "it streams"
    store.finish_reply(reply.id, State.COMPLETE, "a needle in hay", "")
    assert found(store, "needle") == found(store, "hay") == {chat}
    whole(store)


def whole(store: Repository) -> None:
    """The index holds exactly what the table holds; SQLite compares them."""
    store.db.connection.execute("INSERT INTO message_text(message_text, rank) VALUES ('integrity-check', 1)")


@given(st.lists(st.tuples(LETTERS, LETTERS), max_size=6), LETTERS)
@settings(max_examples=60, deadline=None)
def test_the_index_agrees_with_the_plain_meaning(
    tmp_path_factory: pytest.TempPathFactory, chats: list[tuple[str, str]], word: str
) -> None:
    store = Repository(Database(tmp_path_factory.mktemp("s") / "a.db"))
    made = {add(store, text, title=title): (text, title) for text, title in chats}
    word = word.replace('"', "").replace("\0", "").replace(" ", "")
    # LIKE knows only ASCII letters in both cases, so short words with others are compared as they are.
    if word:
        expected = {
            number
            for number, (text, title) in made.items()
            if word.lower() in text.split("\0")[0].lower() or word.lower() in title.split("\0")[0].lower()
        }
        assert expected <= found(store, word)
        assert all(word.lower() in made[n][0].lower() or word.lower() in made[n][1].lower() for n in found(store, word))
    whole(store)
    store.db.close()


def test_a_page_in_the_search_is_not_looked_for_word_by_word(store: Repository) -> None:
    """Bug: 500 words, pasted by mistake, held the window for half a minute. Words within others say nothing new."""
    chat = add(store, "the other weather is here")
    _, values = condition("the other he weather THE " + "here " * 500)
    assert values[::3] == ["weather", "other", "here"]
    assert found(store, "the other he weather THE " + "here " * 500) == {chat}
    assert found(store, "her the wether") == set()
    assert len(condition(" ".join(f"word{n:03}" for n in range(500)))[1]) == 3 * MOST_WORDS


def test_deleting_for_good_leaves_the_index_whole(store: Repository) -> None:
    chat = add(store, "needle")
    store.db.connection.execute("DELETE FROM conversation WHERE id = ?", (chat,))
    assert store.db.rows("SELECT rowid FROM message_text WHERE message_text MATCH 'needle'") == []
    whole(store)
