"""Every control is reached by Tab alone, has a name, and no text box keeps the keyboard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.chat.chatsettings import ChatSettingsDialog
from app.chat.chips import AttachmentDialog
from app.chat.templates import TemplateDialog
from app.settings.dialog import SettingsDialog
from app.store import Attachment, Draft
from app.store.values import State
from app.window import MainWindow
from tests.unit.app.fakes import FakeLoader
from tests.unit.app.test_window import ask, idle

KINDS = (QAbstractButton, QLineEdit, QPlainTextEdit, QTextEdit, QComboBox, QAbstractSpinBox, QAbstractItemView)


def controls(root: QWidget) -> list[QWidget]:
    """What a pointer can use now. Parts inside a control, such as the arrow of a list, belong to it."""
    found = [w for kind in KINDS for w in root.findChildren(kind) if w.isVisibleTo(root) and w.isEnabled()]
    own = [w for w in found if not w.objectName().startswith("qt_") and w.window() is root.window()]
    return [w for w in own if not isinstance(w.parentWidget(), QLineEdit | QComboBox | QAbstractSpinBox)]


def walk(qtbot: QtBot, start: QWidget, most: int = 400) -> set[QWidget]:
    """Press Tab until the focus is back where it began."""
    start.setFocus()
    seen: set[QWidget] = set()
    for _ in range(most):
        at = QApplication.focusWidget()
        assert at is not None
        if at in seen and at is start:
            return seen
        seen.add(at)
        qtbot.keyClick(at, Qt.Key.Key_Tab)
    raise AssertionError(f"Tab does not come back; it is at {QApplication.focusWidget()}")


def name_of(control: QWidget) -> str:
    text = control.text() if isinstance(control, QAbstractButton) else ""
    return control.accessibleName() or text


def test_tab_reaches_everything_in_the_window(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """A chat with all that can be pressed: versions, code, a link, reasoning, an attachment, Continue, an error."""
    loader.answer = "See [this](https://x.org).\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    loader.reasoning = "Let me think."
    window.services.chats.send(Draft("one", (Attachment("a.txt", "a"),)))
    idle(qtbot, window)
    window.regenerate()
    idle(qtbot, window)
    reply = window.transcript.items[-1]
    window.services.store.finish_reply(
        reply.id,
        State.FAILED,
        reply.content,
        reply.reasoning,
        error={"what": "w", "kept": "k", "todo": "t", "detail": "d"},
    )
    window.resize(1400, 1100)
    window.composer.set_draft(Draft("next", (Attachment("b.txt", "b"),)))
    window.services.chats.save_draft()
    window.services.chats.open(window.services.chats.current)
    window.composer.set_draft(Draft("next", (Attachment("b.txt", "b"),)))
    window.activateWindow()
    qtbot.waitUntil(lambda: window.transcript.up_to_date)
    reached = walk(qtbot, window.composer.box)
    wanted = controls(window)
    missed = [(type(w).__name__, name_of(w)) for w in wanted if w not in reached]
    assert not missed
    assert not [w for w in wanted if not name_of(w)], "and each has a name"
    names = {name_of(w) for w in reached}
    assert {
        "Copy message", "Regenerate", "Previous version", "Copy code", "Show reasoning", "Continue", "Remove b.txt",
        "Attach files, insert a template", "Send the message", "Delete message", "Edit and send again",
    } <= names  # fmt: skip


def chat_settings(window: MainWindow) -> None:
    window.services.chats.set_options(window.services.chats.current, window.services.chats.options)
    window.chat_settings()


def templates(window: MainWindow) -> None:
    window.services.store.save_template("one", "text")
    window.manage_templates()


def attachment(window: MainWindow) -> None:
    window.composer._on_chip(Attachment("a.txt", "text"))


@pytest.mark.parametrize(
    ("show", "kind"),
    [
        (chat_settings, ChatSettingsDialog),
        (templates, TemplateDialog),
        (attachment, AttachmentDialog),
        (MainWindow.open_settings, SettingsDialog),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_tab_reaches_everything_in_a_dialog(
    qtbot: QtBot, window: MainWindow, show: Callable[[MainWindow], None], kind: type[QDialog]
) -> None:
    show(window)
    (dialog,) = window.findChildren(kind)
    qtbot.waitExposed(dialog)
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    wanted = controls(dialog)
    reached = walk(qtbot, wanted[0])
    missed = [(type(w).__name__, name_of(w)) for w in wanted if w not in reached]
    assert not missed
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_the_keyboard_alone_does_a_whole_turn(qtbot: QtBot, window: MainWindow) -> None:
    """Write, send, go to the reply's Regenerate by Tab, press it with Space."""
    ask(qtbot, window, "one")
    window.composer.box.setFocus()
    for _ in range(60):
        at = QApplication.focusWidget()
        assert at is not None
        if name_of(at) == "Regenerate":
            break
        qtbot.keyClick(at, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    else:
        raise AssertionError("not reached")
    qtbot.keyClick(at, Qt.Key.Key_Space)
    idle(qtbot, window)
    assert window.transcript.items[-1].branches == 2
