"""An error in words, where it happened: what, what was kept, what to do, and a detail that folds out."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.theme.manager import use_class
from engine import KnownError

MOST_ACTIONS = 3


class ErrorCard(QFrame):
    """Shows one error. `acted` carries the key of the action that was pressed."""

    acted = Signal(str)
    resized = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        use_class(self, "error")
        self._actions: list[str] = []
        self._what = _label()
        self._what.setStyleSheet("font-weight: 600;")
        self._rest = _label()
        self._detail = _label()
        use_class(self._detail, "caption")
        self._buttons = [QPushButton() for _ in range(MOST_ACTIONS)]
        for button in self._buttons:
            use_class(button, "plain")
            button.clicked.connect(self._act)
        self._fold = QPushButton("Details")
        use_class(self._fold, "quiet")
        self._fold.clicked.connect(self._toggle)
        self._copy = QPushButton("Copy details")
        use_class(self._copy, "quiet")
        self._copy.clicked.connect(self.copy)
        row = QHBoxLayout()
        for button in self._buttons:
            row.addWidget(button)
        row.addWidget(self._fold)
        row.addWidget(self._copy)
        row.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 12, 14, 10)
        layout.setSpacing(6)
        for widget in (self._what, self._rest, self._detail):
            layout.addWidget(widget)
        layout.addLayout(row)

    def show_error(self, error: dict[str, str], *actions: tuple[str, str]) -> None:
        """error: keys what, kept, todo, detail. actions: (key, label) of each button, MOST_ACTIONS at most."""
        self._what.setText(error.get("what", ""))
        self._rest.setText(" ".join(part for part in (error.get("kept", ""), error.get("todo", "")) if part))
        self._detail.setText(error.get("detail", ""))
        self._detail.setVisible(False)
        has_detail = bool(error.get("detail"))
        self._fold.setVisible(has_detail)
        self._fold.setText("Details")
        self._copy.setVisible(False)
        self._actions = [key for key, _ in actions]
        for number, button in enumerate(self._buttons):
            button.setVisible(number < len(actions))
            button.setText(actions[number][1] if number < len(actions) else "")
        self.setAccessibleName(self._what.text())

    def buttons(self) -> list[QPushButton]:
        """Those of the actions that are offered."""
        return self._buttons[: len(self._actions)]

    @property
    def text(self) -> str:
        """What is on the card, details included."""
        return "\n".join(part for part in (self._what.text(), self._rest.text(), self._detail.text()) if part)

    def height_for(self, width: int) -> int:
        layout = self.layout()
        assert layout is not None  # set in __init__
        layout.activate()
        return max(layout.totalHeightForWidth(width), layout.totalMinimumSize().height())

    @Slot()
    def _act(self) -> None:
        for key, button in zip(self._actions, self.buttons(), strict=True):
            if button is self.sender():
                self.acted.emit(key)
                return

    @Slot()
    def _toggle(self) -> None:
        shown = self._detail.isHidden()
        self._detail.setVisible(shown)
        self._copy.setVisible(shown)
        self._fold.setText("Hide details" if shown else "Details")
        self.resized.emit()

    @Slot()
    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text)


def as_dict(error: KnownError) -> dict[str, str]:
    """The four parts of an error, as they are stored with a reply."""
    return {"what": error.what, "kept": error.kept, "todo": error.todo, "detail": error.detail}


def _label() -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    # An error may quote a file name; it must not be read as markup.
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
