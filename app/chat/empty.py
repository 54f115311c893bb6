"""An empty chat: which model answers, and three ways to begin."""

from __future__ import annotations

import json
import sys
from importlib import resources

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app import figures
from app.errorcard import ErrorCard
from app.theme.manager import use_class
from engine import EngineInfo, LoadProgress

DEFAULT_EXAMPLES = (
    "What is a lighthouse?",
    "How do I make a good cup of tea?",
    "Tell me something interesting about bees.",
)


def examples() -> tuple[str, ...]:
    """Three ways to begin, from what the demo model was made for."""
    try:
        text = (resources.files("resources") / "demo" / "prompts.json").read_text("utf-8")
        found = tuple(str(line) for line in json.loads(text))[:3]
    except (OSError, ValueError, ModuleNotFoundError):
        found = ()
    return found or DEFAULT_EXAMPLES


class EmptyChat(QWidget):
    """Shown instead of the transcript. Also the place where a model's loading and its failure are told."""

    example = Signal(str)
    cancel_load = Signal()
    act = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("column")
        self._name = QLabel("Pacenote")
        use_class(self._name, "heading")
        self._about = QLabel()
        use_class(self._about, "soft")
        self._about.setWordWrap(True)
        self._place = QLabel(f"Runs entirely on this {'Mac' if sys.platform == 'darwin' else 'computer'}.")
        use_class(self._place, "soft")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName("Loading the model")
        self._cancel = QPushButton("Cancel")
        use_class(self._cancel, "plain")
        self._cancel.clicked.connect(self.cancel_load)
        self.error = ErrorCard()
        self.error.acted.connect(self.act)
        self._examples = QFrame()
        rows = QVBoxLayout(self._examples)
        rows.setContentsMargins(0, 8, 0, 0)
        rows.setSpacing(8)
        for text in examples():
            button = QPushButton(text)
            use_class(button, "example")
            button.clicked.connect(self._on_example)
            rows.addWidget(button)
        inner = QFrame()
        inner.setFixedWidth(440)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for widget in (self._name, self._about, self._place, self._bar):
            column.addWidget(widget)
        column.addWidget(self._cancel, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.error)
        column.addWidget(self._examples)
        layout = QVBoxLayout(self)
        layout.addStretch(2)
        # Stretches, not an alignment: only so does a wrapped line get the height it needs.
        row = QHBoxLayout()
        row.addStretch()
        row.addWidget(inner)
        row.addStretch()
        layout.addLayout(row)
        layout.addStretch(3)
        self.show_nothing()

    def show_nothing(self) -> None:
        self._about.setText("No model is loaded.")
        self._loading(False)
        self.error.hide()

    def show_model(self, info: EngineInfo) -> None:
        self._name.setText(info.name)
        self._about.setText(
            f"{figures.parameters(info.parameters)} parameters, {info.quantization}, {figures.size(info.target_bytes)}"
        )
        self._loading(False)
        self.error.hide()

    def show_loading(self, name: str, progress: LoadProgress | None, seconds: float) -> None:
        """What is being done, how much of it, for how long."""
        self._name.setText(name)
        self._about.setText(loading_text(progress, seconds))
        self._bar.setRange(0, 1000 if progress is not None and progress.total else 0)
        if progress is not None and progress.total:
            self._bar.setValue(int(1000 * progress.done / progress.total))
        self._loading(True)
        self.error.hide()

    def show_error(self, error: dict[str, str], current: EngineInfo | None, *actions: tuple[str, str]) -> None:
        """actions: the card's buttons, (key, label)."""
        if current is not None:
            self.show_model(current)
        else:
            self._name.setText("Pacenote")
            self._about.setText("No model is loaded.")
            self._loading(False)
        self._examples.setVisible(current is not None)
        self.error.show_error(error, *actions)
        self.error.show()

    def _loading(self, loading: bool) -> None:
        self._bar.setVisible(loading)
        self._cancel.setVisible(loading)
        self._examples.setVisible(not loading)

    @Slot()
    def _on_example(self) -> None:
        button = self.sender()
        if isinstance(button, QPushButton):
            self.example.emit(button.text())


def loading_text(progress: LoadProgress | None, seconds: float) -> str:
    """One line about a load: stage, share, time."""
    stage = progress.stage if progress is not None else "Starting"
    share = ""
    if progress is not None and progress.total:
        share = f", {figures.percent(progress.done / progress.total)}"
    return f"Loading: {stage}{share}, {figures.seconds(seconds)}"
