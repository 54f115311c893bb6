"""The text box of the composer: safe for input methods, plain text only."""

from __future__ import annotations

import math
import re
import sys

from PySide6.QtCore import QMimeData, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QFocusEvent,
    QGuiApplication,
    QInputMethodEvent,
    QKeyEvent,
    QResizeEvent,
    QTextDocumentFragment,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from app.store.attachments import plain
from app.text import exact_text
from app.theme.manager import text_font
from app.theme.tokens import TRANSCRIPT

MAX_LINES = 8
LONG_PASTE = 4_000
"""Characters above which a paste is told, not inserted: a text box needs seconds for 20,000 lines."""
LONG_PASTE_LINES = 80
MOST_TEXT, LONGEST_LINE = 100_000, 10_000
"""Characters that can be written in without waiting. One line of a million held the window for three minutes."""
PLACEHOLDER = re.compile(r"\{\{[^{}\n]+\}\}")
MAC = sys.platform == "darwin"
_NONE, _KEYPAD = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier


def has_room_for(text: str) -> bool:
    """Whether a text box can hold it."""
    return len(text) <= MOST_TEXT and all(len(line) <= LONGEST_LINE for line in text.split("\n"))


class Box(QPlainTextEdit):
    """A plain text box that grows to eight lines. Files and long pastes are not put into it but told."""

    submitted = Signal()
    up_in_empty = Signal()
    escaped = Signal()
    focused = Signal(bool)
    pasted = Signal(str)
    """Too long for a text box."""
    files = Signal(list)
    """Paths that were dropped or pasted."""
    picture = Signal()
    """A picture was dropped or pasted, and no text with it."""
    recall = Signal(int)
    """Steps through what was sent before: -1 is back."""

    def __init__(self) -> None:
        super().__init__()
        self.send_with = "enter"
        self.setFont(text_font(TRANSCRIPT[0]))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Message")
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(2)
        self.viewport().setAutoFillBackground(False)
        self.textChanged.connect(self._fit)
        self._fit()

    @property
    def composing(self) -> str:
        """What an input method has not committed yet. It is on the screen, and in no text."""
        return self.textCursor().block().layout().preeditAreaText()

    def settle(self) -> None:
        """Commit what is being composed: the box is about to be sent, or to show another draft."""
        if self.composing:
            QGuiApplication.inputMethod().commit()
        if left := self.composing:  # no input method answered
            event = QInputMethodEvent()
            event.setCommitString(left)
            QGuiApplication.sendEvent(self, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, modifiers = event.key(), event.modifiers()
        enter = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if self.composing:
            # Enter chooses a candidate of the input method; Esc and Up are its own too.
            if not enter:
                super().keyPressEvent(event)
        elif enter:
            modified = bool(modifiers & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.MetaModifier))
            shifted = bool(modifiers & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier))
            if not shifted and modified == (self.send_with == "modified"):
                self.submitted.emit()
            else:
                self.textCursor().insertText("\n")
                self.ensureCursorVisible()
        elif key == Qt.Key.Key_Backspace and modifiers == Qt.KeyboardModifier.ControlModifier and MAC:
            # Cmd+Backspace: Qt's text boxes do not know it.
            cursor = self.textCursor()
            if not cursor.hasSelection():
                cursor.movePosition(cursor.MoveOperation.StartOfLine, cursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
        elif key == Qt.Key.Key_Up and not self.toPlainText() and modifiers in (_NONE, _KEYPAD):
            self.up_in_empty.emit()
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and modifiers & ~_KEYPAD == Qt.KeyboardModifier.AltModifier:
            self.recall.emit(-1 if key == Qt.Key.Key_Up else 1)
        elif key == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        paths = [url.toLocalFile() for url in source.urls() if url.isLocalFile()]
        if paths:
            self.files.emit(paths)
            return
        # Plain text only: what is sent is what is seen.
        text = source.text()
        if not text and source.hasHtml():
            text = QTextDocumentFragment.fromHtml(source.html()).toPlainText().replace("\ufffc", "")
        if text:
            text = plain(text)
            long = len(text) > LONG_PASTE or text.count("\n") > LONG_PASTE_LINES
            if long or not has_room_for(exact_text(self) + text):
                self.pasted.emit(text)
            else:
                self.insertPlainText(text)
        elif source.hasImage():
            self.picture.emit()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasUrls() or source.hasHtml() or source.hasImage() or super().canInsertFromMimeData(source)

    def focusNextPrevChild(self, next: bool) -> bool:
        # Tab, before it leaves the box: behind the last placeholder it does, so nobody is caught.
        return (next and self.select_placeholder()) or super().focusNextPrevChild(next)

    def select_placeholder(self) -> bool:
        """Mark the next {{placeholder}} of a template, so that typing replaces it. False when there is none."""
        text = exact_text(self)
        start = self.textCursor().selectionEnd()
        units = text.encode("utf-16-le")
        found = PLACEHOLDER.search(text, len(units[: 2 * start].decode("utf-16-le", "ignore")))
        if found is None:
            return False
        cursor = self.textCursor()
        # A cursor counts UTF-16 units.
        cursor.setPosition(len(text[: found.start()].encode("utf-16-le")) // 2)
        cursor.setPosition(len(text[: found.end()].encode("utf-16-le")) // 2, cursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)
        return True

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)

    def sizeHint(self) -> QSize:
        return QSize(300, self.height())

    @Slot()
    def _fit(self) -> None:
        # Letters of another script may come from another font, whose lines are higher than this one's.
        layout, block = self.document().documentLayout(), self.document().begin()
        most, height = MAX_LINES * self.fontMetrics().lineSpacing(), 0.0
        while block.isValid() and height < most:
            height += layout.blockBoundingRect(block).height()
            block = block.next()
        if not block.isValid():
            height -= self.document().documentMargin()  # counted below, too
        wanted = max(34, math.ceil(min(most, max(height, self.fontMetrics().lineSpacing()))) + 8)
        if wanted != self.height() or self.minimumHeight() != wanted:
            self.setFixedHeight(wanted)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
