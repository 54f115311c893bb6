"""Parsed Markdown into a QTextDocument.

Qt's own importer is not used: it hides or eats what looks like HTML, and it cannot append to a document without
changing what is already there. Nothing here can fetch anything: an image becomes its alternative text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from unicodedata import bidirectional

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextLength,
    QTextOption,
)

from app.theme.manager import code_font
from app.theme.tokens import CODE, GAP_8, GAP_12, GAP_16, HEADINGS, TRANSCRIPT, Roles

INDENT = 24
MOST_INDENT = 240
"""Deeper text stays where it can be read, in a narrow window too."""
TASK_LENGTH = 4
_FIXED = QTextBlockFormat.LineHeightTypes.MinimumHeight.value


class Writer:
    """Writes blocks at a cursor. One per document and theme."""

    def __init__(self, roles: Roles, font: QFont, *, soft: bool = False) -> None:
        self.text = QTextCharFormat()
        self.text.setFont(font)
        self.text.setForeground(QColor(roles.text_soft if soft else roles.text))
        self._code = QTextCharFormat(self.text)
        self._code.setFont(code_font())
        self._code.setBackground(QColor(roles.bg_raised))
        self._block_code = QTextCharFormat(self.text)
        self._block_code.setFont(code_font())
        self.roles = roles
        self._size = font.pixelSize()
        self._line = TRANSCRIPT[1]
        self._indent = 0
        self._quote = 0
        self._first = True
        self._marker = ""
        self._skip = 0

    def write(self, cursor: QTextCursor, blocks: Iterable[Sequence[Token]], *, first: bool) -> bool:
        """Append blocks at the cursor. first: the document is empty, so no new paragraph is needed before.

        Returns whether the document is still empty (an empty quote writes nothing).
        """
        self._first = first
        for tokens in blocks:
            self._tokens(cursor, tokens)
        return self._first

    def write_plain(self, cursor: QTextCursor, text: str) -> None:
        """Text exactly as it is: what the user typed is not Markdown."""
        self._first = True
        for line in text.split("\n"):
            self._paragraph(cursor, above=0, text=line)
            cursor.insertText(line, self.text)

    # blocks

    def _tokens(self, cursor: QTextCursor, tokens: Sequence[Token]) -> None:
        index = 0
        orders: list[int | None] = []
        while index < len(tokens):
            token = tokens[index]
            kind = token.type
            if kind == "heading_open":
                level = int(token.tag[1])
                above = GAP_16 + 4 if level < 3 else GAP_16
                self._paragraph(cursor, above=above, heading=level, text=tokens[index + 1].content)
                self.inline(cursor, tokens[index + 1], self._heading(level))
                index += 2
            elif kind == "paragraph_open":
                index += 1
                self._paragraph(cursor, above=4 if token.hidden else GAP_12, text=tokens[index].content)
                self.inline(cursor, tokens[index], self.text)
            elif kind in ("bullet_list_open", "ordered_list_open"):
                orders.append(int(token.attrGet("start") or 1) if kind == "ordered_list_open" else None)
                self._indent += 1
            elif kind in ("bullet_list_close", "ordered_list_close"):
                orders.pop()
                self._indent -= 1
            elif kind == "list_item_open":
                number = orders[-1]
                box = _box(tokens[index + 2].content) if tokens[index + 1].type == "paragraph_open" else ""
                # The box of a task takes the place of the bullet.
                self._marker = box or "•" if number is None else f"{number}{token.markup or '.'}"
                self._skip = TASK_LENGTH if box and number is None else 0
                if number is not None:
                    orders[-1] = number + 1
                if tokens[index + 1].type == "list_item_close":
                    self._paragraph(cursor, above=4)
            elif kind == "blockquote_open":
                self._quote += 1
            elif kind == "blockquote_close":
                self._quote -= 1
            elif kind in ("fence", "code_block"):
                self._code_lines(cursor, token.content)
            elif kind == "hr":
                self._rule(cursor)
            elif kind == "table_open":
                end = next(i for i in range(index, len(tokens)) if tokens[i].type == "table_close")
                self._table_lines(cursor, tokens[index:end])
                index = end
            index += 1

    def _paragraph(
        self, cursor: QTextCursor, *, above: int, heading: int = 0, code: bool = False, text: str = ""
    ) -> None:
        """Begin a paragraph. text: what it will say, to know its direction."""
        shape = QTextBlockFormat()
        shape.setTopMargin(0 if self._first else above)
        height = CODE[1] if code else (HEADINGS[heading - 1] + 8 if heading else self._line)
        shape.setLineHeight(height, _FIXED)
        margin = min(MOST_INDENT, self._indent * INDENT + self._quote * GAP_16)
        if is_rtl(text) and not code:
            # Qt finds the direction by itself, but an indent has a side.
            shape.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
            shape.setRightMargin(margin)
        else:
            shape.setLeftMargin(margin)
        if heading:
            shape.setHeadingLevel(heading)
        if self._quote:
            shape.setProperty(QTextBlockFormat.Property.BlockQuoteLevel, self._quote)
        if code:
            shape.setBackground(QColor(self.roles.bg_sunken))
            shape.setNonBreakableLines(False)
        if self._marker:
            # The marker hangs in the indent; a tab brings the text to the margin.
            shape.setTextIndent(-INDENT + 4)
            shape.setTabPositions([QTextOption.Tab(INDENT - 4, QTextOption.TabType.LeftTab)])
        if self._first:
            cursor.setBlockFormat(shape)
            cursor.setBlockCharFormat(self.text)
            self._first = False
        else:
            cursor.insertBlock(shape, self.text)
        if self._marker:
            soft = QTextCharFormat(self.text)
            soft.setForeground(QColor(self.roles.text_soft))
            cursor.insertText(self._marker + ("\u00a0\u00a0" if is_rtl(text) else "\t"), soft)
            self._marker = ""

    def _code_lines(self, cursor: QTextCursor, content: str) -> None:
        for number, line in enumerate(content.removesuffix("\n").split("\n")):
            self._paragraph(cursor, above=GAP_8 if number == 0 else 0, code=True)
            cursor.insertText(line, self._block_code)

    def _rule(self, cursor: QTextCursor) -> None:
        self._paragraph(cursor, above=GAP_12)
        shape = cursor.blockFormat()
        shape.setProperty(
            QTextBlockFormat.Property.BlockTrailingHorizontalRulerWidth,
            QTextLength(QTextLength.Type.PercentageLength, 100),
        )
        shape.setProperty(QTextBlockFormat.Property.BackgroundBrush, QBrush(QColor(self.roles.line)))
        cursor.setBlockFormat(shape)

    def _table_lines(self, cursor: QTextCursor, tokens: Sequence[Token]) -> None:
        """A table inside a list or a quote: one line a row. Only a top-level table gets a grid of its own."""
        above = GAP_8
        for row in table_rows(tokens):
            self._paragraph(cursor, above=above)
            above = 0
            for column, (_, inline) in enumerate(row):
                if column:
                    cursor.insertText("  |  ", self.text)
                self.inline(cursor, inline, self.text)

    # inline

    def _heading(self, level: int) -> QTextCharFormat:
        shape = QTextCharFormat(self.text)
        font = shape.font()
        font.setPixelSize(HEADINGS[level - 1])
        font.setWeight(QFont.Weight.DemiBold)
        shape.setFont(font)
        return shape

    def inline(self, cursor: QTextCursor, token: Token, base: QTextCharFormat) -> None:
        stack = [base]
        for number, child in enumerate(token.children or []):
            kind = child.type
            if kind == "text":
                cursor.insertText(self._task(child.content) if number == 0 else child.content, stack[-1])
            elif kind in ("softbreak", "hardbreak"):
                # A chat is not typeset: a new line in the reply is a new line on screen.
                cursor.insertText("\u2028", stack[-1])
            elif kind == "code_inline":
                shape = QTextCharFormat(stack[-1])
                shape.setFont(self._code.font())
                shape.setBackground(self._code.background())
                cursor.insertText(child.content, shape)
            elif kind == "math_inline":
                shape = QTextCharFormat(stack[-1])
                shape.setFont(self._code.font())
                cursor.insertText(child.content.replace("\n", "\u2028"), shape)
            elif kind == "image":
                cursor.insertText(f"[image: {child.content}]" if child.content else "[image]", stack[-1])
            elif kind in ("strong_open", "em_open", "s_open", "link_open"):
                stack.append(self._marked(stack[-1], child))
            elif kind in ("strong_close", "em_close", "s_close", "link_close"):
                stack.pop()
            elif child.content:
                cursor.insertText(child.content, stack[-1])

    def _task(self, text: str) -> str:
        """A GitHub task marker as a box, or without it where the box hangs in the indent."""
        skip, self._skip = self._skip, 0
        if skip:
            return text[skip:]
        box = _box(text)
        return f"{box} {text[TASK_LENGTH:]}" if box else text

    def _marked(self, base: QTextCharFormat, token: Token) -> QTextCharFormat:
        shape = QTextCharFormat(base)
        if token.type == "strong_open":
            shape.setFontWeight(QFont.Weight.DemiBold)
        elif token.type == "em_open":
            shape.setFontItalic(True)
        elif token.type == "s_open":
            shape.setFontStrikeOut(True)
        else:
            address = str(token.attrGet("href") or "")
            shape.setAnchor(True)
            shape.setAnchorHref(address)
            shape.setToolTip(address)
            shape.setForeground(QColor(self.roles.accent))
            shape.setFontUnderline(True)
        return shape


def is_rtl(text: str) -> bool:
    """Whether the first letter with a direction is written from right to left."""
    for letter in text:
        kind = bidirectional(letter)
        if kind in ("L", "R", "AL"):
            return kind != "L"
    return False


def _box(text: str) -> str:
    """The box of a GitHub task, "" for another text."""
    return {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}.get(text[:TASK_LENGTH], "")


def table_rows(tokens: Sequence[Token]) -> list[list[tuple[Token, Token]]]:
    """Rows of (cell token, its inline token)."""
    rows: list[list[tuple[Token, Token]]] = []
    for index, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append((token, tokens[index + 1]))
    return rows
