"""Small drawings of the panel: the bar of stages, bars per position, the sparkline, a meter."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app import figures
from app.panel.meter import Stage
from app.theme.manager import current, figure_font
from app.theme.tokens import CAPTION
from engine import Round

NEARLY_FULL = 0.85
"""Share from which a gauge warns: where the engine's notice about the context comes too."""


class StageBar(QWidget):
    """One bar, cut by the shares of the stages."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(12)
        self.setAccessibleName("Time per round by stage")
        self._stages: Sequence[Stage] = ()

    def show_stages(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        self.setAccessibleDescription(", ".join(f"{s.name} {figures.percent(s.share)}" for s in stages))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        roles = current()
        painter = QPainter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(roles.line))
        painter.drawRect(self.rect())
        x = 0.0
        for stage in self._stages:
            width = stage.share * self.width()
            painter.setBrush(QColor(getattr(roles, stage.name)))
            # A gap of one pixel: neighbours are told apart without colour.
            painter.drawRect(QRectF(x, 0, max(0.0, width - 1), self.height()))
            x += width
        painter.end()


class PositionBars(QWidget):
    """Acceptance per draft position, as bars with their percentage."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(44)
        self.setAccessibleName("Acceptance per position")
        self._rates: Sequence[float] = ()

    def show_rates(self, rates: Sequence[float]) -> None:
        self._rates = rates
        self.setAccessibleDescription(", ".join(figures.percent(rate) for rate in rates))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        roles = current()
        painter = QPainter(self)
        painter.setFont(figure_font(CAPTION[0] - 1))
        slots = max(2, len(self._rates))
        gap = 6
        width = (self.width() - gap * (slots - 1)) / slots
        for place in range(slots):
            x = place * (width + gap)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(roles.line))
            painter.drawRect(QRectF(x, 18, width, 6))
            known = place < len(self._rates)
            rate = self._rates[place] if known else 0.0
            painter.setBrush(QColor(roles.draft))
            painter.drawRect(QRectF(x, 18, width * rate, 6))
            painter.setPen(QColor(roles.text))
            painter.drawText(
                QRectF(x, 0, width, 16), Qt.AlignmentFlag.AlignLeft, figures.percent(rate) if known else "–"
            )
            painter.setPen(QColor(roles.text_soft))
            painter.drawText(
                QRectF(x, 27, width, 16),
                Qt.AlignmentFlag.AlignLeft,
                f"pos {place + 1}" if width > 36 else f"{place + 1}",
            )
        painter.end()


class Sparkline(QWidget):
    """Tokens per round over the last rounds; a classic round is one low mark in the host colour."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(40)
        self.setAccessibleName("Tokens per round")
        self._rounds: Sequence[Round] = ()

    def sizeHint(self) -> QSize:
        return QSize(200, 40)

    def show_rounds(self, rounds: Sequence[Round]) -> None:
        self._rounds = list(rounds)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        roles = current()
        painter = QPainter(self)
        painter.setPen(QColor(roles.line))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)
        painter.setPen(Qt.PenStyle.NoPen)
        most = max((r.width for r in self._rounds), default=2)
        step = 4
        shown = self._rounds[-(self.width() // step) :]
        for place, event_ in enumerate(shown):
            height = (self.height() - 4) * event_.emitted / max(2, most)
            painter.setBrush(QColor(roles.verify if event_.drafted else roles.host))
            painter.drawRect(QRectF(place * step, self.height() - 1 - height, step - 1, height))
        painter.end()


class Gauge(QWidget):
    """A thin bar: how much of something is used."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(4)
        self._share = 0.0

    def show_share(self, share: float) -> None:
        self._share = max(0.0, min(1.0, share))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        roles = current()
        painter = QPainter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(roles.line))
        painter.drawRoundedRect(self.rect(), 2, 2)
        painter.setBrush(QColor(roles.warn if self._share >= NEARLY_FULL else roles.accent))
        painter.drawRoundedRect(QRectF(0, 0, self.width() * self._share, self.height()), 2, 2)
        painter.end()
