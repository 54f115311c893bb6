"""The line above the chat: its title, the model, and the two folding buttons."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QSizePolicy, QToolButton, QWidget

from app.theme.icons import icon
from app.theme.manager import current, use_class


class Header(QFrame):
    """`model_menu` and `more_menu` are filled by the window."""

    sidebar = Signal()
    panel = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("header")
        self.setFixedHeight(44)
        self._title = ""
        self._buttons: dict[str, QToolButton] = {}
        self.title = QLabel()
        use_class(self.title, "title")
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.model = QToolButton()
        use_class(self.model, "quiet")
        self.model.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.model.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.model.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        self.model_menu = QMenu(self.model)
        # The arrow stands right of the text; the menu does not take that over.
        self.model_menu.setLayoutDirection(QGuiApplication.layoutDirection())
        self.model.setMenu(self.model_menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(4)
        row.addWidget(self._button("sidebar", "Show or hide the sidebar"))
        row.addSpacing(4)
        row.addWidget(self.title, 1)
        row.addWidget(self.model)
        row.addWidget(self._button("panel", "Show or hide the pace panel"))
        more = self._button("more", "More")
        more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more_menu = QMenu(more)
        more.setMenu(self.more_menu)
        row.addWidget(more)
        self._buttons["sidebar"].clicked.connect(self.sidebar)
        self._buttons["panel"].clicked.connect(self.panel)
        for name in ("sidebar", "panel"):
            self._buttons[name].setCheckable(True)

    def show_title(self, text: str) -> None:
        self._title = text
        self._elide()

    def show_model(self, text: str) -> None:
        self.model.setText(text)
        self.model.setAccessibleName(f"Model: {text}")

    def show_folds(self, *, sidebar: bool, panel: bool) -> None:
        self._buttons["sidebar"].setChecked(sidebar)
        self._buttons["panel"].setChecked(panel)
        self.refresh_theme()

    def refresh_theme(self) -> None:
        roles = current()
        for name, button in self._buttons.items():
            button.setIcon(icon(name, roles.accent if button.isChecked() else roles.text_soft))
        self.model.setIcon(icon("down", roles.text_soft))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        metrics = QFontMetrics(self.title.font())
        self.title.setText(
            metrics.elidedText(self._title, Qt.TextElideMode.ElideRight, max(40, self.title.width() - 4))
        )
        self.title.setToolTip(self._title)

    def _button(self, name: str, tip: str) -> QToolButton:
        button = QToolButton()
        use_class(button, "quiet")
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        self._buttons[name] = button
        return button
