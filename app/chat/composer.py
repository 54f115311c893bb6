"""Where the user writes. Enter is safe while an input method composes; Send becomes Stop in place."""

from __future__ import annotations

import sys

from PySide6.QtCore import QMimeData, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QTextDocument
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.text import exact_text
from app.theme.icons import icon
from app.theme.manager import current, text_font, use_class
from app.theme.tokens import TRANSCRIPT

MAX_LINES = 8
MAC = sys.platform == "darwin"


class Composer(QWidget):
    """The composer. The text stays in it until `clear`, so a send that fails loses nothing."""

    send = Signal(str)
    stop = Signal()
    edited = Signal()
    edit_last = Signal()
    cancel_edit = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._busy = False
        self._editing = False
        self.box = _Box()
        self.box.submitted.connect(self.submit)
        self.box.up_in_empty.connect(self.edit_last)
        self.box.escaped.connect(self._on_escape)
        self.box.textChanged.connect(self._on_changed)
        self.box.focused.connect(self._on_focus)
        self.button = QPushButton()
        use_class(self.button, "send")
        self.button.setFixedSize(84, 34)
        self.button.clicked.connect(self._on_button)
        self._frame = QFrame()
        self._frame.setObjectName("composer")
        row = QHBoxLayout(self._frame)
        row.setContentsMargins(14, 8, 8, 8)
        row.setSpacing(8)
        row.addWidget(self.box, 1)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        self._hint = QLabel()
        use_class(self._hint, "caption")
        self._hint.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._hint)
        layout.addWidget(self._frame)
        self.setFocusProxy(self.box)
        self.set_send_with("enter")
        self._refresh()

    # state

    def text(self) -> str:
        return exact_text(self.box)

    def set_text(self, text: str) -> None:
        self.box.setPlainText(text)
        self.box.moveCursor(self.box.textCursor().MoveOperation.End)

    def clear(self) -> None:
        self.box.clear()

    def set_busy(self, busy: bool) -> None:
        """busy: this chat's reply is being written."""
        self._busy = busy
        self._refresh()

    def set_editing(self, editing: bool) -> None:
        """editing: what is sent replaces an earlier message, on a branch of its own."""
        self._editing = editing
        self._hint.setText("Editing an earlier message. Sending makes a new branch; Esc cancels.")
        self._hint.setVisible(editing)

    @property
    def editing(self) -> bool:
        return self._editing

    def set_send_with(self, mode: str) -> None:
        """mode: "enter" or "modified" (Cmd-Enter)."""
        self.box.send_with = mode
        self.box.setPlaceholderText("Message" if mode == "enter" else "Message (Cmd-Enter sends)")

    def refresh_theme(self) -> None:
        self._refresh()

    # doing

    @Slot()
    def submit(self) -> None:
        """Send what is written. While a reply is being written nothing is sent and nothing is lost."""
        if not self._busy and self.text().strip():
            self.send.emit(self.text())

    @Slot()
    def _on_button(self) -> None:
        if self._busy:
            self.stop.emit()
        else:
            self.submit()

    @Slot()
    def _on_changed(self) -> None:
        self._refresh()
        self.edited.emit()

    @Slot(bool)
    def _on_focus(self, focused: bool) -> None:
        self._frame.setProperty("focused", focused)
        self._frame.style().unpolish(self._frame)
        self._frame.style().polish(self._frame)

    @Slot()
    def _on_escape(self) -> None:
        if self._editing:
            self.cancel_edit.emit()
        elif self._busy:
            self.stop.emit()

    def _refresh(self) -> None:
        roles = current()
        self.button.setText("Stop" if self._busy else "Send")
        self.button.setAccessibleName("Stop the reply" if self._busy else "Send the message")
        self.button.setIcon(icon("stop" if self._busy else "send", roles.on_accent))
        self.button.setEnabled(self._busy or bool(self.text().strip()))
        if not self.button.isEnabled():
            self.button.setIcon(icon("send", roles.text_soft))


class _Box(QPlainTextEdit):
    """A plain text box that grows to eight lines."""

    submitted = Signal()
    up_in_empty = Signal()
    escaped = Signal()
    focused = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.send_with = "enter"
        self._composing = False
        self.setFont(text_font(TRANSCRIPT[0]))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Message")
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(2)
        self.viewport().setAutoFillBackground(False)
        self.textChanged.connect(self._fit)
        self._fit()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, modifiers = event.key(), event.modifiers()
        enter = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if self._composing:
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
        elif key == Qt.Key.Key_Up and not self.toPlainText():
            self.up_in_empty.emit()
        elif key == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        # Plain text only: what is sent is what is seen.
        if source.hasText():
            self.insertPlainText(source.text())

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
        document: QTextDocument = self.document()
        # A plain text document counts its height in lines, wrapped ones included.
        lines = max(1, min(MAX_LINES, int(document.size().height())))
        height = lines * self.fontMetrics().lineSpacing() + 8
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(max(34, height))

    def resizeEvent(self, event) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        super().resizeEvent(event)
        self._fit()
