"""Small drawings of the panel: the bar of stages, bars per position, the sparkline, a meter."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app import figures
from app.panel.meter import Stage
from app.theme.manager import current, figure_font
from app.theme.tokens import CAPTION, Roles
from engine import Round

NEARLY_FULL = 0.85
"""Share from which a gauge warns: where the engine's notice about the context comes too."""


class Chart(QWidget):
    """A drawing of fixed height. `paint` draws it with filled shapes, in the colours of the theme.

    name: what a screen reader calls it.
    """

    def __init__(self, height: int, name: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(height)
        self.setAccessibleName(name)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        self.paint(painter, current())
        painter.end()

    def paint(self, painter: QPainter, roles: Roles) -> None:
        raise NotImplementedError


class StageBar(Chart):
    """One bar, cut by the shares of the stages."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(12, "Time per round by stage", parent)
        self._stages: Sequence[Stage] = ()

    def show_stages(self, stages: Sequence[Stage]) -> None:
        if stages == self._stages:
            return
        self._stages = stages
        self.setAccessibleDescription(", ".join(f"{s.name} {figures.percent(s.share)}" for s in stages))
        self.update()

    def paint(self, painter: QPainter, roles: Roles) -> None:
        painter.fillRect(self.rect(), QColor(roles.line))
        x = 0.0
        for stage in self._stages:
            width = stage.share * self.width()
            # A gap of one pixel: neighbours are told apart without colour.
            area = QRectF(x, 0, max(0.0, width - 1), self.height())
            painter.fillRect(area, QColor(getattr(roles, stage.name)))
            x += width


class PositionBars(Chart):
    """Acceptance per draft position, as bars with their percentage."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(44, "Acceptance per position", parent)
        self._rates: Sequence[float] = ()

    def show_rates(self, rates: Sequence[float]) -> None:
        if rates == self._rates:
            return
        self._rates = rates
        self.setAccessibleDescription(", ".join(figures.percent(rate) for rate in rates))
        self.update()

    def paint(self, painter: QPainter, roles: Roles) -> None:
        painter.setFont(figure_font(CAPTION[0] - 1))
        left = Qt.AlignmentFlag.AlignLeft
        slots = max(2, len(self._rates))
        gap = 6
        width = (self.width() - gap * (slots - 1)) / slots
        for place in range(slots):
            x = place * (width + gap)
            rate = self._rates[place] if place < len(self._rates) else None
            painter.fillRect(QRectF(x, 18, width, 6), QColor(roles.line))
            painter.fillRect(QRectF(x, 18, width * (rate or 0.0), 6), QColor(roles.draft))
            painter.setPen(QColor(roles.text))
            painter.drawText(QRectF(x, 0, width, 16), left, figures.percent(rate) if rate is not None else "–")
            painter.setPen(QColor(roles.text_soft))
            painter.drawText(QRectF(x, 27, width, 16), left, f"pos {place + 1}" if width > 36 else f"{place + 1}")


class Sparkline(Chart):
    """Tokens per round over the last rounds; a classic round is one low mark in the host colour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(40, "Tokens per round", parent)
        self._rounds: Sequence[Round] = ()

    def sizeHint(self) -> QSize:
        return QSize(200, 40)

    def show_rounds(self, rounds: Sequence[Round]) -> None:
        self._rounds = list(rounds)
        self.update()

    def paint(self, painter: QPainter, roles: Roles) -> None:
        bottom = self.height() - 1
        painter.fillRect(0, bottom, self.width(), 1, QColor(roles.line))
        most = max((r.width for r in self._rounds), default=2)
        step = 4
        scale = (self.height() - 4) / max(2, most)
        # All bars of a colour at once: there are some seventy, five times a second.
        bars: dict[str, list[QRectF]] = {roles.verify: [], roles.host: []}
        for place, round_ in enumerate(self._rounds[-(self.width() // step) :]):
            height = scale * round_.emitted
            bar = QRectF(place * step, bottom - height, step - 1, height)
            bars[roles.verify if round_.drafted else roles.host].append(bar)
        for colour, areas in bars.items():
            painter.setBrush(QColor(colour))
            painter.drawRects(areas)


class Gauge(Chart):
    """A thin bar: how much of something is used."""

    def __init__(self, name: str = "", parent: QWidget | None = None) -> None:
        super().__init__(4, name, parent)
        self._share = 0.0

    def show_share(self, share: float) -> None:
        share = max(0.0, min(1.0, share))
        if share == self._share:
            return
        self._share = share
        self.setAccessibleDescription(figures.percent(self._share))
        self.update()

    def paint(self, painter: QPainter, roles: Roles) -> None:
        painter.setBrush(QColor(roles.line))
        painter.drawRoundedRect(self.rect(), 2, 2)
        painter.setBrush(QColor(roles.warn if self._share >= NEARLY_FULL else roles.accent))
        painter.drawRoundedRect(QRectF(0, 0, self.width() * self._share, self.height()), 2, 2)


class Swatch(QWidget):
    """A square in the colour of a stage."""

    def __init__(self, role: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._role = role
        self.setFixedSize(10, 10)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(getattr(current(), self._role)))
        painter.end()
