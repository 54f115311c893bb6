"""The exactness badge: one word with a dot, and a popover that says why."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from app import figures
from app.theme.manager import current, text_font, use_class
from app.theme.tokens import BODY
from engine import EngineInfo, ExactnessState


@dataclass(frozen=True, slots=True)
class Words:
    """How a state is told. role: the colour role of the dot and the word."""

    word: str
    role: str
    meaning: str


WORDS = {
    ExactnessState.NOT_RUN: Words(
        "Not checked", "text_soft", "No probe was run for this model here, so nothing is claimed."
    ),
    ExactnessState.EXACT_STOCK: Words(
        "Exact", "good", "A verify block gave the same bytes as single steps, with MLX's own kernels."
    ),
    ExactnessState.EXACT_FORCED: Words(
        "Exact", "good", "A verify block gave the same bytes as single steps, with other kernels than MLX would choose."
    ),
    ExactnessState.DECLINED: Words(
        "Declined", "warn", "A verify block did not give the bytes of single steps, so replies use classic decode."
    ),
    ExactnessState.INEXACT_ALLOWED: Words(
        "Inexact",
        "warn",
        "The probe failed and you allowed speculation all the same. Replies may differ from classic decode.",
    ),
}


class Badge(QPushButton):
    """Click it for the reason.

    again: the user wants the probe to be run once more.
    """

    again = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        use_class(self, "quiet")
        self.setFont(text_font(BODY[0], bold=True))
        # By its name: what the popover holds, a child, would be padded as well.
        self.setObjectName("badge")
        self.setStyleSheet("QPushButton#badge { text-align: left; padding-left: 18px; }")
        self.clicked.connect(self.open_popover)
        self._info: EngineInfo | None = None
        self._role = "text_soft"
        self.popover: Popover | None = None
        self.show_info(None)

    def show_info(self, info: EngineInfo | None) -> None:
        self._info = info
        words = _words(info)
        if words.role != self._role:
            self._role = words.role
            self.update()
        kernel = ""
        if info is not None and info.verdict.kernel and info.drafter is not None:
            kernel = " · " + info.verdict.kernel.replace("_", " ")
        self.setText(words.word + kernel)
        inputs = f" Compared on {figures.count(info.verdict.inputs, 'input')}." if info and info.verdict.inputs else ""
        self.setToolTip(f"{words.meaning}{inputs} Click for the reason.")
        self.setAccessibleName(f"Exactness: {words.word}")

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(current(), self._role)))
        painter.drawEllipse(QPoint(5, self.height() // 2), 4, 4)
        painter.end()

    @Slot()
    def open_popover(self) -> None:
        info = self._info
        again = info is not None and info.drafter is not None  # else there is nothing to check
        self.popover = Popover(explain(info), self, "Run again" if again else "")
        self.popover.acted.connect(self.again)
        if info is not None and info.verdict.seconds:
            took = figures.seconds(info.verdict.seconds)
            self.popover.button.setToolTip(f"Loads the model again and compares anew, which took {took} the last time")
        self.popover.move(self.mapToGlobal(QPoint(0, self.height() + 4)))
        self.popover.show()


class Popover(QFrame):
    """A few sentences over the window, and perhaps one button; a click elsewhere or Esc closes it."""

    acted = Signal()

    def __init__(self, text: str, parent: QWidget, action: str = "") -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        use_class(self, "popover")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.label = QLabel(text)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setWordWrap(True)
        self.label.setFixedWidth(320)
        self.label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 12, 14, 12)
        layout.addWidget(self.label)
        self.button = QPushButton(action)
        use_class(self.button, "plain")
        self.button.setVisible(bool(action))
        self.button.clicked.connect(self._act)
        layout.addWidget(self.button, alignment=Qt.AlignmentFlag.AlignLeft)

    @Slot()
    def _act(self) -> None:
        self.acted.emit()
        self.close()


def _words(info: EngineInfo | None) -> Words:
    if info is None:
        return Words("No model", "text_soft", "Nothing is loaded.")
    if info.drafter is None:
        return Words("Classic", "text_soft", "There is no drafter, so every reply uses classic decode.")
    return WORDS[info.verdict.state]


def explain(info: EngineInfo | None) -> str:
    """Why the badge says what it says: two sentences, then inputs, cost and when."""
    words = _words(info)
    if info is None:
        return words.meaning
    lines = [words.meaning]
    verdict = info.verdict
    if info.drafter is None:
        lines.append(info.drafter_reason)
        return "\n".join(line for line in lines if line)
    if verdict.reason:
        lines.append(verdict.reason)
    if verdict.inputs:
        lines.append(
            f"\nCompared on {figures.count(verdict.inputs, 'input')}. A pass is evidence, not a proof for every text."
        )
    if verdict.widths:
        lines.append("Block sizes allowed: " + ", ".join(str(width) for width in verdict.widths) + ".")
    if verdict.cost != 1.0:
        lines.append(f"Cost: verify takes {figures.ratio(verdict.cost)} of stock.")
    if verdict.seconds:
        when = "remembered from an earlier start" if verdict.cached else "measured while loading"
        lines.append(f"The probe took {figures.seconds(verdict.seconds)}, {when}.")
    return "\n".join(lines)
