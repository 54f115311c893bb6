"""The rows of the models window under their headings, in a list that scrolls."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.models.entry import Entry, State
from app.models.row import Row
from app.theme.manager import use_class

HERE = "On this computer"
AWAY = "To download. Unchecked: nobody has compared the entry with the hub yet; pacenote models --check does"


class _List(QWidget):
    """As high as its rows are at its width. A scroll area asks for a minimum only, which wrapped lines fall below."""

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        layout = self.layout()
        if layout is not None and event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self.setMinimumHeight(layout.totalHeightForWidth(self.width()))
        return done


class RowList(QScrollArea):
    """`acted` carries a model's key and what was asked for, see `Row`. rows: by key. shown: (heading, key) in order."""

    acted = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: dict[str, Row] = {}
        self.shown: list[tuple[str, str]] = []
        self._headings: list[QLabel] = []
        self._list = _List()
        self._list.setObjectName("column")
        self._column = QVBoxLayout(self._list)
        self._column.setContentsMargins(0, 0, 8, 0)
        self._column.setSpacing(8)
        self._column.addStretch()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(self._list)

    def scroll_to(self, key: str) -> None:
        self.ensureWidgetVisible(self.rows[key], 0, 80)

    def show_entries(self, entries: Sequence[Entry], *, in_use: str | None, loading: bool) -> None:
        """in_use: key of the loaded model, None without one."""
        here = (State.HERE, State.BROKEN)
        wanted = [(HERE if entry.state in here else AWAY, entry.key) for entry in entries]
        if wanted != self.shown:
            self._lay_out(wanted)
        for entry in entries:
            self.rows[entry.key].show_entry(entry, in_use=entry.key == in_use, loading=loading)

    def _lay_out(self, wanted: list[tuple[str, str]]) -> None:
        """Rows stay the widgets they are, so that the focus stays where it is."""
        # removeWidget, not takeAt: an item that Python still holds keeps the row's old height for ever.
        for widget in (*self._headings, *self.rows.values()):
            self._column.removeWidget(widget)
        for gone in (*self._headings, *(self.rows.pop(key) for key in self.rows.keys() - {k for _, k in wanted})):
            gone.deleteLater()
        self._headings = []
        place = 0
        for title, key in wanted:
            if title not in (label.text() for label in self._headings):
                label = QLabel(title)
                label.setWordWrap(True)
                use_class(label, "caption")
                self._headings.append(label)
                self._column.insertWidget(place, label)
                place += 1
            if key not in self.rows:
                self.rows[key] = Row()
                self.rows[key].acted.connect(self.acted)
            self._column.insertWidget(place, self.rows[key])
            place += 1
        self.shown = wanted
