"""Attachments as chips: in the composer with a cross each, under a sent message without."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QIcon, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app import figures
from app.chat.box import has_room_for
from app.store import Attachment
from app.theme.icons import icon
from app.theme.manager import code_font, current, use_class
from app.theme.tokens import GAP_8

CHIP_HEIGHT = 28
MOST_HEIGHT = 3 * (CHIP_HEIGHT + GAP_8) + CHIP_HEIGHT // 2
"""Of chips in the composer, in pixels: three rows and a half, so that one sees that there are more."""
MOST_WIDTH = 280
SHOWN, SHOWN_OF_LINE = 200_000, 6_000
"""Characters of an attachment and of a line that are shown; more would freeze a text box for seconds."""


class Chip(QFrame):
    """One attachment. Pressing it shows what is in it."""

    pressed = Signal(object)
    removed = Signal(object)

    def __init__(self, attachment: Attachment, *, removable: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        use_class(self, "chip")
        self.attachment = attachment
        self.setFixedHeight(CHIP_HEIGHT)
        self._name = QPushButton()
        use_class(self._name, "quiet")
        self._name.setAccessibleName(f"Attachment {attachment.name}, {size_text(attachment)}. Show it")
        self._name.setToolTip(f"{attachment.name}\n{size_text(attachment)}")
        self._name.clicked.connect(self._on_pressed)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 2 if removable else 4, 0)
        row.setSpacing(0)
        row.addWidget(self._name)
        self._remove: QToolButton | None = None
        if removable:
            self._remove = QToolButton()
            use_class(self._remove, "quiet")
            self._remove.setAccessibleName(f"Remove {attachment.name}")
            self._remove.setToolTip("Remove")
            self._remove.clicked.connect(self._on_removed)
            row.addWidget(self._remove)
        self.refresh_theme()

    def refresh_theme(self) -> None:
        roles = current()
        self._name.setIcon(icon("file", roles.text_soft))
        if self._remove is not None:
            self._remove.setIcon(icon("close", roles.text_soft))

    def fit(self, most: int) -> int:
        """Show as much of the name as fits. Returns the width, in pixels."""
        size = f"  {size_text(self.attachment)}"
        metrics = self._name.fontMetrics()
        around = 38 + (26 if self._remove is not None else 0)
        room = min(most, MOST_WIDTH) - around - metrics.horizontalAdvance(size)
        name = metrics.elidedText(self.attachment.name, Qt.TextElideMode.ElideMiddle, max(40, room))
        self._name.setText(f"{name}{size}".replace("&", "&&"))
        return around + metrics.horizontalAdvance(f"{name}{size}")

    @Slot()
    def _on_pressed(self) -> None:
        self.pressed.emit(self.attachment)

    @Slot()
    def _on_removed(self) -> None:
        self.removed.emit(self.attachment)


class Chips(QWidget):
    """Chips in rows. `height_for` places them."""

    pressed = Signal(object)
    removed = Signal(object)

    def __init__(self, *, removable: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._removable = removable
        self._chips: list[Chip] = []
        self.setVisible(False)

    def show_attachments(self, attachments: Sequence[Attachment]) -> None:
        for chip in self._chips:
            chip.hide()
            chip.deleteLater()
        self._chips = [Chip(attachment, removable=self._removable, parent=self) for attachment in attachments]
        for chip in self._chips:
            chip.pressed.connect(self.pressed)
            chip.removed.connect(self.removed)
            chip.show()
        self.setVisible(bool(self._chips))
        self.updateGeometry()

    def refresh_theme(self) -> None:
        for chip in self._chips:
            chip.refresh_theme()

    def height_for(self, width: int, *, right: bool = False) -> int:
        """Place the chips in rows of at most this width. right: rows end at the right edge."""
        rows: list[list[tuple[Chip, int]]] = [[]]
        used = 0
        for chip in self._chips:
            wide = min(width, chip.fit(width))
            if rows[-1] and used + GAP_8 + wide > width:
                rows.append([])
                used = 0
            used += wide + (GAP_8 if rows[-1] else 0)
            rows[-1].append((chip, wide))
        for number, row in enumerate(rows):
            x = width - sum(wide for _, wide in row) - GAP_8 * (len(row) - 1) if right else 0
            for chip, wide in row:
                chip.setGeometry(x, number * (CHIP_HEIGHT + GAP_8), wide, CHIP_HEIGHT)
                x += wide + GAP_8
        return len(rows) * (CHIP_HEIGHT + GAP_8) - GAP_8 if self._chips else 0

    def sizeHint(self) -> QSize:
        return QSize(100, self.height_for(max(100, self.width())))


class ChipArea(QScrollArea):
    """Chips that never crowd out what is around them: after some rows they scroll."""

    def __init__(self, chips: Chips) -> None:
        super().__init__()
        self._chips = chips
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setWidget(chips)
        for widget in (self.viewport(), chips):
            widget.setAutoFillBackground(False)
        self.fit()

    def fit(self) -> None:
        """After the chips or the width changed."""
        height = self._chips.height_for(max(100, self.viewport().width()))
        self._chips.setFixedHeight(height)
        self.setFixedHeight(min(height, MOST_HEIGHT))
        self.setVisible(height > 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()


class AttachmentDialog(QDialog):
    """What is in an attachment. `to_text` asks for it as plain text of the message."""

    to_text = Signal(object)

    def __init__(self, attachment: Attachment, *, movable: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._attachment = attachment
        self.setWindowTitle(attachment.name)
        self.resize(640, 480)
        about = QLabel(size_text(attachment, lines=True))
        use_class(about, "caption")
        text = QPlainTextEdit()
        text.setReadOnly(True)
        text.setTabChangesFocus(True)
        text.setFont(code_font())
        text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        text.setAccessibleName(f"Text of {attachment.name}")
        text.setPlainText(preview(attachment.text))
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        box.rejected.connect(self.reject)
        box.button(QDialogButtonBox.StandardButton.Close).setIcon(QIcon())
        if movable:
            move = box.addButton("Put into the message", QDialogButtonBox.ButtonRole.ActionRole)
            move.clicked.connect(self._on_move)
            if not has_room_for(attachment.text):
                move.setEnabled(False)
                move.setToolTip("Too long for the text box")
        layout = QVBoxLayout(self)
        layout.addWidget(about)
        layout.addWidget(text, 1)
        layout.addWidget(box)

    @Slot()
    def _on_move(self) -> None:
        self.to_text.emit(self._attachment)
        self.accept()


def preview(text: str) -> str:
    """As much of a text as a text box shows without waiting."""
    shown = "\n".join(
        line if len(line) <= SHOWN_OF_LINE else f"{line[:SHOWN_OF_LINE]} … (the line goes on)"
        for line in text[:SHOWN].split("\n")
    )
    return shown if len(text) <= SHOWN else f"{shown}\n… only the beginning is shown here"


def size_text(attachment: Attachment, *, lines: bool = False) -> str:
    """How long it is, in words."""
    count = len(attachment.text)
    characters = f"{count / 1000:.1f} k characters" if count >= 1000 else figures.count(count, "character")
    if not lines:
        return characters
    return f"{characters}, {figures.count(attachment.text.count(chr(10)) + 1, 'line')}"
