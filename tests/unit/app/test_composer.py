"""Where the user writes: Enter, input methods, growth, Send and Stop."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.composer import Composer

NONE, SHIFT, CTRL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    made = Composer()
    qtbot.addWidget(made)
    made.resize(600, 120)
    made.show()
    made.box.setFocus()
    return made


def sent(composer: Composer) -> list[str]:
    got: list[str] = []
    composer.send.connect(got.append)
    return got


def compose(composer: Composer, preedit: str, commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    if commit:
        event.setCommitString(commit)
    QApplication.sendEvent(composer.box, event)


def test_enter_sends_and_shift_enter_makes_a_line(qtbot: QtBot, composer: Composer) -> None:
    got = sent(composer)
    qtbot.keyClicks(composer.box, "one")
    qtbot.keyClick(composer.box, Qt.Key.Key_Return, SHIFT)
    qtbot.keyClicks(composer.box, "two")
    assert got == []
    qtbot.keyClick(composer.box, Qt.Key.Key_Return)
    assert got == ["one\ntwo"]
    assert composer.text() == "one\ntwo", "kept until it is in the store"


def test_modified_enter_sends_when_so_chosen(qtbot: QtBot, composer: Composer) -> None:
    got = sent(composer)
    composer.set_send_with("modified")
    qtbot.keyClicks(composer.box, "a")
    qtbot.keyClick(composer.box, Qt.Key.Key_Return)
    assert (got, composer.text()) == ([], "a\n")
    qtbot.keyClick(composer.box, Qt.Key.Key_Enter, CTRL)
    assert got == ["a\n"]


def test_enter_while_an_input_method_composes_does_not_send(qtbot: QtBot, composer: Composer) -> None:
    """Bug 22: Enter that chooses a candidate sent the message."""
    got = sent(composer)
    compose(composer, "かいわ")
    qtbot.keyClick(composer.box, Qt.Key.Key_Return)
    assert got == []
    compose(composer, "", "会話")
    assert composer.text() == "会話"
    qtbot.keyClick(composer.box, Qt.Key.Key_Return)
    assert got == ["会話"]


def test_escape_and_up_belong_to_the_input_method_too(qtbot: QtBot, composer: Composer) -> None:
    composer.set_busy(True)
    stops: list[bool] = []
    composer.stop.connect(lambda: stops.append(True))
    ups: list[bool] = []
    composer.edit_last.connect(lambda: ups.append(True))
    compose(composer, "か")
    qtbot.keyClick(composer.box, Qt.Key.Key_Escape)
    qtbot.keyClick(composer.box, Qt.Key.Key_Up)
    assert (stops, ups) == ([], [])
    compose(composer, "")
    qtbot.keyClick(composer.box, Qt.Key.Key_Escape)
    qtbot.keyClick(composer.box, Qt.Key.Key_Up)
    assert (stops, ups) == ([True], [True])


def test_blank_is_not_sent(qtbot: QtBot, composer: Composer) -> None:
    got = sent(composer)
    composer.set_text("  \n ")
    qtbot.keyClick(composer.box, Qt.Key.Key_Return)
    assert got == []
    assert not composer.button.isEnabled()


def test_while_a_reply_is_written_enter_keeps_the_text_and_the_button_stops(qtbot: QtBot, composer: Composer) -> None:
    """Bug 24: text typed while generating was lost."""
    got = sent(composer)
    size = composer.button.size()
    composer.set_text("next question")
    composer.set_busy(True)
    qtbot.keyClick(composer.box, Qt.Key.Key_Return)
    assert (got, composer.text()) == ([], "next question")
    assert (composer.button.text(), composer.button.size()) == ("Stop", size)
    with qtbot.waitSignal(composer.stop):
        composer.button.click()
    composer.set_busy(False)
    composer.button.click()
    assert got == ["next question"]


def test_it_grows_to_eight_lines_and_then_scrolls(composer: Composer) -> None:
    heights = []
    for lines in (1, 2, 8, 30):
        composer.set_text("\n".join("x" * lines))
        heights.append(composer.box.height())
    assert heights[0] < heights[1] < heights[2] == heights[3]


def test_no_break_spaces_stay(composer: Composer) -> None:
    composer.set_text("10\u00a0km\nab")
    assert composer.text() == "10\u00a0km\nab"


def test_paste_is_plain_text(composer: Composer) -> None:
    data = QMimeData()
    data.setHtml("<b>bold</b>")
    data.setText("bold")
    composer.box.insertFromMimeData(data)
    assert composer.text() == "bold"


def test_a_very_long_paste_does_not_hang(qtbot: QtBot, composer: Composer) -> None:
    """Bug 8: 20,000 lines froze the app for 10 to 20 s. Here: it is in, and the box has its eight lines."""
    data = QMimeData()
    data.setText("a line of text\n" * 20_000)
    composer.box.insertFromMimeData(data)
    assert composer.text().count("\n") == 20_000
    assert composer.box.height() < 300
