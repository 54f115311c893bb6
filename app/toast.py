"""A short message at the bottom of the window with one way back."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from app.theme.manager import use_class

SHOWN_MS = 8000


class Toast(QFrame):
    """`acted`: its button was pressed. Goes away by itself."""

    acted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        use_class(self, "toast")
        self.label = QLabel()
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.button = QPushButton("Undo")
        use_class(self.button, "plain")
        self.button.clicked.connect(self._act)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 6, 8, 6)
        row.setSpacing(12)
        row.addWidget(self.label)
        row.addWidget(self.button)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SHOWN_MS)
        self._timer.timeout.connect(self.hide)
        parent.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:  # of the parent, which shrinks when the composer grows
            self.place()
        return super().eventFilter(watched, event)

    def show_text(self, text: str, action: str = "Undo") -> None:
        """action: label of the button, "" for none."""
        self.label.setText(text if len(text) <= 70 else text[:69] + "…")
        self.button.setText(action)
        self.button.setVisible(bool(action))
        self.adjustSize()
        self.place()
        self.show()
        self.raise_()
        self._timer.start()

    def place(self) -> None:
        """Above the composer, in the middle of the parent."""
        parent = self.parentWidget()
        if parent is not None:
            self.move((parent.width() - self.width()) // 2, parent.height() - self.height() - 12)

    @Slot()
    def _act(self) -> None:
        self.hide()
        self.acted.emit()
