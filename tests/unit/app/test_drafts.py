"""What is written and not sent: kept over switching, looking back, editing, composing, and the end of the program."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.store import Attachment, Draft, StoreError
from app.window import MainWindow
from tests.unit.app.fakes import FakeLoader
from tests.unit.app.test_window import ask

ALT = Qt.KeyboardModifier.AltModifier


def compose(window: MainWindow, preedit: str) -> None:
    QApplication.sendEvent(window.composer.box, QInputMethodEvent(preedit, []))


def two_chats(qtbot: QtBot, window: MainWindow) -> tuple[int, int]:
    """The second one is open."""
    ask(qtbot, window, "first chat")
    first = window.services.chats.current
    window.new_chat()
    ask(qtbot, window, "second chat")
    return first, window.services.chats.current


def test_looking_back_in_one_chat_brings_nothing_into_another(qtbot: QtBot, window: MainWindow) -> None:
    """Bug: what was written in the first chat came out in the second, and replaced its draft."""
    first, second = two_chats(qtbot, window)
    window.services.store.save_draft(first, Draft("second chat"))  # as it happens, the same words
    window.composer.set_text("written in the second")
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Up, ALT)
    assert window.composer.text() == "second chat"
    window.services.chats.open(first)
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Down, ALT)
    assert window.composer.text() == "second chat"
    window.services.chats.open(second)
    assert window.composer.text() == "written in the second", "bug: the old message had replaced it"


def test_a_message_that_was_fetched_and_changed_is_kept_like_any_other(qtbot: QtBot, window: MainWindow) -> None:
    """Bug: a second step back threw away what was changed."""
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    box = window.composer.box
    qtbot.keyClick(box, Qt.Key.Key_Up, ALT)
    qtbot.keyClicks(box, " and more")
    assert window.composer.unsent() == Draft("two and more")
    qtbot.keyClick(box, Qt.Key.Key_Up, ALT)
    qtbot.keyClick(box, Qt.Key.Key_Down, ALT)
    assert window.composer.text() == "two and more"


def test_somebody_who_never_pauses_is_saved_all_the_same(qtbot: QtBot, window: MainWindow) -> None:
    """Bug: every key put the writing off by half a second, so a crash could cost a whole page."""
    drafts = window.services.chats._drafts
    qtbot.keyClicks(window.composer.box, "a")
    left = drafts._timer.remainingTime()
    started = drafts._timer.timerId()
    qtbot.keyClicks(window.composer.box, "b")
    assert drafts._timer.timerId() == started, "the clock that runs goes on"
    assert drafts._timer.remainingTime() <= left
    qtbot.waitUntil(lambda: window.services.store.draft(0) == Draft("ab"))


def test_an_edit_is_kept_over_switching_and_gone_when_cancelled(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    """Bug: an earlier message, rewritten at length, was lost when another chat was looked at."""
    first, second = two_chats(qtbot, window)
    chats, store = window.services.chats, window.services.store
    window.composer.set_text("a draft")
    window.edit_last()
    window.composer.set_text("rewritten at length")
    chats.open(first)
    assert (window.composer.text(), window.composer.editing) == ("", False)
    chats.open(second)
    assert (window.composer.text(), window.composer.editing) == ("rewritten at length", True)
    chats.new_chat()
    message = store.path(second)[0].id
    assert store.edit(message) == Draft("rewritten at length"), "it is on disk, so a crash or a quit leaves it, too"
    chats.open(second)
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Escape)
    assert (window.composer.text(), window.composer.editing, store.edit(message)) == ("a draft", False, None)
    window.edit_last()
    assert window.composer.text() == "second chat"
    ask(qtbot, window, "sent instead")
    assert [m.content for m in loader.requests[-1].messages] == ["sent instead"]
    assert store.edits(second) == []
    assert window.composer.text() == "a draft"


def test_an_edit_that_changed_nothing_does_not_come_back(qtbot: QtBot, window: MainWindow) -> None:
    first, second = two_chats(qtbot, window)
    window.edit_last()
    window.composer.set_text("x")
    window.composer.set_text("second chat")
    window.services.chats.open(first)
    window.services.chats.open(second)
    assert not window.composer.editing


def test_an_edit_of_a_message_on_another_branch_waits_for_it(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "one")
    chats, store = window.services.chats, window.services.store
    window.edit_last()
    ask(qtbot, window, "two")
    shown = store.path(chats.current)[0].id
    store.save_edit(shown, Draft("two changed", (Attachment("a.txt", "x"),)))
    store.switch_branch(shown, -1)
    chats.open(chats.current)
    assert not window.composer.editing
    store.switch_branch(store.path(chats.current)[0].id, 1)
    window.edit_last()
    assert window.composer.draft() == Draft("two changed", (Attachment("a.txt", "x"),))


@pytest.mark.parametrize("how", ["switch", "close", "edit"])
def test_what_an_input_method_composes_is_kept_with_the_draft(qtbot: QtBot, window: MainWindow, how: str) -> None:
    """Bug: the word in composition was in no draft, and an input method put it into the next chat."""
    first, second = two_chats(qtbot, window)
    window.composer.set_text("かん")
    compose(window, "じ")
    if how == "switch":
        window.services.chats.open(first)
        assert (window.composer.text(), window.composer.box.composing) == ("", "")
    elif how == "edit":
        window.edit_last()
        assert window.composer.text() == "second chat"
    else:
        window.close()
    assert window.services.store.draft(second) == Draft("かんじ")


def test_the_send_button_sends_what_is_in_composition(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """On a Mac a button takes no focus, so nothing else ends the composition."""
    window.composer.set_text("会")
    compose(window, "話")
    window.composer.button.click()
    qtbot.waitUntil(lambda: bool(loader.requests))
    assert loader.requests[0].messages[-1].content == "会話"
    qtbot.waitUntil(lambda: not window.services.generations.live_conversations())


def test_enter_sends_again_after_a_composition_that_the_window_ended(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    """Bug: an input method that went away without a word left Enter dead."""
    compose(window, "か")
    window.new_chat()
    window.composer.set_text("after it")
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(loader.requests))
    qtbot.waitUntil(lambda: not window.services.generations.live_conversations())


def test_drafts_that_the_disk_would_not_take_are_kept_over_switching(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: on a full disk what was written was lost with the first look at another chat."""
    first, second = two_chats(qtbot, window)
    chats, store = window.services.chats, window.services.store
    with monkeypatch.context() as full:

        def refuse(*_: object) -> None:
            raise StoreError("The disk is full.", todo="Free some space.")

        full.setattr(store, "save_draft", refuse)
        full.setattr(store, "save_edit", refuse)
        window.composer.set_text("for the second")
        window.edit_last()
        window.composer.set_text("an edit of the second")
        chats.open(first)
        window.composer.set_text("for the first")
        assert "The disk is full." in window.banner.text
        chats.open(second)
        assert window.composer.text() == "for the second"
        window.edit_last()
        assert window.composer.text() == "an edit of the second"
        chats.cancel_edit()
        window.edit_last()
        assert window.composer.text() == "second chat", "it was given up, on the disk or not"
        window.composer.set_text("an edit of the second")
        chats.open(first)
        assert window.composer.text() == "for the first"
    chats.save_draft()
    assert (store.draft(first), store.draft(second)) == (Draft("for the first"), Draft("for the second"))
    assert store.edits(second) == [store.path(second)[0].id]
    ask(qtbot, window, window.composer.text())
    chats.open(second)
    chats.open(first)
    assert window.composer.text() == "", "it was sent"


def test_an_edit_is_not_sent_into_a_branch_that_was_deleted_meanwhile(qtbot: QtBot, window: MainWindow) -> None:
    """Bug: what was sent was out of sight, with what it followed."""
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    window.edit_last()
    window.composer.set_text("two, rewritten")
    window.services.chats.delete_message(window.transcript.items[0].id)
    assert window.transcript.items == []
    window.composer.submit()
    qtbot.waitUntil(lambda: not window.services.generations.live_conversations())
    assert [item.content for item in window.transcript.items][:1] == ["two, rewritten"]
    window.undo_delete()
    assert window.transcript.items[0].branches == 2
