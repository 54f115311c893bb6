"""The button that leads back to the end of a chat."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from app.theme.icons import icon
from app.theme.manager import current, use_class


class Pill(QPushButton):
    """Floats above the lower edge of its parent."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Jump to latest", parent)
        use_class(self, "pill")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.hide()

    def refresh_theme(self) -> None:
        self.setIcon(icon("down", current().text_soft))

    def show_when(self, away: bool) -> None:
        """away: the end is out of sight."""
        parent, size = self.parentWidget(), self.sizeHint()
        if away and parent is not None:
            self.setGeometry((parent.width() - size.width()) // 2, parent.height() - 44, size.width(), 30)
            self.raise_()
        self.setVisible(away)
