"""What every view of the meter does: five looks at it a second, none when hidden. And the narrow view."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from app import figures
from app.panel.badge import Badge
from app.panel.meter import Meter
from app.theme.manager import figure_font
from app.theme.tokens import BODY
from engine import EngineInfo

INTERVAL_MS = 200


class Live(QFrame):
    """A view of the meter that refreshes by a timer only while it is visible."""

    def __init__(self, meter: Meter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.meter = meter
        self.info: EngineInfo | None = None
        self.context_used = 0
        self.draws = 0
        self._seen = -1
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self.tick)

    def set_info(self, info: EngineInfo | None) -> None:
        self.info = info
        self._seen = -1
        self.tick()

    def set_live(self, live: bool) -> None:
        """live: a reply is being written. When not, one last look and then rest."""
        self._live = live
        if live and self.isVisible():
            self._timer.start()
        elif not live:
            self._timer.stop()
            self.tick()

    _live = False

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._live:
            self._timer.start()
        self.tick()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    @Slot()
    def tick(self) -> None:
        if self.isVisible() and self.meter.version != self._seen:
            self._seen = self.meter.version
            self.draws += 1
            self.draw()

    def draw(self) -> None:
        raise NotImplementedError


class Strip(Live):
    """Three figures above the composer, for a narrow window."""

    def __init__(self, meter: Meter, parent: QWidget | None = None) -> None:
        super().__init__(meter, parent)
        self.setObjectName("strip")
        self.badge = Badge()
        self.speed = figure_label(BODY[0])
        self.acceptance = figure_label(BODY[0])
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 2, 16, 2)
        row.addWidget(self.badge)
        row.addStretch()
        row.addWidget(self.speed)
        row.addStretch()
        row.addWidget(self.acceptance)

    def draw(self) -> None:
        stats = self.meter.stats
        self.badge.show_info(self.info)
        self.speed.setText(figures.speed(stats.tokens_per_second) if stats.tokens > 1 else "– tok/s")
        self.acceptance.setText(f"accepted {figures.percent(stats.acceptance_rate)}" if stats.drafted else "accepted –")


def figure_label(pixels: int, *, bold: bool = False) -> QLabel:
    label = QLabel("–")
    label.setFont(figure_font(pixels, bold=bold))
    return label
