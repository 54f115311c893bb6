"""Text out of Qt's editors, as it was put in."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit


def exact_text(editor: QPlainTextEdit) -> str:
    """The text with its no-break spaces: `toPlainText` turns them into spaces, and code may depend on them."""
    return editor.document().toRawText().replace("\u2029", "\n").replace("\u2028", "\n")
