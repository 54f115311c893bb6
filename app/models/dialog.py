"""The models window: what is here, what could be fetched, what fits; a place for other repos and folders."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QInputDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app import figures
from app.errorcard import ErrorCard
from app.models.entry import Entry, State
from app.models.loader import ModelLoader
from app.models.row import Row
from app.models.shelf import CONTEXTS, DEMO, Shelf
from app.theme.manager import use_class
from engine import free_memory

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


class ModelsDialog(QDialog):
    """`load_wanted` carries target and head as the settings keep them, and whether to load what is too large."""

    load_wanted = Signal(str, str, bool)

    def __init__(self, shelf: Shelf, loader: ModelLoader, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Models")
        self.resize(720, 640)
        self.setMinimumSize(560, 420)
        self._shelf, self._loader = shelf, loader
        self._rows: dict[str, Row] = {}
        self._headings: list[QLabel] = []
        self._shown: list[tuple[str, str]] = []
        self._context = QComboBox()
        for tokens in CONTEXTS:
            self._context.addItem(f"{tokens:,} tokens", tokens)
        self._context.setCurrentIndex(CONTEXTS.index(shelf.context))
        self._context.setAccessibleName("Context to count memory for")
        self._context.currentIndexChanged.connect(self._on_context)
        self._state = QLabel()
        use_class(self._state, "caption")
        self.unload = QPushButton("Unload")
        use_class(self.unload, "plain")
        self.unload.clicked.connect(loader.unload)
        self._memory = QLabel()
        use_class(self._memory, "caption")
        self.error = ErrorCard()
        self.error.acted.connect(self._on_card)
        self.error.hide()
        self._list = _List()
        self._list.setObjectName("column")
        self._column = QVBoxLayout(self._list)
        self._column.setContentsMargins(0, 0, 8, 0)
        self._column.setSpacing(8)
        self._column.addStretch()
        area = self._area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self._list)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 14, 16, 14)
        layout.setSpacing(10)
        layout.addLayout(_row(QLabel("Memory for a context of"), self._context, self._state, None))
        layout.addWidget(self.error)
        layout.addWidget(area, 1)
        layout.addLayout(self._other())
        layout.addLayout(_row(self._memory, None, self.unload))
        shelf.changed.connect(self.refresh)
        shelf.progressed.connect(self._on_progress)
        shelf.failed.connect(self._on_failed)
        shelf.token_kept.connect(self._on_token_kept)
        loader.changed.connect(self.refresh)
        loader.progressed.connect(self.refresh)
        loader.failed.connect(self._on_load_failed)
        self._access = ""
        shelf.refresh()

    @property
    def rows(self) -> dict[str, Row]:
        """By the model's key."""
        return self._rows

    def _other(self) -> QHBoxLayout:
        self.place = QLineEdit()
        self.place.setPlaceholderText("Another: folder, or owner/model")
        self.place.setAccessibleName("Another model: folder or repo")
        self.place.returnPressed.connect(self._on_other)
        self.head = QLineEdit()
        self.head.setPlaceholderText("Its MTP head, if apart")
        self.head.setAccessibleName("MTP head of that model: folder or repo")
        folder = QPushButton("Folder…")
        folder.clicked.connect(self._on_folder)
        self.add = QPushButton("Load or download")
        self.add.clicked.connect(self._on_other)
        for button in (folder, self.add):
            use_class(button, "plain")
            button.setAutoDefault(False)
        row = _row(self.place, self.head, folder, self.add)
        row.setStretch(0, 3)
        row.setStretch(1, 2)
        return row

    def scroll_to(self, key: str) -> None:
        self._area.ensureWidgetVisible(self._rows[key], 0, 80)

    @Slot()
    def refresh(self) -> None:
        entries = self._shelf.entries()
        here = (State.HERE, State.BROKEN)
        wanted = [(HERE if entry.state in here else AWAY, entry.key) for entry in entries]
        if wanted != self._shown:
            self._lay_out(wanted)
        options = self._loader.options
        in_use = (options.target or DEMO) if options is not None and self._loader.info is not None else None
        for entry in entries:
            self._rows[entry.key].show_entry(entry, in_use=entry.key == in_use, loading=self._loader.loading)
        self._state.setText("Looking…" if self._shelf.looking else "")
        self._memory.setText(self._memory_words())
        self.unload.setEnabled(self._loader.info is not None and not self._loader.loading)

    def _lay_out(self, wanted: list[tuple[str, str]]) -> None:
        """Rows stay the widgets they are, so that the focus stays where it is."""
        # removeWidget, not takeAt: an item that Python still holds keeps the row's old height for ever.
        for widget in (*self._headings, *self._rows.values()):
            self._column.removeWidget(widget)
        for gone in (*self._headings, *(self._rows.pop(key) for key in self._rows.keys() - {k for _, k in wanted})):
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
            if key not in self._rows:
                self._rows[key] = Row()
                self._rows[key].acted.connect(self._on_row)
            self._column.insertWidget(place, self._rows[key])
            place += 1
        self._shown = wanted

    def _memory_words(self) -> str:
        info, memory = self._loader.info, self._loader.memory
        said = [f"{figures.size(free_memory())} free"]
        if self._loader.loading:
            progress = self._loader.progress
            said.insert(0, f"Loading {self._loader.wanted_name}: {progress.stage if progress else 'starting'}")
        elif info is not None:
            said.insert(0, f"{info.name} in use")
        if memory is not None and any(use.held for use in memory) and not self._loader.loading:
            before, after = memory
            said.append(f"held by models {figures.size(before.held)} before, {figures.size(after.held)} now")
        return " · ".join(said)

    # what the user does

    @Slot(str, str)
    def _on_row(self, key: str, what: str) -> None:
        entry = self._shelf.entry(key)
        if entry is None:
            return
        if what in ("load", "reload", "anyway"):
            self._load(entry, anyway=what == "anyway")
        elif what in ("fetch", "resume", "retry", "head"):
            self._shelf.fetch(key)
        elif what == "fit":
            self._shelf.look_at(key)
        elif what == "pause":
            self._shelf.pause(key)
        elif what in ("cancel", "discard"):
            self._shelf.discard(key)
        elif what == "page":
            QDesktopServices.openUrl(QUrl(f"{self._shelf.hub.endpoint}/{key}"))
        elif what == "token":
            self.ask_token(key)

    def _load(self, entry: Entry, *, anyway: bool) -> None:
        self.error.hide()
        self.load_wanted.emit(entry.key, entry.head, anyway)

    @Slot(int)
    def _on_context(self, index: int) -> None:
        self._shelf.set_context(CONTEXTS[index])

    @Slot()
    def _on_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Model folder", self.place.text())
        if folder:
            self.place.setText(folder)

    @Slot()
    def _on_other(self) -> None:
        place = self.place.text().strip()
        if not place:
            return
        folder = Path(place).expanduser()
        here = self._shelf.entry(place)
        if folder.is_dir():
            try:
                self._shelf.add_folder(folder.resolve())
            except OSError as error:
                self._say(f"{folder.name} cannot be remembered: {error.strerror}.", "It is loaded all the same.")
            self.load_wanted.emit(str(folder.resolve()), self.head.text().strip(), False)
        elif here is not None and here.state is State.HERE:
            self.load_wanted.emit(place, self.head.text().strip() or here.head, False)
        elif place.count("/") == 1 and not place.startswith(("/", "~", ".")):
            self._shelf.fetch(place)
        else:
            self._say(f"There is no folder {place}.", "Give the path of a model folder, or a repo such as owner/model.")
            return
        self.place.clear()
        self.head.clear()

    def ask_token(self, key: str) -> None:
        """For a repo that wants one. What is typed goes to the hub and, when it is right, into the keychain."""
        token, given = QInputDialog.getText(
            self, "Token", "An access token of your account at the hub:", QLineEdit.EchoMode.Password
        )
        if given and token.strip():
            self._access = key
            self._shelf.use_token(token.strip())

    # what comes back

    @Slot(str)
    def _on_progress(self, key: str) -> None:
        entry, row = self._shelf.entry(key), self._rows.get(key)
        if entry is not None and row is not None:
            row.show_progress(entry.progress)

    @Slot(str)
    def _on_token_kept(self, reason: str) -> None:
        if reason:
            self._say(f"The token works; it is not stored: {reason}.", "Pacenote asks for it again after a restart.")
        if self._access:
            self._shelf.fetch(self._access)
            self._access = ""

    @Slot(dict)
    def _on_failed(self, error: dict[str, str]) -> None:
        self.error.show_error(error, ("dismiss", "OK"))
        self.error.show()

    @Slot(dict)
    def _on_load_failed(self, error: dict[str, str]) -> None:
        anyway = [("anyway", "Load anyway")] if self._loader.refused is not None else []
        self.error.show_error(error, *anyway, ("dismiss", "OK"))
        self.error.show()

    @Slot(str)
    def _on_card(self, key: str) -> None:
        self.error.hide()
        refused = self._loader.refused
        if key == "anyway" and refused is not None:
            self.load_wanted.emit(refused.target or DEMO, refused.head or "", True)

    def _say(self, what: str, todo: str) -> None:
        self.error.show_error({"what": what, "kept": "", "todo": todo, "detail": ""}, ("dismiss", "OK"))
        self.error.show()


def _row(*widgets: QWidget | None) -> QHBoxLayout:
    """None is a stretch."""
    row = QHBoxLayout()
    row.setSpacing(8)
    for widget in widgets:
        if widget is None:
            row.addStretch(1)
        else:
            row.addWidget(widget)
    return row
