"""A search of all chats leads to the message that has the words, and marks them there."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.message import MessageView
from app.chat.reply import ReplyView
from app.chat.sidebar import ID_ROLE
from app.store import Attachment, Repository
from app.store.search import count, words
from app.store.values import State
from app.window import MainWindow
from tests.unit.app.test_window import ask

FILLER = "Some words that fill a few lines of the column.\n\n" * 6


def long_chat(store: Repository, *, at: int, text: str, turns: int = 60) -> tuple[int, int]:
    """(chat, the message number `at`, which has the text). Odd ones are replies."""
    chat, parent, hit = store.create_conversation("Long"), None, 0
    for number in range(turns):
        content = f"{number}. {FILLER}" + (text if number == at else "")
        if number % 2:
            message = store.begin_reply(chat.id, parent or 0, seed=1, request={}, model={})
            store.finish_reply(message.id, State.COMPLETE, content, "")
        else:
            message = store.add_user_message(chat.id, parent, content)
        parent = message.id
        hit = message.id if number == at else hit
    return chat.id, hit


def search(qtbot: QtBot, window: MainWindow, text: str) -> None:
    window.sidebar.search.setText(text)
    qtbot.waitUntil(lambda: window.services.chats.search == text)


def drawn(qtbot: QtBot, window: MainWindow, message: int) -> MessageView:
    qtbot.waitUntil(lambda: window.transcript.up_to_date and window.transcript._sought is None)
    view = window.transcript.view(message)
    assert view is not None
    return view


def marked(view: MessageView) -> list[str]:
    parts = view.body.parts if isinstance(view, ReplyView) else [view._text]  # type: ignore[attr-defined]
    found = [getattr(part, "edit", part).extraSelections() for part in parts]
    return [selection.cursor.selectedText() for selections in found for selection in selections]


@pytest.mark.parametrize("at", [3, 20, 41])
def test_a_chat_found_by_its_text_opens_at_that_text(qtbot: QtBot, window: MainWindow, at: int) -> None:
    """It opened at its end, and the words were anywhere in 60 messages above."""
    chat, hit = long_chat(window.services.store, at=at, text="the **Zeppelin** lands, a zeppelin")
    search(qtbot, window, "zeppelin lands")
    window.sidebar.list.setCurrentIndex(window.sidebar.model.index_of(chat))
    view = drawn(qtbot, window, hit)
    assert marked(view) == ["Zeppelin", "lands", "zeppelin"]
    where = view.y() + (view.first_found() or 0)
    assert 0 <= where < window.transcript.viewport().height() - 20
    assert window.find_bar.isVisible()
    assert window.find_bar.count.text() == "message 1 of 1"
    window.find_bar.close_bar()
    assert marked(view) == [], "nothing is marked when the bar is closed"


def test_a_word_far_down_in_a_long_reply_comes_into_view(qtbot: QtBot, window: MainWindow) -> None:
    chat, hit = long_chat(window.services.store, at=1, turns=2, text="\n\n" + FILLER * 20 + "\n\n```\nzeppelin\n```")
    search(qtbot, window, "zeppelin")
    window.sidebar.list.setCurrentIndex(window.sidebar.model.index_of(chat))
    view = drawn(qtbot, window, hit)
    where = view.y() + (view.first_found() or 0)
    assert 0 < where < window.transcript.viewport().height()
    assert marked(view) == ["zeppelin"]


def test_what_is_on_another_branch_is_shown(qtbot: QtBot, window: MainWindow) -> None:
    store = window.services.store
    chat = store.create_conversation("Branches")
    first = store.add_user_message(chat.id, None, "about a zeppelin")
    below = store.begin_reply(chat.id, first.id, seed=1, request={}, model={})
    store.finish_reply(below.id, State.COMPLETE, "An answer.", "")
    store.add_user_message(chat.id, None, "about something else")
    search(qtbot, window, "zeppelin")
    window.sidebar.list.setCurrentIndex(window.sidebar.model.index_of(chat.id))
    assert [item.content for item in window.transcript.items] == ["about a zeppelin", "An answer."]
    assert marked(drawn(qtbot, window, first.id)) == ["zeppelin"]


def test_the_open_chat_is_gone_through_too(qtbot: QtBot, window: MainWindow) -> None:
    """Its row is marked already, so choosing it did nothing."""
    chat, hit = long_chat(window.services.store, at=4, text="zeppelin")
    window.services.chats.open(chat)
    search(qtbot, window, "zeppelin")
    index = window.sidebar.model.index_of(chat)
    where = window.sidebar.list.visualRect(index).center()
    qtbot.mouseClick(window.sidebar.list.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert marked(drawn(qtbot, window, hit)) == ["zeppelin"]


def test_enter_in_the_search_goes_to_the_first_chat(qtbot: QtBot, window: MainWindow) -> None:
    chat, hit = long_chat(window.services.store, at=4, text="zeppelin")
    window.new_chat()
    window.sidebar.search.setText("zeppelin")
    qtbot.keyClick(window.sidebar.search, Qt.Key.Key_Return)
    assert window.services.chats.current == chat
    assert marked(drawn(qtbot, window, hit)) == ["zeppelin"]
    assert window.sidebar.list.currentIndex().data(ID_ROLE) == chat


def test_a_title_or_an_attachment_opens_the_chat_without_marks(qtbot: QtBot, window: MainWindow) -> None:
    store = window.services.store
    titled = store.create_conversation("Zeppelin")
    store.add_user_message(titled.id, None, "hello")
    attached = store.create_conversation("Other")
    message = store.add_user_message(attached.id, None, "look", attachments=(Attachment("a.txt", "a zeppelin"),))
    search(qtbot, window, "zeppelin")
    for chat in (titled.id, attached.id):
        window.sidebar.list.setCurrentIndex(window.sidebar.model.index_of(chat))
        assert window.services.chats.current == chat
    assert marked(drawn(qtbot, window, message.id)) == []


def test_without_a_search_a_chat_opens_at_its_end(qtbot: QtBot, window: MainWindow) -> None:
    chat, _ = long_chat(window.services.store, at=4, text="zeppelin")
    window.services.chats.open(chat)
    bar = window.transcript.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    assert window.find_bar.isHidden()


def test_a_message_that_went_with_a_deleted_one_is_not_led_to(store: Repository) -> None:
    chat = store.create_conversation("c")
    first = store.add_user_message(chat.id, None, "first")
    store.add_user_message(chat.id, first.id, "a zeppelin")
    store.delete_message(first.id)
    assert store.best_hit(chat.id, ["zeppelin"], set()) is None


def test_deleting_the_only_hit_takes_the_chat_off_the_list_and_undo_brings_it_back(
    qtbot: QtBot, window: MainWindow
) -> None:
    """Bug: the list of an open search stayed as it was, and the chat in it had nothing to go to."""
    store = window.services.store
    chat = store.create_conversation("c").id
    first = store.add_user_message(chat, None, "first")
    reply = store.begin_reply(chat, first.id, seed=1, request={}, model={})
    store.finish_reply(reply.id, State.COMPLETE, "a zeppelin", "")
    search(qtbot, window, "zeppelin")
    window.sidebar.list.setCurrentIndex(window.sidebar.model.index_of(chat))
    window.services.chats.delete_message(first.id)
    assert window.sidebar.model.rowCount() == 0
    window.undo_delete()
    assert window.sidebar.model.first() == chat


def test_of_messages_that_have_the_words_the_visible_one_counts(store: Repository) -> None:
    chat = store.create_conversation("c")
    hidden, visible = (store.add_user_message(chat.id, None, "a zeppelin").id for _ in range(2))
    assert store.best_hit(chat.id, ["zeppelin"], {visible}) == visible
    assert store.best_hit(chat.id, ["zeppelin"], {hidden}) == hidden
    both = store.add_user_message(chat.id, None, "a Zeppelin over the SEA").id
    assert store.best_hit(chat.id, ["zeppelin", "sea"], {visible}) == both
    store.reveal(hidden)
    assert [message.id for message in store.path(chat.id)] == [hidden]


def test_words_are_counted_as_the_search_counts_them() -> None:
    assert words('sea "at night" wave') == ["sea", "at night", "wave"]
    assert count("Waves at the SEA", ["wave", "sea", "storm"]) == 2


def test_find_in_chat_takes_several_words(qtbot: QtBot, window: MainWindow) -> None:
    """Two words were looked for as one phrase."""
    item = ask(qtbot, window, "apples and pears")
    window.find_in_chat()
    window.find_bar.line.setText("pears apples")
    assert window.find_bar.count.text() == "message 2 of 2"
    assert set(marked(drawn(qtbot, window, item.id))) == {"apples", "pears"}
    window.new_chat()
    assert window.transcript._views.words == ()
