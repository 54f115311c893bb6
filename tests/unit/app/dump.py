"""What a document or a body shows, as plain values that can be compared."""

from __future__ import annotations

from typing import Any

from PySide6.QtGui import QTextDocument

from app.chat.markdown.body import Body
from app.chat.markdown.code import CodeBlock
from app.chat.markdown.prose import TextPart


def document(doc: QTextDocument) -> list[Any]:
    """Per paragraph: its shape, and its text piece by piece with the format of each."""
    result: list[Any] = []
    block = doc.begin()
    while block.isValid():
        shape = block.blockFormat()
        pieces: list[Any] = []
        iterator = block.begin()
        while not iterator.atEnd():
            fragment = iterator.fragment()
            style = fragment.charFormat()
            pieces.append(
                (
                    fragment.text(),
                    style.font().key(),
                    style.foreground().color().name(),
                    style.background().color().name(),
                    style.anchorHref(),
                    style.fontStrikeOut(),
                )
            )
            iterator += 1
        result.append(
            (
                shape.topMargin(),
                shape.leftMargin(),
                shape.rightMargin(),
                shape.textIndent(),
                shape.headingLevel(),
                shape.lineHeight(),
                shape.background().color().name(),
                shape.intProperty(shape.Property.BlockQuoteLevel),
                shape.hasProperty(shape.Property.BlockTrailingHorizontalRulerWidth),
                pieces,
            )
        )
        block = block.next()
    return result


def body(shown: Body) -> list[Any]:
    """Every part of a body that shows something, in order."""
    result: list[Any] = []
    for part in shown.parts:
        if isinstance(part, CodeBlock):
            result.append(("code", part.language, part.source))
        else:
            assert isinstance(part, TextPart)
            result.append((type(part).__name__, document(part.document())))
    return result


def text(shown: Body) -> str:
    """All words of a body."""
    return "\n".join(
        part.source if isinstance(part, CodeBlock) else part.document().toPlainText() for part in shown.parts
    )
