"""The live panel: all figures, in the order in which a reader asks for them."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Slot
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app import figures
from app.panel import words
from app.panel.badge import Badge, Popover
from app.panel.charts import Gauge, PositionBars, Sparkline, StageBar, Swatch
from app.panel.live import Live, figure_label
from app.panel.meter import Meter
from app.theme.manager import figure_font, text_font, use_class
from app.theme.tokens import BODY, CAPTION, FIGURE, PANEL_WIDTH
from engine import EngineInfo

PARK_LINES = 3


class Panel(Live):
    """All figures, 300 pixels wide."""

    def __init__(self, meter: Meter, parent: QWidget | None = None) -> None:
        super().__init__(meter, parent)
        self.setObjectName("panel")
        self.setFixedWidth(PANEL_WIDTH)
        self.badge = Badge()
        self.speed = figure_label(FIGURE[0], bold=True)
        self.classic, self.speedup = _caption(""), _caption("")
        self.acceptance = figure_label(FIGURE[0], bold=True)
        self.length, self.counts = _caption(""), _caption("")
        self.why = QPushButton("Why this speed?")
        self.why.clicked.connect(self.open_why)
        self.popover: Popover | None = None
        self.positions = PositionBars()
        self.bar = StageBar()
        self.round_ms = figure_label(BODY[0] - 1)
        self.stage_labels: dict[str, tuple[QLabel, QLabel]] = {}
        self.sparkline = Sparkline()
        self.width_label = _wrapped()
        # Room for the reason of a park, so that what is below does not jump when it comes and goes.
        self.width_label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.width_label.setMinimumHeight(PARK_LINES * self.width_label.fontMetrics().lineSpacing())
        self.drafter = _wrapped()
        self.context = figure_label(BODY[0] - 1)
        self.gauge = Gauge("Context")
        self.kept = figure_label(BODY[0] - 1)
        self.kept_gauge = Gauge("Kept for later turns")
        self.memory = figure_label(BODY[0] - 1)
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
        for place, (name, tip, value, *below) in enumerate(
            (
                ("Speed", words.SPEED_TIP, self.speed, self.classic, self.speedup),
                ("Accepted drafts", words.ACCEPTED_TIP, self.acceptance, self.length, self.counts),
            )
        ):
            for line, widget in enumerate((_caption(name), value, *below)):
                widget.setToolTip(tip)
                heads.addWidget(widget, line, place)
            heads.setColumnStretch(place, 1)
        self.length.setToolTip(words.LENGTH_TIP)
        column.addLayout(heads)
        use_class(self.why, "quiet")
        column.addWidget(self.why, alignment=Qt.AlignmentFlag.AlignLeft)
        column.addSpacing(6)
        self.positions.setToolTip(words.POSITIONS_TIP)
        column.addWidget(self.positions)
        column.addSpacing(8)
        column.addLayout(_pair("Milliseconds per round", self.round_ms, words.ROUND_TIP))
        self.bar.setToolTip(words.ROUND_TIP)
        column.addWidget(self.bar)
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(3)
        for row, (stage, (label, tip)) in enumerate(words.STAGES.items()):
            swatch = Swatch(stage)
            text = QLabel(label)
            text.setToolTip(tip)
            value, share = figure_label(BODY[0] - 1), figure_label(BODY[0] - 1)
            for number in (value, share):
                number.setToolTip(tip)
                number.setAlignment(Qt.AlignmentFlag.AlignRight)
                number.setMinimumWidth(52)
            use_class(share, "soft")
            grid.addWidget(swatch, row, 0)
            grid.addWidget(text, row, 1)
            grid.addWidget(value, row, 2)
            grid.addWidget(share, row, 3)
            self.stage_labels[stage] = (value, share)
        grid.setColumnStretch(1, 1)
        column.addLayout(grid)
        column.addSpacing(8)
        column.addWidget(_caption("Tokens per round", words.SPARKLINE_TIP))
        self.sparkline.setToolTip(words.SPARKLINE_TIP)
        column.addWidget(self.sparkline)
        column.addSpacing(8)
        for name, tip, value in (
            ("Block size", words.WIDTH_TIP, self.width_label),
            ("Drafter", words.DRAFTER_TIP, self.drafter),
        ):
            value.setToolTip(tip)
            column.addWidget(_caption(name, tip))
            column.addWidget(value)
            column.addSpacing(4)
        column.addLayout(_pair("Context", self.context, words.CONTEXT_TIP))
        column.addWidget(self.gauge)
        column.addLayout(_pair("Kept for later turns", self.kept, words.kept_tip(None)))
        column.addWidget(self.kept_gauge)
        column.addLayout(_pair("Memory", self.memory, words.MEMORY_TIP))
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
        classic = self.meter.classic()
        self.classic.setText(words.classic_text(classic))
        self.classic.setToolTip(words.classic_tip(classic))
        self.speedup.setText(words.speedup_text(ratio, parked=self.meter.mostly_parked))
        self.speedup.setToolTip(words.classic_tip(classic))
        self.why.setEnabled(self.meter.finished)
        self.why.setToolTip(words.WHY_TIP if self.meter.finished else "When a reply is finished")
        self.acceptance.setText(figures.percent(stats.acceptance_rate) if stats.drafted else "–")
        self.length.setText(
            f"mean length {stats.mean_acceptance_length:.2f}" if stats.drafted else words.no_drafts_text(info)
        )
        self.counts.setText(f"{stats.accepted:,} of {stats.drafted:,} drafts" if stats.drafted else "")
        self.positions.show_rates(stats.per_position)
        stages = self.meter.stages()
        self.bar.show_stages(stages)
        self.round_ms.setText(figures.milliseconds(sum(stage.ms for stage in stages)) if stats.rounds else "–")
        for stage in stages:
            value, share = self.stage_labels[stage.name]
            value.setText(figures.milliseconds(stage.ms) if stats.rounds else "–")
            share.setText(figures.percent(stage.share) if stats.rounds else "–")
        self.sparkline.show_rounds(self.meter.history)
        self.width_label.setText(words.width_text(self.meter, info))
        self.drafter.setText("\n\n".join(filter(None, (words.drafter_text(info), self.meter.alarm))))
        self._draw_context(info)
        self.device.setText(f"{info.device}. {info.policy}" if info is not None else "")

    def _draw_context(self, info: EngineInfo | None) -> None:
        use = self.meter.use
        used = max(self.meter.position, self.context_used)
        self.kept.setText(words.kept_text(use))
        self.kept.setToolTip(words.kept_tip(use))
        self.kept_gauge.show_share(use.boundary_bytes / use.budget if use is not None and use.budget else 0.0)
        self.memory.setText(words.memory_text(info, use))
        self.memory.setToolTip(words.memory_tip(info, use))
        self.context.setToolTip(words.context_tip(use))
        known = info is not None and info.context_length > 0
        self.context.setText(f"{used:,} / {info.context_length:,}" if info is not None and known else "–")
        self.gauge.show_share(used / info.context_length if info is not None and known else 0.0)

    @Slot()
    def open_why(self) -> None:
        self.popover = Popover(words.why_text(self.meter), self)
        self.popover.move(self.why.mapToGlobal(QPoint(0, self.why.height() + 4)))
        self.popover.show()


def _caption(text: str, tip: str = "") -> QLabel:
    label = QLabel(text)
    label.setToolTip(tip)
    use_class(label, "caption")
    label.setFont(text_font(CAPTION[0]))
    return label


def _wrapped() -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setFont(figure_font(BODY[0] - 1))
    return label


def _pair(name: str, right: QLabel, tip: str) -> QHBoxLayout:
    right.setToolTip(tip)
    row = QHBoxLayout()
    row.addWidget(_caption(name, tip))
    row.addStretch()
    row.addWidget(right)
    return row
