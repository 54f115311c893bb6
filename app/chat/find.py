"""Find in the open chat: goes from message to message that has the words, and has them marked."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from app.chat.item import Item
from app.store.search import count, words
from app.theme.icons import icon
from app.theme.manager import current, use_class


class FindBar(QFrame):
    """`found` carries the message to go to."""

    found = Signal(int)
    marked = Signal(list)
    """The words to mark in the text; none when there is nothing to find any more."""
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("header")
        self._items: list[Item] = []
        self._hits: list[int] = []
        self._at = -1
        self.line = QLineEdit()
        self.line.setObjectName("search")
        self.line.setPlaceholderText("Find in chat")
        self.line.setAccessibleName("Find in chat")
        self.line.textChanged.connect(self._search)
        self.line.returnPressed.connect(self.next)
        self.count = QLabel()
        use_class(self.count, "caption")
        self._buttons = {
            "left": self._button("Previous", self.previous),
            "right": self._button("Next", self.next),
            "close": self._button("Close", self.close_bar),
        }
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 16, 6)
        row.addWidget(self.line, 1)
        row.addWidget(self.count)
        for button in self._buttons.values():
            row.addWidget(button)
        self.hide()

    def open_for(self, items: list[Item]) -> None:
        self._open(items)
        self.line.setFocus()
        self.line.selectAll()
        self._search()

    def show_hit(self, items: list[Item], search: str, message: int) -> None:
        """Stand at a message that a search of all chats found. The focus stays where it is."""
        self._open(items)
        self.line.blockSignals(True)
        self.line.setText(search)
        self.line.blockSignals(False)
        self._look()
        # One that was found by an attachment, or is no longer there, is gone to all the same.
        self._at = self._hits.index(message) if message in self._hits else 0
        self._go(0)
        self.found.emit(message)

    def _open(self, items: list[Item]) -> None:
        self._items = items
        self.refresh_theme()
        self.show()

    def refresh_theme(self) -> None:
        for name, button in self._buttons.items():
            button.setIcon(icon(name, current().text_soft))

    def _look(self) -> None:
        """Messages with all words, or with any where none has all."""
        wanted = words(self.line.text())
        scores = [(count(item.content, wanted), item.id) for item in self._items]
        most = len(wanted) if any(score == len(wanted) for score, _ in scores) else 1
        self._hits = [number for score, number in scores if wanted and score >= most]
        self.marked.emit(wanted)

    @Slot()
    def _search(self) -> None:
        self._look()
        self._at = len(self._hits)
        self.previous()

    @Slot()
    def next(self) -> None:
        self._go(1)

    @Slot()
    def previous(self) -> None:
        self._go(-1)

    def _go(self, step: int) -> None:
        if not self._hits:
            self.count.setText("no message" if self.line.text() else "")
            return
        self._at = (self._at + step) % len(self._hits)
        self.count.setText(f"message {self._at + 1} of {len(self._hits)}")
        self.found.emit(self._hits[self._at])

    def leave(self) -> None:
        """Another chat is opened."""
        self.hide()
        self.marked.emit([])

    @Slot()
    def close_bar(self) -> None:
        self.leave()
        self.closed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_bar()
        else:
            super().keyPressEvent(event)

    def _button(self, name: str, slot: object) -> QToolButton:
        button = QToolButton()
        use_class(button, "quiet")
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.clicked.connect(slot)
        return button
