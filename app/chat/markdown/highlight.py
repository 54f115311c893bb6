"""Colours of code: Pygments finds the spans once, when a block is complete; Qt draws them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from app.theme.tokens import Roles

if TYPE_CHECKING:
    from pygments.token import _TokenType

USUAL = (
    "python",
    "javascript",
    "typescript",
    "c++",
    "bash",
    "json",
    "html",
    "css",
    "sql",
    "java",
    "go",
    "rust",
    "yaml",
)


def import_lexers() -> None:
    """Import Pygments and the usual languages: about 0.3 s, which belongs on another thread than the GUI's."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    for name in USUAL:
        with contextlib.suppress(ClassNotFound):
            get_lexer_by_name(name)


Span = tuple[int, int, QTextCharFormat]
"""(start, length in UTF-16 units, format) within a line."""


class Colours(QSyntaxHighlighter):
    """Applies ready-made spans; all the lexing is done once, by Pygments."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._spans: dict[int, list[Span]] = {}

    def clear(self) -> None:
        if self._spans:
            self._spans = {}
            self.rehighlight()

    def show_line(self, line: int, found: list[Span]) -> None:
        """Colour one line, from 0."""
        if found:
            self._spans[line] = found
            self.rehighlightBlock(self.document().findBlockByNumber(line))

    def highlightBlock(self, text: str) -> None:
        for start, length, shape in self._spans.get(self.currentBlock().blockNumber(), ()):
            self.setFormat(start, length, shape)


def spans(source: str, language: str, roles: Roles) -> Iterator[tuple[int, list[Span]]]:
    """Line by line, as they are asked for: (line from 0, its spans). Nothing when the language is not known."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if not language:
        return
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return
    found: list[Span] = []
    line = column = 0
    for kind, text in lexer.get_tokens(source):
        shape = _shape_of(kind, roles)
        for number, piece in enumerate(text.split("\n")):
            if number:
                yield line, found
                found, line, column = [], line + 1, 0
            # Qt counts UTF-16 units, Python counts code points.
            length = len(piece) if piece.isascii() else len(piece.encode("utf-16-le")) // 2
            if shape is not None and length:
                found.append((column, length, shape))
            column += length
    yield line, found


@lru_cache(maxsize=512)
def _shape_of(kind: _TokenType, roles: Roles) -> QTextCharFormat | None:
    """None: in the colour of text."""
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    table = (
        (Comment, roles.code_comment),
        (Keyword, roles.code_keyword),
        (Operator.Word, roles.code_keyword),
        (String, roles.code_string),
        (Number, roles.code_number),
        (Name.Function, roles.code_name),
        (Name.Class, roles.code_name),
        (Name.Builtin, roles.code_name),
        (Name.Tag, roles.code_name),
        (Name.Decorator, roles.code_number),
    )
    colour = next((colour for base, colour in table if kind in base), None)
    return None if colour is None else _shape(colour, italic=kind in Comment)


@lru_cache(maxsize=64)
def _shape(colour: str, *, italic: bool = False) -> QTextCharFormat:
    result = QTextCharFormat()
    result.setForeground(QColor(colour))
    if italic:
        result.setFontItalic(True)
    result.setFontWeight(QFont.Weight.Normal)
    return result
