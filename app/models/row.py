"""One model in the models window: what it is, whether it fits, and what can be done with it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app import figures
from app.errorcard import ErrorCard
from app.models.entry import DEMO, Entry, State
from app.theme.manager import use_class
from engine import DownloadProgress, FitVerdict, coarse_duration

LABELS = {
    "load": "Load",
    "reload": "Reload",
    "anyway": "Load anyway",
    "fetch": "Download",
    "resume": "Go on",
    "retry": "Try again",
    "head": "Fetch head",
    "fit": "Does it fit?",
    "pause": "Pause",
    "discard": "Discard",
    "cancel": "Cancel",
    "page": "Licence page",
    "token": "Token…",
}

_CLASSES = {FitVerdict.FITS: "caption", FitVerdict.TIGHT: "caption warn", FitVerdict.NOT: "caption bad"}


class Row(QFrame):
    """`acted` carries the model's key and what was asked for: a key of LABELS."""

    acted = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        use_class(self, "card")
        self._entry: Entry | None = None
        self._title = _label("title")
        self._facts = _label("caption")
        self._fit = _label("caption")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setRange(0, 1000)
        self._bar.setAccessibleName("Download")
        self._figures = _label("caption")
        self._error = ErrorCard()
        self._error.acted.connect(self._on_error)
        self._buttons: dict[str, QPushButton] = {}
        self._actions = QHBoxLayout()
        self._actions.setSpacing(8)
        text = QVBoxLayout()
        text.setSpacing(2)
        for widget in (self._title, self._facts, self._fit):
            text.addWidget(widget)
        top = QHBoxLayout()
        top.setSpacing(12)
        top.addLayout(text, 1)
        top.addLayout(self._actions)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 12, 10)
        column.setSpacing(6)
        column.addLayout(top)
        column.addWidget(self._bar)
        column.addWidget(self._figures)
        column.addWidget(self._error)

    @property
    def text(self) -> str:
        """What stands on the row, without its error."""
        shown = (self._title, self._facts, self._fit, self._figures)
        return "\n".join(label.text() for label in shown if not label.isHidden())

    @property
    def error(self) -> ErrorCard:
        return self._error

    def offered(self) -> list[str]:
        """Keys of what can be pressed, from left to right."""
        return [key for key, button in self._buttons.items() if not button.isHidden()]

    def press(self, key: str) -> None:
        self._buttons[key].click()

    def show_entry(self, entry: Entry, *, in_use: bool, loading: bool) -> None:
        self._entry = entry
        self._title.setText(entry.title)
        broken = entry.state is State.BROKEN
        self._facts.setText(entry.error["what"] if broken else " · ".join(facts(entry, in_use=in_use)))
        use_class(self._facts, "caption bad" if broken else "caption")
        words = fit_words(entry)
        self._fit.setText(words)
        self._fit.setVisible(bool(words))
        use_class(self._fit, _CLASSES[entry.fit.verdict] if entry.fit is not None else "caption")
        self._show_actions(actions(entry, in_use=in_use), loading=loading)
        self._bar.setVisible(entry.state is State.BUSY)
        self._figures.setVisible(entry.state is State.BUSY)
        self.show_progress(entry.progress)
        if entry.stopping:
            self._figures.setText("Pausing; what arrived is kept")
        self._error.setVisible(bool(entry.error) and not broken)
        if entry.error and not broken:
            extra = (("page", "Licence page"), ("token", "Enter a token…")) if entry.access else ()
            self._error.show_error(entry.error, *extra)
        self.setAccessibleName(f"{entry.title}, {entry.state}")

    def show_progress(self, progress: DownloadProgress | None) -> None:
        if progress is None:
            self._bar.setValue(0)
            self._figures.setText("Starting")
            return
        self._bar.setValue(1000 * progress.done // max(1, progress.total))
        self._figures.setText(progress_words(progress))

    def _show_actions(self, keys: list[str], *, loading: bool) -> None:
        for key in keys:
            if key not in self._buttons:
                button = QPushButton(LABELS[key])
                use_class(button, "plain")
                button.clicked.connect(self._on_clicked)
                self._buttons[key] = button
                self._actions.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        for key, button in self._buttons.items():
            button.setVisible(key in keys)
            button.setEnabled(not (loading and key in ("load", "reload", "anyway")))

    @Slot()
    def _on_clicked(self) -> None:
        for key, button in self._buttons.items():
            if button is self.sender() and self._entry is not None:
                self.acted.emit(self._entry.key, key)
                return

    @Slot(str)
    def _on_error(self, key: str) -> None:
        if self._entry is not None:
            self.acted.emit(self._entry.key, key)


def facts(entry: Entry, *, in_use: bool) -> list[str]:
    """What is known about a model, the most useful first. What is not known is said, not left out."""
    said = ["in use"] if in_use else []
    if entry.key == DEMO:
        return [*said, "ships with Pacenote, to show the machine at work"]
    if entry.state is State.HERE:
        said.append(figures.size(entry.size))
    elif entry.pair is not None or entry.size:
        said.append(f"about {figures.size(entry.size)}" if entry.size else "size not known")
    if entry.quantization:
        said.append("16 bit" if entry.quantization == "none" else entry.quantization)
    if entry.state is State.HERE:
        said.append("MTP head" if entry.has_head else "no MTP head: plain decoding")
    pair = entry.pair
    if pair is not None:
        if pair.acceptance:
            said.append(f"about {figures.percent(pair.acceptance)} accepted at block {pair.acceptance_block}")
        said.append(pair.licence or "licence not known")
        if not pair.checked:
            said.append("unchecked")
    if entry.kept and entry.state is not State.BUSY:
        said.append(f"{figures.size(entry.kept)} of unfinished files kept")
    return said


def fit_words(entry: Entry) -> str:
    fit = entry.fit
    if fit is None:
        return f"Whether it fits is not known: {entry.fit_error}" if entry.fit_error else ""
    words = {FitVerdict.FITS: "Fits", FitVerdict.TIGHT: "Tight", FitVerdict.NOT: "Does not fit"}[fit.verdict]
    need = f"needs about {figures.size(fit.need.total)} at {fit.context:,} tokens of context"
    missing = f"; {figures.size(fit.missing)} more would be needed" if fit.missing else ""
    # What is here says it among its facts.
    head = f"; no head is counted: {fit.head_reason}" if fit.head_reason and entry.state is not State.HERE else ""
    return f"{words}: {need}, {fit.limit_reason}{missing}{head}"


def actions(entry: Entry, *, in_use: bool) -> list[str]:
    if entry.state is State.BUSY:
        return [] if entry.stopping else ["pause", "cancel"]
    if entry.state is State.HERE:
        does_not = entry.fit is not None and entry.fit.verdict is FitVerdict.NOT
        load = "reload" if in_use else "anyway" if does_not else "load"
        return [*(["head"] if not entry.has_head and entry.pair is not None else []), load]
    if entry.state is State.BEGUN:
        return ["discard", "resume"]
    if entry.state is State.AWAY:
        return [*(["fit"] if entry.fit is None else []), "retry" if entry.error else "fetch"]
    # What is whole of a broken repo is not fetched again; a folder is the user's to mend.
    return [] if Path(entry.key).is_absolute() else ["fetch"]


def progress_words(progress: DownloadProgress) -> str:
    """Bytes, speed, time left; what goes wrong just now."""
    if not progress.total:
        return " · ".join(part for part in (progress.step.capitalize(), progress.trouble) if part)
    said = [f"{figures.size(progress.done)} of {figures.size(progress.total)}"]
    if progress.speed is not None:
        said.append(f"{figures.size(int(progress.speed))}/s")
    if progress.left is not None and progress.done < progress.total:
        said.append(f"about {coarse_duration(progress.left)} left")
    if progress.files:
        said.append(f"{progress.files_done} of {figures.count(progress.files, 'file')}")
    else:
        said.append(progress.step)
    if progress.trouble:
        said.append(progress.trouble)
    return " · ".join(said)


def _label(kind: str) -> QLabel:
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    use_class(label, kind)
    return label
