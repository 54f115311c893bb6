"""The row of buttons and figures under a message."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from app.chat.item import Item
from app.theme.icons import icon
from app.theme.manager import current, use_class
from app.theme.tokens import GAP_8


class Actions(QWidget):
    """The row under a message. `pressed` carries the key of a button."""

    pressed = Signal(str)

    def __init__(self, item: Item, parent: QWidget) -> None:
        super().__init__(parent)
        self._item = item
        self._near = False
        self._buttons: dict[str, QToolButton] = {}
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        names = {"copy": "Copy message"}
        if item.role == "assistant":
            names["again"] = "Regenerate"
            names["check"] = "Verify: replay by classic decode and compare"
        else:
            names["edit"] = "Edit and send again"
        names["delete"] = "Delete message"
        for key, name in names.items():
            row.addWidget(self._button(key, name))
        self._count: QLabel | None = None
        self._after_buttons = row.count()
        self._caption = _Elided()
        use_class(self._caption, "caption")
        if item.role == "assistant":
            row.addSpacing(GAP_8)
            row.addWidget(self._caption, 1)

    def _show_versions(self) -> None:
        """The switch between versions. Made when there are several: most messages have one, and widgets are slow."""
        item = self._item
        several = item.branches > 1
        if self._count is None and several:
            self._count = QLabel()
            use_class(self._count, "caption")
            left, right = self._button("left", "Previous version"), self._button("right", "Next version")
            for place, widget in enumerate((left, self._count, right)):
                self._row.insertWidget(self._after_buttons + place, widget)
        if self._count is None:
            return
        self._count.setText(f"{item.branch}/{item.branches}")
        self._buttons["left"].setEnabled(item.branch > 1)
        self._buttons["right"].setEnabled(item.branch < item.branches)
        for widget in (self._buttons["left"], self._count, self._buttons["right"]):
            widget.setVisible(several)

    def _button(self, key: str, name: str) -> QToolButton:
        button = QToolButton()
        use_class(button, "quiet")
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setObjectName(key)
        button.clicked.connect(self._on_clicked)
        button.installEventFilter(self)
        self._buttons[key] = button
        return button

    def show_item(self, item: Item) -> None:
        """Be the row of another message of the same role."""
        self._item = item
        self._near = False

    def refresh(self) -> None:
        item = self._item
        self.setVisible(not item.streaming)
        if item.streaming:
            return
        self._show_versions()
        colour = self._colour()
        for key, button in self._buttons.items():
            # The way to other versions is not hidden: its number is not, either.
            button.setIcon(icon(key, current().text_soft if key in ("left", "right") else colour))
        if "check" in self._buttons:
            self._buttons["check"].setVisible(item.can_check)
        self._caption.show_text(item.caption)
        self._caption.setToolTip(item.caption_tip)

    def _colour(self) -> str:
        """A user's row shows only when it is pointed at or reached by keyboard: the text is the product."""
        quiet = self._item.role == "user" and not self._near and self.focusWidget() is None
        return "none" if quiet else current().text_soft

    def set_near(self, near: bool) -> None:
        """near: the pointer is over the message."""
        if near != self._near:
            self._near = near
            self.refresh()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.refresh()
        return super().eventFilter(watched, event)

    @Slot()
    def _on_clicked(self) -> None:
        self.pressed.emit(self.sender().objectName())


class _Elided(QLabel):
    """One line that ends in "…" where there is no room for all of it."""

    def __init__(self) -> None:
        super().__init__()
        self._whole = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def show_text(self, text: str) -> None:
        self._whole = text
        self.setAccessibleName(text)
        self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        self.setText(self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, self.width()))
