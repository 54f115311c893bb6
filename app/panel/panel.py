"""The live panel and its narrow form, the strip: at most ten looks at the meter a second, none when hidden."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app import figures
from app.panel.badge import Badge
from app.panel.charts import Gauge, PositionBars, Sparkline, StageBar
from app.panel.meter import Meter
from app.theme.manager import current, figure_font, text_font, use_class
from app.theme.tokens import BODY, CAPTION, FIGURE, PANEL_WIDTH
from engine import ContextUse, EngineInfo

INTERVAL_MS = 125
PARK_LINES = 3
_LABELS = {
    "draft": ("draft_block", "The drafter proposes tokens."),
    "verify": ("verify", "One forward pass of the target over the whole block. The target alone decides."),
    "rollback": ("rollback", "Rejected positions are taken out of the caches."),
    "hook": ("accept hook", "The drafter takes in what was accepted."),
    "host": ("host", "Everything else: Python, detokenizing, queues."),
}


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


class Panel(Live):
    """All figures, 300 pixels wide."""

    def __init__(self, meter: Meter, parent: QWidget | None = None) -> None:
        super().__init__(meter, parent)
        self.setObjectName("panel")
        self.setFixedWidth(PANEL_WIDTH)
        self.badge = Badge()
        self.speed = _figure(FIGURE[0], bold=True)
        self.speedup = _caption("")
        self.acceptance = _figure(FIGURE[0], bold=True)
        self.length = _caption("")
        self.positions = PositionBars()
        self.bar = StageBar()
        self.round_ms = _figure(BODY[0] - 1)
        self.stage_labels: dict[str, tuple[QLabel, QLabel]] = {}
        self.sparkline = Sparkline()
        self.width_label = _wrapped()
        # Room for the reason of a park, so that what is below does not jump when it comes and goes.
        self.width_label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.width_label.setMinimumHeight(PARK_LINES * self.width_label.fontMetrics().lineSpacing())
        self.drafter = _wrapped()
        self.context = _figure(BODY[0] - 1)
        self.gauge = Gauge()
        self.kept = _figure(BODY[0] - 1)
        self.device = _wrapped()
        use_class(self.device, "caption")
        self._build()

    def _build(self) -> None:
        inside = QWidget()
        inside.setObjectName("strip")
        inside.setStyleSheet("QWidget#strip { border: none; }")
        column = QVBoxLayout(inside)
        column.setContentsMargins(16, 10, 16, 16)
        column.setSpacing(6)
        column.addWidget(self.badge)
        heads = QGridLayout()
        heads.setHorizontalSpacing(12)
        for place, (value, below, name) in enumerate(
            ((self.speed, self.speedup, "Speed"), (self.acceptance, self.length, "Accepted drafts"))
        ):
            heads.addWidget(_caption(name), 0, place)
            heads.addWidget(value, 1, place)
            heads.addWidget(below, 2, place)
            heads.setColumnStretch(place, 1)
        column.addLayout(heads)
        column.addSpacing(6)
        column.addWidget(self.positions)
        column.addSpacing(8)
        column.addLayout(_pair(_caption("Milliseconds per round"), self.round_ms))
        column.addWidget(self.bar)
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(3)
        for row, (name, (label, tip)) in enumerate(_LABELS.items()):
            swatch = _Swatch(name)
            text = QLabel(label)
            text.setToolTip(tip)
            value, share = _figure(BODY[0] - 1), _figure(BODY[0] - 1)
            for number in (value, share):
                number.setAlignment(Qt.AlignmentFlag.AlignRight)
                number.setMinimumWidth(52)
            use_class(share, "soft")
            grid.addWidget(swatch, row, 0)
            grid.addWidget(text, row, 1)
            grid.addWidget(value, row, 2)
            grid.addWidget(share, row, 3)
            self.stage_labels[name] = (value, share)
        grid.setColumnStretch(1, 1)
        column.addLayout(grid)
        column.addSpacing(8)
        column.addWidget(_caption("Tokens per round"))
        column.addWidget(self.sparkline)
        column.addSpacing(8)
        for name, value in (("Block size", self.width_label), ("Drafter", self.drafter)):
            column.addWidget(_caption(name))
            column.addWidget(value)
            column.addSpacing(4)
        column.addLayout(_pair(_caption("Context"), self.context))
        column.addWidget(self.gauge)
        column.addLayout(_pair(_caption("Kept for later turns"), self.kept))
        column.addSpacing(8)
        column.addWidget(self.device)
        column.addStretch()
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 0, 0, 0)
        layout.addWidget(scroll)

    def draw(self) -> None:
        info, stats = self.info, self.meter.stats
        self.badge.show_info(info)
        written = stats.tokens > 1
        self.speed.setText(figures.speed(stats.tokens_per_second) if written else "–")
        ratio = self.meter.speedup()
        self.speedup.setText(speedup_text(ratio, parked=self.meter.mostly_parked))
        self.acceptance.setText(figures.percent(stats.acceptance_rate) if stats.drafted else "–")
        self.length.setText(f"mean length {stats.mean_acceptance_length:.2f}" if stats.drafted else "no drafts yet")
        self.positions.show_rates(stats.per_position)
        stages = self.meter.stages()
        self.bar.show_stages(stages)
        self.round_ms.setText(figures.milliseconds(sum(stage.ms for stage in stages)) if stats.rounds else "–")
        for stage in stages:
            value, share = self.stage_labels[stage.name]
            value.setText(figures.milliseconds(stage.ms) if stats.rounds else "–")
            share.setText(figures.percent(stage.share) if stats.rounds else "–")
        self.sparkline.show_rounds(self.meter.history)
        self.width_label.setText(width_text(self.meter, info))
        self.drafter.setText("\n\n".join(filter(None, (drafter_text(info), self.meter.alarm))))
        self._draw_context(info)
        self.device.setText(f"{info.device}. {info.policy}" if info is not None else "")

    def _draw_context(self, info: EngineInfo | None) -> None:
        used = max(self.meter.position, self.context_used)
        self.kept.setText(kept_text(self.meter.use))
        self.kept.setToolTip(kept_tip(self.meter.use))
        if info is None or info.context_length <= 0:
            self.context.setText("–")
            self.gauge.show_share(0.0)
            return
        self.context.setText(f"{used:,} / {info.context_length:,}")
        dropped = self.meter.use.dropped if self.meter.use is not None else 0
        self.context.setToolTip(f"{figures.count(dropped, 'message')} left out of the prompt" if dropped else "")
        self.gauge.show_share(used / info.context_length)


class Strip(Live):
    """Three figures above the composer, for a narrow window."""

    def __init__(self, meter: Meter, parent: QWidget | None = None) -> None:
        super().__init__(meter, parent)
        self.setObjectName("strip")
        self.badge = Badge()
        self.speed = _figure(BODY[0])
        self.acceptance = _figure(BODY[0])
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


class _Swatch(QFrame):
    """A square in the colour of a stage."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role
        self.setFixedSize(10, 10)

    def paintEvent(self, event) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        from PySide6.QtGui import QColor, QPainter

        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(getattr(current(), self._role)))
        painter.end()


def speedup_text(ratio: float | None, *, parked: bool) -> str:
    if ratio is not None:
        return f"about {figures.ratio(ratio)} classic"
    return "classic speed" if parked else "classic not measured"


def kept_text(use: ContextUse | None) -> str:
    """Memory that chats are kept in, so that their next turn reads only what is new."""
    return f"{figures.size(use.boundary_bytes)} of {figures.size(use.budget)}" if use is not None else "–"


def kept_tip(use: ContextUse | None) -> str:
    if use is None:
        return ""
    return (
        f"{use.boundaries} places in chats that a turn can start from without reading what came before. When the "
        "memory is full, the least recently used ones go; a chat that lost its places is read again, to the same words."
    )


def width_text(meter: Meter, info: EngineInfo | None) -> str:
    """The block size in use, or why there is none."""
    if info is not None and info.drafter is None:
        return f"Classic decode. {info.drafter_reason}".strip()
    if meter.notice:
        return meter.notice
    if meter.width > 1:
        return f"{meter.width}: one bonus token and {figures.count(meter.width - 1, 'draft')}"
    return "1: classic decode" if meter.width == 1 else "–"


def drafter_text(info: EngineInfo | None) -> str:
    """How the head is held in memory, and who decided that."""
    if info is None or info.drafter is None:
        return "None"
    drafter = info.drafter
    text = f"{drafter.representation}, {figures.size(drafter.bytes)}"
    others = [("quantized", drafter.packed_bytes), ("dense", drafter.dense_bytes)]
    if told := [f"{name} {figures.size(size)}" for name, size in others if size and size != drafter.bytes]:
        text += f" ({', '.join(told)})"
    return f"{text}, by {drafter.decided_by}"


def _figure(pixels: int, *, bold: bool = False) -> QLabel:
    label = QLabel("–")
    label.setFont(figure_font(pixels, bold=bold))
    return label


def _caption(text: str) -> QLabel:
    label = QLabel(text)
    use_class(label, "caption")
    label.setFont(text_font(CAPTION[0]))
    return label


def _wrapped() -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setFont(figure_font(BODY[0] - 1))
    return label


def _pair(left: QLabel, right: QLabel) -> QHBoxLayout:
    row = QHBoxLayout()
    row.addWidget(left)
    row.addStretch()
    row.addWidget(right)
    return row
