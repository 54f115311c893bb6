"""Where the panel stands: at the right or the left of the window, or in a window of its own."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QPushButton, QWidget

from app.panel.panel import Panel
from app.theme.manager import text_font, use_class
from app.theme.tokens import CAPTION


class PanelDock(QDockWidget):
    """Drag it by its title, or press the button. It cannot be closed here: the menu and the header fold it away."""

    def __init__(self, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__("Pace", parent)
        self.setObjectName("pace")  # by which the window remembers its place
        self.setAllowedAreas(Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea)
        movable, floatable = (
            QDockWidget.DockWidgetFeature.DockWidgetMovable,
            QDockWidget.DockWidgetFeature.DockWidgetFloatable,
        )
        self.setFeatures(movable | floatable)
        self.float = QPushButton("Undock")
        use_class(self.float, "quiet")
        self.float.setFont(text_font(CAPTION[0]))
        self.float.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.float.clicked.connect(self.toggle_floating)
        title = QLabel("Pace")
        use_class(title, "caption")
        title.setFont(text_font(CAPTION[0]))
        bar = QWidget()
        bar.setObjectName("strip")
        bar.setToolTip("Drag to the other side of the window, or out of it")
        row = QHBoxLayout(bar)
        row.setContentsMargins(16, 0, 8, 0)
        row.addWidget(title)
        row.addStretch()
        row.addWidget(self.float)
        self.setTitleBarWidget(bar)
        self.setWidget(panel)
        self.topLevelChanged.connect(self._on_floating)

    @Slot()
    def toggle_floating(self) -> None:
        self.setFloating(not self.isFloating())

    @Slot(bool)
    def _on_floating(self, floating: bool) -> None:
        self.float.setText("Dock" if floating else "Undock")
