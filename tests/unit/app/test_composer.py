"""Where the user writes: Enter, input methods, growth, Send and Stop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QImage, QInputMethodEvent, QTextCursor
from PySide6.QtWidgets import QAbstractButton, QApplication, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.chat.box import LONG_PASTE, LONG_PASTE_LINES
from app.chat.chips import AttachmentDialog, preview
from app.chat.composer import Composer
from app.store import Attachment, Draft, attachments
from app.store.attachments import compose as compose_message

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

    def note(draft: Draft) -> None:
        got.append(draft.text)

    composer.send.connect(note)
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


@pytest.mark.parametrize("text", ["a\n" * 6, "x " * 200, "שלום\nمرحبا\n会話\nनमस्ते", "a\nb\nשלום مرحبا 会話\n"])
def test_what_fits_into_it_does_not_scroll(qtbot: QtBot, composer: Composer, text: str) -> None:
    """Lines are higher than the font says, those of other scripts most: the last one was half under a scroll bar."""
    composer.resize(600, 200)
    composer.show()
    composer.set_text(text)
    assert composer.box.verticalScrollBar().maximum() == 0


def test_no_break_spaces_stay(composer: Composer) -> None:
    composer.set_text("10\u00a0km\nab")
    assert composer.text() == "10\u00a0km\nab"


def test_paste_is_plain_text(composer: Composer) -> None:
    data = QMimeData()
    data.setHtml("<b>bold</b>")
    data.setText("bold")
    composer.box.insertFromMimeData(data)
    assert composer.text() == "bold"


def paste(composer: Composer, text: str) -> None:
    data = QMimeData()
    data.setText(text)
    composer.box.insertFromMimeData(data)


def buttons(composer: Composer) -> list[QAbstractButton]:
    return [b for b in composer.chips.findChildren(QAbstractButton) if b.isVisibleTo(composer.chips)]


def test_a_very_long_paste_becomes_an_attachment_and_freezes_nothing(qtbot: QtBot, composer: Composer) -> None:
    """Bug 8: pasting 20,000 lines froze the app for 10 to 20 s. No text box ever gets them."""
    long = "a line of text\n" * 20_000
    composer.set_text("What is this?")
    with qtbot.waitSignal(composer.edited):
        paste(composer, long)
    assert composer.draft() == Draft("What is this?", (Attachment("Pasted text", long, pasted=True),))
    assert composer.box.document().blockCount() == 1
    assert composer.chips.isVisible()
    assert "300.0 k characters" in buttons(composer)[0].accessibleName()


@pytest.mark.parametrize(
    ("text", "long"),
    [("x" * LONG_PASTE, False), ("x" * (LONG_PASTE + 1), True), ("\n" * LONG_PASTE_LINES, False), ("\n" * 81, True)],
)
def test_what_counts_as_long(composer: Composer, text: str, long: bool) -> None:
    paste(composer, text)
    assert composer.draft() == (Draft("", (Attachment("Pasted text", text, pasted=True),)) if long else Draft(text))


def test_a_chip_shows_its_text_can_be_put_into_the_message_and_removed(qtbot: QtBot, composer: Composer) -> None:
    text = "words " * 1000
    paste(composer, text)
    paste(composer, text + "2")
    show, remove, *_ = buttons(composer)
    show.click()
    (dialog,) = composer.findChildren(AttachmentDialog)
    assert [w.toPlainText() for w in dialog.findChildren(QPlainTextEdit)] == [text]
    (move,) = [b for b in dialog.findChildren(QAbstractButton) if b.text() == "Put into the message"]
    move.click()
    assert composer.draft() == Draft(text, (Attachment("Pasted text", text + "2", pasted=True),))
    _, remove = buttons(composer)
    assert remove.accessibleName() == "Remove Pasted text"
    remove.click()
    assert composer.draft() == Draft(text)
    assert not composer.chips.isVisible()


def test_an_attachment_alone_can_be_sent(qtbot: QtBot, composer: Composer) -> None:
    got: list[Draft] = []
    composer.send.connect(got.append)
    assert not composer.button.isEnabled()
    paste(composer, "x" * 5000)
    composer.button.click()
    assert [len(draft.attachments) for draft in got] == [1]
    composer.clear()
    assert composer.draft() == Draft()


def test_files_are_attached_and_what_is_no_text_is_told(qtbot: QtBot, composer: Composer, tmp_path: Path) -> None:
    told: list[dict[str, str]] = []
    composer.failed.connect(told.append)
    (tmp_path / "notes.txt").write_text("Grüße\r\n2", "utf-8")
    (tmp_path / "wide.csv").write_text("a,ä", "utf-16")
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbfhi")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\x00\xff")
    (tmp_path / "nul.txt").write_bytes(b"a\0b")
    (tmp_path / "big.txt").write_bytes(b"x" * ((1 << 20) + 1))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / name)) for name in ("notes.txt", "wide.csv", "bom.txt")])
    assert composer.box.canInsertFromMimeData(data)
    composer.box.insertFromMimeData(data)
    assert [(a.name, a.text) for a in composer.draft().attachments] == [
        ("notes.txt", "Grüße\n2"),
        ("wide.csv", "a,ä"),
        ("bom.txt", "hi"),
    ]
    for name, word in (
        ("picture.png", "not a text"),
        ("nul.txt", "not a text"),
        ("big.txt", "too long"),
        ("no", "read"),
    ):
        composer.add_files([str(tmp_path / name)])
        assert word in told[-1]["what"]
        assert told[-1]["kept"] == "Your message is unchanged."
    assert len(composer.draft().attachments) == 3


@given(st.lists(st.text(st.sampled_from("`\nab")), max_size=3), st.text(st.sampled_from("ab\n"), max_size=5))
def test_no_attachment_can_close_its_fence(texts: list[str], typed: str) -> None:
    """What is in a file stays in its block, whatever fences the file holds."""
    read = compose_message(typed, [Attachment("f", text) for text in texts])
    blocks = [t.content for t in MarkdownIt("commonmark").parse(read) if t.type == "fence" and not t.info]
    # What is typed may hold no fence of its own here, so every block is an attachment.
    assert blocks == [text if text.endswith("\n") else text + "\n" for text in texts]


def test_alt_up_walks_through_what_was_sent_and_comes_back(qtbot: QtBot, composer: Composer) -> None:
    composer.history = ["one", "two"]
    composer.set_text("unsent")
    alt, seen = Qt.KeyboardModifier.AltModifier, []
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down):
        qtbot.keyClick(composer.box, key, alt)
        seen.append(composer.text())
    assert seen == ["two", "one", "one", "two", "unsent", "unsent"]


def test_a_template_marks_its_placeholders_one_after_the_other(qtbot: QtBot, composer: Composer) -> None:
    composer.set_text("😀 ")
    composer.insert("Translate into {{language}}: {{text}}")
    qtbot.keyClicks(composer.box, "German")
    qtbot.keyClick(composer.box, Qt.Key.Key_Tab)
    qtbot.keyClicks(composer.box, "hello")
    assert composer.text() == "😀 Translate into German: hello"
    composer.insert(" plain")
    assert composer.text().endswith("hello plain")


def told(composer: Composer) -> list[dict[str, str]]:
    got: list[dict[str, str]] = []
    composer.failed.connect(got.append)
    return got


def test_a_pipe_does_not_hold_the_window(composer: Composer, tmp_path: Path) -> None:
    """Bug: reading it never ended."""
    problems = told(composer)
    os.mkfifo(tmp_path / "pipe")
    composer.add_files([str(tmp_path / "pipe"), "/dev/zero"])
    assert problems[0]["what"] == "pipe cannot be read. Not attached either: zero."


def test_every_file_that_is_not_attached_is_named(composer: Composer, tmp_path: Path) -> None:
    """Bug: of several only the first was told, and the others were missing without a word."""
    problems = told(composer)
    for number in range(8):
        (tmp_path / f"{number}.bin").write_bytes(b"\0")
    (tmp_path / "a.txt").write_text("a")
    composer.add_files([str(tmp_path / name) for name in ("0.bin", "a.txt", *(f"{n}.bin" for n in range(1, 8)))])
    (problem,) = problems
    assert problem["what"] == (
        "0.bin is not a text file. Not attached either: 1.bin, 2.bin, 3.bin, 4.bin, 5.bin and 2 more."
    )
    assert "7.bin is not a text file." in problem["detail"]
    assert [a.name for a in composer.draft().attachments] == ["a.txt"]


def test_text_in_another_encoding_is_told_from_no_text(composer: Composer, tmp_path: Path) -> None:
    """Bug: a letter saved by an old Windows editor was called no text, and nothing said what to do."""
    problems = told(composer)
    (tmp_path / "letter.txt").write_bytes("Grüße".encode("latin-1"))
    composer.add_files([str(tmp_path / "letter.txt")])
    assert problems[0]["what"] == "letter.txt is not in UTF-8."
    assert "Save it as UTF-8" in problems[0]["todo"]


def test_a_name_is_one_line(composer: Composer, tmp_path: Path) -> None:
    (tmp_path / "a\nb.txt").write_text("one\rtwo\r\n")
    composer.add_files([str(tmp_path / "a\nb.txt")])
    assert composer.draft().attachments == (Attachment("a b.txt", "one\ntwo\n"),)


def test_attachments_have_a_most(composer: Composer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: 20 MB of files stopped the window for 0.3 s at every pause of the typing, and no model reads them."""
    problems = told(composer)
    monkeypatch.setattr(attachments, "MAX_TOGETHER", 12_000)
    monkeypatch.setattr(attachments, "MOST", 2)
    for text in ("x" * 10_000, "y" * 10_000, "z" * 4001):
        paste(composer, text)
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    composer.add_files([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")])
    paste(composer, "x" * ((1 << 20) + 1))
    assert [a.text[0] for a in composer.draft().attachments] == ["x", "a"]
    assert [problem["what"][:40] for problem in problems] == [
        "Pasted text was not attached: all attach",
        "Pasted text was not attached: all attach",
        "b.txt was not attached: a message has 2 ",
        "The pasted text is too long to attach (1",
    ]


def test_formatted_text_without_a_plain_form_is_pasted_as_text(composer: Composer) -> None:
    """Bug: nothing at all happened."""
    data = QMimeData()
    data.setHtml('<p>bo<b>ld</b><img src="http://x/y.png"></p><p>next</p>')
    assert composer.box.canInsertFromMimeData(data)
    composer.box.insertFromMimeData(data)
    assert composer.text() == "bold\nnext"


def test_a_picture_is_declined_in_words(composer: Composer) -> None:
    """Bug: nothing at all happened."""
    problems = told(composer)
    data = QMimeData()
    data.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    composer.box.insertFromMimeData(data)
    assert [problem["what"] for problem in problems] == ["Pictures cannot be attached."]
    data.setText("cells of a table come as both")
    composer.box.insertFromMimeData(data)
    assert composer.text() == "cells of a table come as both"
    assert len(problems) == 1


def test_line_ends_of_windows_are_not_kept_in_a_long_paste(composer: Composer) -> None:
    paste(composer, "a\r\n" * 100)
    assert composer.draft().attachments[0].text == "a\n" * 100


@pytest.mark.parametrize(("text", "fits"), [("word\n" * 2000, True), ("x" * 10_001, False), ("w\n" * 60_000, False)])
def test_what_a_text_box_cannot_hold_is_not_put_into_it(composer: Composer, text: str, fits: bool) -> None:
    """Bug: one line of a million letters held the window for three minutes."""
    paste(composer, text)
    buttons(composer)[0].click()
    (dialog,) = composer.findChildren(AttachmentDialog)
    (move,) = [b for b in dialog.findChildren(QAbstractButton) if b.text() == "Put into the message"]
    assert move.isEnabled() is fits
    dialog.reject()


def test_many_chips_scroll_and_leave_room_for_the_text(qtbot: QtBot, composer: Composer, tmp_path: Path) -> None:
    """Bug: 50 files covered the text box, and half of the transcript."""
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text("x")
    composer.resize(600, 400)
    composer.add_files([str(tmp_path / f"{number}.txt") for number in range(50)])
    area = composer._chip_area
    qtbot.waitUntil(lambda: area.geometry().bottom() < composer.box.geometry().top())
    assert area.height() <= 160
    assert area.verticalScrollBar().maximum() > 0
    assert composer.sizeHint().height() < 300
    last = buttons(composer)[-1]
    last.setFocus(Qt.FocusReason.TabFocusReason)
    area.ensureWidgetVisible(last)
    assert area.viewport().rect().contains(last.mapTo(area.viewport(), last.rect().center()))
    composer.clear()
    assert area.isHidden()


def test_tab_leaves_a_box_with_double_braces_in_its_text(qtbot: QtBot, composer: Composer) -> None:
    """Bug: code with {{ these }} kept the keyboard in the box: after the last one Tab went to the first again."""
    composer.set_text("{{ a }} and {{ b }}")
    composer.box.moveCursor(QTextCursor.MoveOperation.Start)
    marked = []
    for _ in range(3):
        qtbot.keyClick(composer.box, Qt.Key.Key_Tab)
        marked.append(composer.box.textCursor().selectedText())
    assert marked == ["{{ a }}", "{{ b }}", "{{ b }}"]
    assert not composer.box.hasFocus()
    composer.insert(" no more")
    assert composer.text() == "{{ a }} and  no more"
    assert not composer.box.textCursor().hasSelection(), "bug: it marked what was there before"


def test_an_attachment_is_shown_without_its_endless_lines() -> None:
    """Bug: a look at 400,000 emoji in one line held the window for a quarter of a minute."""
    assert preview("a\nb") == "a\nb"
    assert preview("x" * 50_000 + "\nb") == "x" * 6000 + " … (the line goes on)\nb"
    assert preview("line\n" * 50_000).endswith("… only the beginning is shown here")


def test_no_more_files_are_read_than_can_be_attached(
    composer: Composer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder's thousands of files, dropped by mistake, would be read one by one."""
    problems = told(composer)
    read: list[Path] = []

    def spy(path: Path) -> Attachment:
        read.append(path)
        return Attachment(path.name, "x")

    monkeypatch.setattr("app.chat.composer.read_file", spy)
    composer.add_files([str(tmp_path / f"{number}.txt") for number in range(3000)])
    assert len(read) == len(composer.draft().attachments) == attachments.MOST
    assert problems[0]["what"].endswith("and 2,944 more.")


def test_a_template_does_not_fall_into_a_composition(composer: Composer) -> None:
    """Bug: the word in composition replaced the template's first placeholder."""
    compose(composer, "て")
    composer.insert("Hello {{name}}")
    assert composer.text() == "てHello {{name}}"
    assert composer.box.textCursor().selectedText() == "{{name}}"


def test_many_pastes_do_not_fill_the_box_beyond_what_it_holds(composer: Composer) -> None:
    """Each of them is short; together they made one line that took a second for every key."""
    for _ in range(4):
        paste(composer, "x" * 3900)
    assert len(composer.text()) == 7800
    assert [len(a.text) for a in composer.draft().attachments] == [3900, 3900]
