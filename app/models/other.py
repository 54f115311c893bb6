"""A model that no list names: its folder or repo, and its head's."""

from __future__ import annotations

from urllib.parse import urlsplit

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QPushButton, QWidget

from app.theme.manager import use_class


class OtherPlace(QWidget):
    """`wanted` carries place and head as they were typed, or as a page's address names them."""

    wanted = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.place = QLineEdit()
        self.place.setPlaceholderText("Another: folder, or owner/model")
        self.place.setAccessibleName("Another model: folder or repo")
        self.place.returnPressed.connect(self._on_add)
        self.head = QLineEdit()
        self.head.setPlaceholderText("Its MTP head, if apart")
        self.head.setAccessibleName("MTP head of that model: folder or repo")
        folder = QPushButton("Folder…")
        folder.clicked.connect(self._on_folder)
        self.add = QPushButton("Load or download")
        self.add.clicked.connect(self._on_add)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.place, 3)
        row.addWidget(self.head, 2)
        for button in (folder, self.add):
            use_class(button, "plain")
            button.setAutoDefault(False)
            row.addWidget(button)

    def clear(self) -> None:
        self.place.clear()
        self.head.clear()

    @Slot()
    def _on_add(self) -> None:
        if place := named(self.place.text()):
            self.wanted.emit(place, named(self.head.text()))

    @Slot()
    def _on_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Model folder", self.place.text())
        if folder:
            self.place.setText(folder)


def named(text: str) -> str:
    """What was typed; of the address of a repo's page, the repo: owner/name."""
    text = text.strip()
    try:
        parts = urlsplit(text)
    except ValueError:
        return text  # brackets that do not match
    path = [part for part in parts.path.split("/") if part]
    return "/".join(path[:2]) if parts.scheme in ("http", "https") and len(path) > 1 else text
