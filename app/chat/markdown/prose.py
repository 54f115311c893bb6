"""Widgets for the parts of a reply that are text: prose that grows at its end, and tables.

Both are QTextBrowsers without scroll bars that are exactly as tall as their text, so that selection, links and
VoiceOver are Qt's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it.token import Token
from PySide6.QtCore import QRect, QRectF, QSize, Qt, QUrl, Slot
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QFont,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QTextTableFormat,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from app.chat.markdown.marks import LIVE_SPANS, Marked, Marking, Span
from app.chat.markdown.split import Block
from app.chat.markdown.writer import Writer, table_rows
from app.theme.manager import current, text_font, use_class
from app.theme.tokens import GAP_12, GAP_16, TRANSCRIPT


@dataclass(frozen=True, slots=True)
class Chunk:
    """Document positions start to end (None: its end), written from `source`, which is at `offset` of the reply."""

    start: int
    end: int | None
    source: str
    offset: int


class TextPart(Marked, QTextBrowser):
    """Read-only text that never scrolls by itself and never fetches anything."""

    def __init__(self, parent: QWidget | None = None, *, style: str = "prose") -> None:
        super().__init__(parent)
        use_class(self, style)
        self.soft = style == "reasoning"
        self._writer: Writer | None = None
        self.quotes = False
        """Whether there may be quotes in it."""
        self.setAccessibleName("Reasoning" if self.soft else "Text")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.viewport().setAutoFillBackground(False)
        for widget in (self, self.viewport()):
            # A paragraph more must not draw all others again.
            widget.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.document().setDocumentMargin(0)
        self.document().setUndoRedoEnabled(False)
        self.anchorClicked.connect(self._open)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Nothing is ever loaded, from net or disk: text of a model decides the address."""
        return None

    @Slot(QUrl)
    def _open(self, url: QUrl) -> None:
        if url.scheme() in ("http", "https", "mailto"):
            QDesktopServices.openUrl(url)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The transcript scrolls, not its parts.
        event.ignore()

    def height_for(self, width: int) -> int:
        """Height of the text at this width, both in pixels."""
        document = self.document()
        if int(document.textWidth()) != width:
            document.setTextWidth(width)
        return int(document.size().height() + 0.999)

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.oldSize().width() != event.size().width():
            super().resizeEvent(event)
        else:
            # Qt would lay out the whole document anew, with every line that it grows by.
            self.verticalScrollBar().setRange(0, 0)

    def sizeHint(self) -> QSize:
        return QSize(400, self.height_for(max(1, self.width())))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.quotes:
            self._paint_quotes(event.rect())

    def _paint_quotes(self, area: QRect) -> None:
        """A bar beside quotes; Qt knows the level but draws nothing."""
        block = self.cursorForPosition(area.topLeft()).block()
        painter = QPainter(self.viewport())
        layout = self.document().documentLayout()
        while block.isValid():
            where = layout.blockBoundingRect(block)
            if where.top() > area.bottom():
                break
            level = block.blockFormat().intProperty(QTextBlockFormat.Property.BlockQuoteLevel)
            for number in range(level):
                # Beside the text: at its right when it is written from right to left.
                shape, back = block.blockFormat(), (level - number) * GAP_16
                x = where.right() - shape.rightMargin() + back - 3 if shape.rightMargin() else shape.leftMargin() - back
                if x >= 0:  # there is an end to indenting
                    painter.fillRect(QRectF(x, where.top(), 3, where.height()), QColor(current().line))
            block = block.next()
        painter.end()

    def reset(self) -> None:
        """Show nothing, as if it were new."""
        self.show_spans(None, ())
        self.document().clear()
        self.quotes = False

    def writer(self) -> Writer:
        """For the present colours."""
        if self._writer is None or self._writer.roles is not current():
            self._writer = Writer(current(), text_font(TRANSCRIPT[0]), soft=self.soft)
        return self._writer


class Prose(TextPart):
    """Paragraphs, headings, lists and quotes. Frozen blocks are never touched again; the tail is replaced."""

    def __init__(self, parent: QWidget | None = None, *, style: str = "prose") -> None:
        super().__init__(parent, style=style)
        self._frozen_end = 0
        self._empty = True
        self._has_tail = False
        self._changing = False
        self._chunks: list[Chunk] = []
        self._frozen_spans: list[Span] = []

    def reset(self) -> None:
        self.commit()
        super().reset()
        self._frozen_end, self._empty, self._has_tail = 0, True, False
        self._chunks, self._frozen_spans = [], []

    def show_tail(self, blocks: Sequence[Block]) -> None:
        """Put `blocks` after what is frozen. On screen with the next `commit`."""
        if blocks or self._has_tail:
            self._append(blocks)
            self._has_tail = bool(blocks)

    def freeze(self, blocks: Sequence[Block]) -> None:
        """Write `blocks` for good. On screen with the next `commit`."""
        self._empty = self._append(blocks)
        self._has_tail = False
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        self._frozen_end = cursor.position()

    def commit(self) -> None:
        """Lay out what changed, once for all of it."""
        if self._changing:
            self._changing = False
            QTextCursor(self.document()).endEditBlock()

    def _append(self, blocks: Sequence[Block]) -> bool:
        cursor = self._drop_tail()
        self.quotes = self.quotes or any(block.quotes for block in blocks)
        return self.writer().write(cursor, [block.tokens for block in blocks], first=self._empty)

    @property
    def frozen_end(self) -> int:
        """Where in the document the tail begins."""
        return self._frozen_end

    def mark(self, marking: Marking, chunk: Chunk, *, frozen: bool) -> None:
        """Mark what was written last. chunk: where that begins, and what it was written from."""
        if frozen:
            self._chunks.append(chunk)
            self._frozen_spans += self._spans_of(marking, chunk)
            self.show_spans(marking, self._frozen_spans)
        elif len(self._frozen_spans) < LIVE_SPANS:
            self.show_spans(marking, [*self._frozen_spans, *self._spans_of(marking, chunk)])

    def mark_again(self, marking: Marking) -> None:
        """Rounds have come since the text was frozen."""
        self._frozen_spans = [span for chunk in self._chunks for span in self._spans_of(marking, chunk)]
        self.show_spans(marking, self._frozen_spans)

    def _spans_of(self, marking: Marking, chunk: Chunk) -> list[Span]:
        cursor = QTextCursor(self.document())
        cursor.setPosition(chunk.start)
        if chunk.end is None:
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        else:
            cursor.setPosition(chunk.end, QTextCursor.MoveMode.KeepAnchor)
        return list(marking.spans(cursor.selectedText(), chunk.start, chunk.source, chunk.offset))

    def show_plain(self, text: str) -> None:
        self.writer().write_plain(self._drop_tail(), text)
        self.commit()

    def _drop_tail(self) -> QTextCursor:
        cursor = QTextCursor(self.document())
        if not self._changing:
            self._changing = True
            cursor.beginEditBlock()
        cursor.setPosition(self._frozen_end)
        shape = cursor.blockFormat()
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        if cursor.hasSelection():
            cursor.removeSelectedText()
        if self._empty:
            cursor.setBlockFormat(QTextBlockFormat())
        else:
            # Qt may give the joined paragraph the shape of the removed one.
            cursor.setBlockFormat(shape)
        return cursor


class Table(TextPart):
    """One table as a grid. While it grows, only the rows that changed are written."""

    def __init__(self, parent: QWidget | None = None, *, style: str = "prose") -> None:
        super().__init__(parent, style=style)
        self.setAccessibleName("Table")
        self._grid: QTextTable | None = None
        # Of each row, its cells' (alignment, source).
        self._rows: list[list[tuple[str, str]]] = []

    def reset(self) -> None:
        super().reset()
        self._grid, self._rows = None, []

    def mark(self, marking: Marking, source: str, offset: int) -> None:
        # As it is in the document: `toPlainText` may leave out what positions count.
        self.show_spans(marking, marking.spans(self.document().toRawText(), 0, source, offset))

    def show_table(self, block: Block, kept: int = 0) -> None:
        """kept: rows under the head that are shown already and that `block` leaves out."""
        rows = table_rows(block.tokens)
        columns = max(1, max((len(row) for row in rows), default=0))
        count = max(1, len(rows) + kept)
        grid = self._grid
        if grid is None or grid.columns() != columns:
            self.document().clear()
            grid, self._rows = None, []
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        if grid is None:
            grid = self._begin(cursor, count, columns)
        elif grid.rows() < count:
            grid.appendRows(count - grid.rows())
        elif grid.rows() > count:
            grid.removeRows(count, grid.rows() - count)
        del self._rows[count:]
        self._rows += [[] for _ in range(count - len(self._rows))]
        for number, row in enumerate(rows):
            place = number + kept if number else 0
            source = [(str(opening.attrGet("style") or ""), inline.content) for opening, inline in row]
            if source != self._rows[place]:
                self._rows[place] = source
                self._write(grid, place, row)
        cursor.endEditBlock()

    def _begin(self, cursor: QTextCursor, rows: int, columns: int) -> QTextTable:
        _shrink(cursor)
        self._grid = cursor.insertTable(rows, columns, _grid(current().line))
        cursor.movePosition(QTextCursor.MoveOperation.End)
        _shrink(cursor)
        return self._grid

    def _write(self, grid: QTextTable, place: int, row: Sequence[tuple[Token, Token]]) -> None:
        writer = self.writer()
        for column, (opening, inline) in enumerate(row):
            cell = grid.cellAt(place, column)
            inside = cell.firstCursorPosition()
            inside.setPosition(cell.lastPosition(), QTextCursor.MoveMode.KeepAnchor)
            inside.removeSelectedText()
            shape = QTextBlockFormat()
            shape.setAlignment(_alignment(str(opening.attrGet("style") or "")))
            inside.setBlockFormat(shape)
            base = QTextCharFormat(writer.text)
            head = QTextCharFormat()
            if opening.type == "th_open":
                base.setFontWeight(QFont.Weight.DemiBold)
                head = cell.format()
                head.setBackground(QColor(current().bg_sunken))
            # A row that is added takes over the look of the one above it.
            cell.setFormat(head)
            writer.inline(inside, inline, base)


def _grid(line: str) -> QTextTableFormat:
    shape = QTextTableFormat()
    shape.setBorder(1)
    shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    shape.setBorderBrush(QColor(line))
    shape.setBorderCollapse(True)
    shape.setCellPadding(6)
    shape.setCellSpacing(0)
    shape.setTopMargin(GAP_12)
    shape.setWidth(QTextLength())
    return shape


def _shrink(cursor: QTextCursor) -> None:
    """Qt keeps an empty paragraph before and after a table; make it one pixel tall."""
    block = QTextBlockFormat()
    block.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    cursor.setBlockFormat(block)
    tiny = QTextCharFormat()
    font = QFont()
    font.setPixelSize(1)
    tiny.setFont(font)
    cursor.setBlockCharFormat(tiny)


def _alignment(style: str) -> Qt.AlignmentFlag:
    if "right" in style:
        return Qt.AlignmentFlag.AlignRight
    return Qt.AlignmentFlag.AlignHCenter if "center" in style else Qt.AlignmentFlag.AlignLeft
