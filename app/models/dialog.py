"""The models window: what is here, what could be fetched, what fits; a place for other repos and folders."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QHBoxLayout,
    QInputDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app import figures
from app.errorcard import ErrorCard
from app.models.entry import DEMO, Entry, State
from app.models.loader import ModelLoader
from app.models.other import OtherPlace
from app.models.row import Row
from app.models.rowlist import RowList
from app.models.shelf import CONTEXTS, Shelf
from app.theme.manager import use_class
from engine import free_memory


class ModelsDialog(QDialog):
    """`load_wanted` carries target and head as the settings keep them, and whether to load what is too large."""

    load_wanted = Signal(str, str, bool)

    def __init__(self, shelf: Shelf, loader: ModelLoader, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Models")
        self.resize(720, 640)
        self.setMinimumSize(560, 420)
        self._shelf, self._loader = shelf, loader
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
        self.list = RowList()
        self.list.acted.connect(self._on_row)
        self.other = OtherPlace()
        self.other.wanted.connect(self._on_other)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 14, 16, 14)
        layout.setSpacing(10)
        layout.addLayout(_row(QLabel("Memory for a context of"), self._context, self._state, None))
        layout.addWidget(self.error)
        layout.addWidget(self.list, 1)
        layout.addWidget(self.other)
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
        return self.list.rows

    @Slot()
    def refresh(self) -> None:
        loader = self._loader
        in_use = (loader.options.target or DEMO) if loader.options is not None and loader.info is not None else None
        self.list.show_entries(self._shelf.entries(), in_use=in_use, loading=loader.loading)
        self._state.setText("Looking…" if self._shelf.looking else "")
        self._memory.setText(self._memory_words())
        self.unload.setEnabled(loader.info is not None and not loader.loading)

    def _memory_words(self) -> str:
        info, memory = self._loader.info, self._loader.memory
        said = [f"{figures.size(free_memory())} free"]
        if self._loader.loading:
            said.insert(0, f"Loading {self._loader.wanted_name}: {self._loader.stage}")
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

    @Slot(str, str)
    def _on_other(self, place: str, head: str) -> None:
        folder = Path(place).expanduser()
        here = self._shelf.entry(place)
        if folder.is_dir():
            try:
                self._shelf.add_folder(folder.resolve())
            except OSError as error:
                self._say(f"{folder.name} cannot be remembered: {error.strerror}.", "It is loaded all the same.")
            self.load_wanted.emit(str(folder.resolve()), head, False)
        elif here is not None and here.state is State.HERE:
            self.load_wanted.emit(place, head or here.head, False)
        elif place.count("/") == 1 and not place.startswith(("/", "~", ".")):
            self._shelf.fetch(place)
        else:
            self._say(f"There is no folder {place}.", "Give the path of a model folder, or a repo such as owner/model.")
            return
        self.other.clear()

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
        entry, row = self._shelf.entry(key), self.rows.get(key)
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
        self.refresh()  # what waited for the load can be pressed again
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
