"""What a newcomer met in the window and found odd."""

from __future__ import annotations

from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from app.store.values import State
from app.theme.icons import _PATHS, icon
from app.theme.tokens import DARK, LIGHT
from app.window import MainWindow
from tests.unit.app.fakes import FakeLoader
from tests.unit.app.test_window import ask, idle, type_and_send


def test_continue_is_offered_only_where_a_reply_was_cut(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """The menu had it for every chat, and it did nothing."""
    action = window.actions_by_key["go_on"]
    assert not action.isEnabled()
    ask(qtbot, window, "whole")
    assert not action.isEnabled()
    loader.hold_at = 3
    type_and_send(qtbot, window, "cut")
    qtbot.waitUntil(loader.held.is_set)
    assert not action.isEnabled(), "while it is written"
    window.stop()
    loader.release()
    idle(qtbot, window)
    assert window.transcript.items[-1].state is State.STOPPED
    assert action.isEnabled()
    window.new_chat()
    assert not action.isEnabled()
    assert not window.actions_by_key["again"].isEnabled()


def test_a_new_chat_ends_the_search(qtbot: QtBot, window: MainWindow) -> None:
    """The search went on and hid the new chat from the list."""
    ask(qtbot, window, "apples")
    window.sidebar.search.setText("apples")
    qtbot.waitUntil(lambda: window.services.chats.search == "apples")
    window.new_chat()
    ask(qtbot, window, "pears")
    assert window.sidebar.search.text() == ""
    assert window.sidebar.model.index_of(window.services.chats.current).isValid()


def test_after_an_example_one_can_type_on(qtbot: QtBot, window: MainWindow) -> None:
    window.activateWindow()
    window.empty.example.emit("Hello")
    idle(qtbot, window)
    qtbot.waitUntil(lambda: window.composer.box.hasFocus())


def test_the_switch_of_versions_is_seen_without_pointing_at_it(qtbot: QtBot, window: MainWindow) -> None:
    """A question's other actions show when it is pointed at; "2/2" stood there between two empty places."""
    ask(qtbot, window, "first")
    window.services.chats.edit_last()
    ask(qtbot, window, "second")
    question = window.transcript.items[0]
    view = window.transcript.view(question.id)
    assert view is not None
    assert question.branches == 2
    soft = icon("left", LIGHT.text_soft).cacheKey()
    assert view.findChild(QAbstractButton, "left").icon().cacheKey() == soft
    assert view.findChild(QAbstractButton, "edit").icon().cacheKey() == icon("edit", "none").cacheKey()


def test_deleting_the_last_message_does_not_speak_of_others(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    items = window.transcript.items
    told: list[str] = []
    window.services.chats.deleted.connect(told.append)
    window.services.chats.delete_message(items[3].id)
    window.services.chats.delete_message(items[1].id)
    assert told == ["Deleted a message", "Deleted a message and what followed it"]


def test_the_find_bar_follows_the_theme(qtbot: QtBot, window: MainWindow) -> None:
    """It kept the icons of the theme in which it was opened, pale grey on white."""
    ask(qtbot, window, "apples")
    window.theme.set_mode("dark")
    window.find_in_chat()
    window.theme.set_mode("light")
    assert window.find_bar._buttons["close"].icon().cacheKey() == icon("close", LIGHT.text_soft).cacheKey()


def test_no_icon_of_the_window_keeps_another_themes_colour(qtbot: QtBot, window: MainWindow) -> None:
    """Bug 18, for icons: every button of the open window is drawn as one that was made in the new theme."""
    ask(qtbot, window, "apples")
    window.theme.set_mode("dark")
    window.find_in_chat()
    dark = {colour: name for name, colour in ((n, getattr(DARK, n)) for n in DARK.__slots__) if colour.startswith("#")}
    known = {icon(name, colour).cacheKey(): (name, colour) for name in _PATHS for colour in dark}
    window.theme.set_mode("light")
    stale = [
        (button.accessibleName() or button.text(), *known[button.icon().cacheKey()])
        for button in window.findChildren(QAbstractButton)
        if button.icon().cacheKey() in known
    ]
    both = {getattr(LIGHT, n) for n in LIGHT.__slots__} & set(dark)
    assert [entry for entry in stale if entry[2] not in both] == []
