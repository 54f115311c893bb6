"""The window's frame: its parts side by side, how they fold, and where it was."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSettings, Qt, Slot
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.chat.composer import Composer
from app.chat.empty import EmptyChat
from app.chat.find import FindBar
from app.chat.sidebar import Sidebar
from app.chat.transcript import Transcript
from app.errorcard import ErrorCard
from app.header import Header
from app.panel.dock import PanelDock
from app.panel.live import Strip
from app.panel.panel import Panel
from app.services import Services
from app.theme import Theme
from app.theme.tokens import COLUMN_WIDTH, GAP_24, MIN_HEIGHT, MIN_WIDTH, PANEL_BREAK, SIDEBAR_BREAK
from app.toast import Toast


class Frame(QMainWindow):
    """Parts without behaviour. `MainWindow` connects them.

    want_sidebar, want_panel: what the user wants; a narrow window folds all the same.
    """

    def __init__(self, services: Services, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("window")
        self.setWindowTitle("Pacenote")
        self.setMinimumSize(MIN_WIDTH, MIN_HEIGHT)
        self.resize(1180, 760)
        self.services = services
        self.theme = theme
        self.want_sidebar = self.want_panel = True
        self.actions_by_key: dict[str, QAction] = {}
        self._build()
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()

    def _build(self) -> None:
        meter = self.services.meter
        self.sidebar = Sidebar()
        self.header = Header()
        self.find_bar = FindBar()
        self.transcript = Transcript()
        self.empty = EmptyChat()
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(self.transcript)
        self.banner = ErrorCard()
        self.banner.hide()
        self.strip = Strip(meter)
        self.panel = Panel(meter)
        self.composer = Composer()
        self.composer.setMaximumWidth(COLUMN_WIDTH)
        self.composer.set_send_with(self.services.settings.send_with)
        bottom = QHBoxLayout()
        bottom.setContentsMargins(GAP_24, 8, GAP_24, 16)
        bottom.addStretch(1)
        bottom.addWidget(self.composer, 1000)
        bottom.addStretch(1)
        banner = QHBoxLayout()
        banner.setContentsMargins(GAP_24, 8, GAP_24, 0)
        banner.addWidget(self.banner)
        self.column = QFrame()
        self.column.setObjectName("column")
        middle = QVBoxLayout(self.column)
        middle.setContentsMargins(0, 0, 0, 0)
        middle.setSpacing(0)
        middle.addWidget(self.header)
        middle.addWidget(self.find_bar)
        middle.addLayout(banner)
        middle.addWidget(self.stack, 1)
        middle.addWidget(self.strip)
        middle.addLayout(bottom)
        self.toast = Toast(self.stack)
        centre = QWidget()
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.sidebar)
        row.addWidget(self.column, 1)
        self.setCentralWidget(centre)
        self.dock = PanelDock(self.panel)
        self.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, self.dock)
        self.dock.topLevelChanged.connect(self.fold)

    @Slot()
    def toggle_sidebar(self) -> None:
        self.want_sidebar = self.sidebar.isHidden()
        self.fold(force_sidebar=self.want_sidebar)

    @Slot()
    def toggle_panel(self) -> None:
        self.want_panel = not self.want_panel
        self.fold()

    @Slot()
    def refresh_theme(self) -> None:
        for part in (self.sidebar, self.header, self.find_bar, self.transcript, self.composer):
            part.refresh_theme()
        for view in (self.panel, self.strip):
            view.set_info(self.services.loader.info)
            view.update()

    @Slot()
    def fold(self, *, force_sidebar: bool = False) -> None:
        roomy = self.width() >= SIDEBAR_BREAK
        # In a window of its own the panel takes no room of this one.
        wide = self.width() >= PANEL_BREAK or self.dock.isFloating()
        for part in (self.panel, self.dock):
            part.setVisible(self.want_panel and wide)
        self.strip.setVisible(self.want_panel and not wide)
        self.sidebar.setVisible(self.want_sidebar and (roomy or force_sidebar))
        self.header.show_folds(sidebar=not self.sidebar.isHidden(), panel=self.want_panel)
        for key, shown in (("sidebar", not self.sidebar.isHidden()), ("panel", self.want_panel)):
            if key in self.actions_by_key:
                self.actions_by_key[key].setChecked(shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        old, new = event.oldSize().width(), event.size().width()
        if any((old < limit) != (new < limit) for limit in (PANEL_BREAK, SIDEBAR_BREAK)):
            self.fold()

    def restore_geometry(self) -> None:
        saved = QSettings(str(self.services.paths.geometry), QSettings.Format.IniFormat)
        geometry = saved.value("geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        docks = saved.value("docks")
        if isinstance(docks, QByteArray):
            self.restoreState(docks)
        self.want_sidebar = saved.value("sidebar", "true") != "false"
        self.want_panel = saved.value("panel", "true") != "false"

    def save_geometry(self) -> None:
        saved = QSettings(str(self.services.paths.geometry), QSettings.Format.IniFormat)
        saved.setValue("geometry", self.saveGeometry())
        saved.setValue("docks", self.saveState())
        saved.setValue("sidebar", "true" if self.want_sidebar else "false")
        saved.setValue("panel", "true" if self.want_panel else "false")
        saved.sync()
