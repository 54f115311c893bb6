"""A fenced code block: language, Copy, and the source with colours once it is complete."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from PySide6.QtCore import QRect, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication, QResizeEvent, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QToolButton, QWidget

from app.chat.markdown.highlight import Colours, Span, spans
from app.chat.markdown.marks import Marked, Marking
from app.theme.icons import icon
from app.theme.manager import code_font, current, use_class
from app.theme.tokens import CODE, RADIUS

MEASURED = 1_000
"""Characters of a line whose width is measured."""
HEAD = 32
"""Height of the line with the language and Copy, with the border above it."""
BELOW = 10

NEXT_MS = 5
HIGHLIGHT_LIMIT = 60_000
"""Characters above which code stays uncoloured."""
LINES_AT_ONCE = 60
"""Lines coloured in one turn of the event loop, about 10 ms of work: all of 16 KB at once took 0.1 s."""


class CodeBlock(QFrame):
    """Shows code. `source` is exactly what the model wrote between the fences; Copy gives that."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        use_class(self, "code")
        # It grows by lines; those that are there stay as they were drawn.
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.source = ""
        self.language = ""
        self._complete = False
        self._label = QLabel(self)
        use_class(self._label, "caption")
        self._copy = QToolButton(self)
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
        self._uncoloured: Iterator[tuple[int, list[Span]]] = iter(())
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(NEXT_MS)
        self._later.timeout.connect(self.colour_more)
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
                self._edit.look_at(source, len(self.source))
            else:
                self._edit.setPlainText(source)
                self._edit.look_at(source)
            self.source = source
            self._complete = False
            self._later.stop()
        if complete and not self._complete:
            self._complete = True
            self._colour()

    @property
    def edit(self) -> _Source:
        """What has the text."""
        return self._edit

    def reset(self) -> None:
        """Show nothing, as if it were new."""
        self.source = self.language = ""
        self._complete = False
        self._label.clear()
        self._back.stop()
        self._later.stop()
        self._copy_again()
        self._edit.show_spans(None, ())
        self._edit.clear()
        self._edit.look_at("")
        self._colours.clear()

    def mark(self, marking: Marking, source: str, offset: int) -> None:
        """source: the fence and what is in it, which is at `offset` of the reply."""
        # Words of the code must not be found in the line of the fence.
        head = source.find("\n") + 1
        self._edit.show_spans(marking, marking.spans(self.source, 0, source[head:], offset + head))

    def height_for(self, width: int) -> int:
        """Height in pixels; code does not wrap, so width matters only for the scroll bar."""
        return HEAD + self._edit.height_for(width - 2) + BELOW

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        old, width, height = event.oldSize(), self.width(), self.height()
        if old.width() != width:
            self.update()
        else:
            # The lower border is no longer there.
            self.update(QRect(0, old.height() - RADIUS - 1, width, RADIUS + 1))
            self.update(QRect(0, height - RADIUS - 1, width, RADIUS + 1))
        self._place_copy()
        self._edit.setGeometry(1, HEAD, width - 2, height - HEAD - BELOW)

    def _place_copy(self) -> None:
        copy = self._copy.sizeHint().width()
        self._copy.setGeometry(self.width() - 5 - copy, 3, copy, HEAD - 3)
        self._label.setGeometry(13, 3, max(0, self.width() - 5 - copy - 13), HEAD - 3)

    @Slot()
    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.source)
        self._copy.setText("Copied")
        self._copy.setIcon(icon("check", current().text_soft))
        self._place_copy()
        self._back.start()

    @Slot()
    def _copy_again(self) -> None:
        self._copy.setText("Copy")
        self._copy.setIcon(icon("copy", current().text_soft))
        self._place_copy()

    def refresh_theme(self) -> None:
        self._copy_again()
        if self._complete:
            self._colour()

    def _colour(self) -> None:
        self._colours.clear()
        if len(self.source) <= HIGHLIGHT_LIMIT:
            self._uncoloured = spans(self.source, self.language, current())
            self.colour_more()

    @Slot()
    def colour_more(self) -> None:
        """Colour the next lines; the others in the next turns."""
        line = -1
        for line, found in islice(self._uncoloured, LINES_AT_ONCE):
            self._colours.show_line(line, found)
        if -1 < line < self._edit.blockCount() - 1:
            self._later.start()


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
        for widget in (self, self.viewport()):
            widget.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._widest = 0

    def look_at(self, source: str, known: int = 0) -> None:
        """Keep the width of the widest line. source: what is shown; of it, `known` characters were looked at before."""
        if not known:
            self._widest = 0
        metrics, start = self.fontMetrics(), source.rfind("\n", 0, known) + 1
        for line in source[start:].split("\n"):
            # Wider than any view is wide enough: a minified file is one line.
            self._widest = max(self._widest, metrics.horizontalAdvance(line[:MEASURED].expandtabs(4)))

    def height_for(self, width: int) -> int:
        """Height of all lines, with the bar below them when the widest has no room."""
        line = max(CODE[1] - 3, self.fontMetrics().lineSpacing())
        bar = self.horizontalScrollBar().sizeHint().height() if self._widest > width - 24 else 0
        return line * max(1, self.document().blockCount()) + 2 + bar

    def wheelEvent(self, event: QWheelEvent) -> None:
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            super().wheelEvent(event)
        else:
            event.ignore()
