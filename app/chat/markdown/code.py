"""A fenced code block: language, Copy, and the source with colours once it is complete."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import (
    QGuiApplication,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from app.chat.markdown.highlight import Colours, spans
from app.chat.markdown.marks import Marked, Marking
from app.theme.icons import icon
from app.theme.manager import code_font, current, use_class
from app.theme.tokens import CODE

HIGHLIGHT_LIMIT = 60_000
"""Characters above which code stays uncoloured: Pygments needs about 1 ms per 1,000 on the GUI thread."""


class CodeBlock(QFrame):
    """Shows code. `source` is exactly what the model wrote between the fences; Copy gives that."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        use_class(self, "code")
        self.source = ""
        self.language = ""
        self._complete = False
        self._label = QLabel()
        use_class(self._label, "caption")
        self._copy = QToolButton()
        use_class(self._copy, "quiet")
        self._copy.setText("Copy")
        self._copy.setAccessibleName("Copy code")
        self._copy.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._copy.clicked.connect(self.copy)
        self._back = QTimer(self)
        self._back.setSingleShot(True)
        self._back.setInterval(1500)
        self._back.timeout.connect(self._copy_again)
        self._edit = _Source(self)
        self._colours = Colours(self._edit.document())
        top = QHBoxLayout()
        top.setContentsMargins(12, 2, 4, 0)
        top.addWidget(self._label)
        top.addStretch()
        top.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 8)
        layout.setSpacing(0)
        layout.addLayout(top)
        layout.addWidget(self._edit)
        self.refresh_theme()

    def show_code(self, source: str, language: str, *, complete: bool) -> None:
        """source may only have grown; then only the new part is inserted."""
        source = source.removesuffix("\n")
        if language != self.language:
            self.language = language
            self._label.setText(language or "code")
        if source != self.source:
            if source.startswith(self.source):
                cursor = QTextCursor(self._edit.document())
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.insertText(source[len(self.source) :])
            else:
                self._edit.setPlainText(source)
            self.source = source
            self._complete = False
        if complete and not self._complete:
            self._complete = True
            self._colour()

    def mark(self, marking: Marking, source: str, offset: int) -> None:
        """source: the fence and what is in it, which is at `offset` of the reply."""
        # Words of the code must not be found in the line of the fence.
        head = source.find("\n") + 1
        self._edit.show_spans(marking, marking.spans(self.source, 0, source[head:], offset + head))

    def height_for(self, width: int) -> int:
        """Height in pixels; code does not wrap, so width matters only for the scroll bar."""
        return 32 + self._edit.fit(width - 2) + 10

    @Slot()
    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.source)
        self._copy.setText("Copied")
        self._copy.setIcon(icon("check", current().text_soft))
        self._back.start()

    @Slot()
    def _copy_again(self) -> None:
        self._copy.setText("Copy")
        self._copy.setIcon(icon("copy", current().text_soft))

    def refresh_theme(self) -> None:
        self._copy_again()
        if self._complete:
            self._colour()

    def _colour(self) -> None:
        if len(self.source) <= HIGHLIGHT_LIMIT:
            self._colours.show_spans(spans(self.source, self.language, current()))


class _Source(Marked, QPlainTextEdit):
    """As tall as its lines; scrolls sideways only."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFont(code_font())
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabStopDistance(4 * self.fontMetrics().horizontalAdvance(" "))
        self.document().setDocumentMargin(0)
        self.setViewportMargins(12, 0, 12, 0)
        self.viewport().setAutoFillBackground(False)
        self.setAccessibleName("Code")

    def fit(self, width: int) -> int:
        line = max(CODE[1] - 3, self.fontMetrics().lineSpacing())
        bar = self.horizontalScrollBar()
        longest = max((b.length() for b in _lines(self.document())), default=0)
        wide = longest * self.fontMetrics().horizontalAdvance("0") > width - 24
        height = line * max(1, self.document().blockCount()) + 2 + (bar.sizeHint().height() if wide else 0)
        if self.height() != height:
            self.setFixedHeight(height)
        return height

    def wheelEvent(self, event: QWheelEvent) -> None:
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            super().wheelEvent(event)
        else:
            event.ignore()


def _lines(document: QTextDocument) -> Iterator[QTextBlock]:
    block = document.begin()
    while block.isValid():
        yield block
        block = block.next()
