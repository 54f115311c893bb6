"""The dialog that exports session logs: which chats, in which form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app import figures, sessionlog
from app.errorcard import as_dict
from engine import ExportKind, KnownError

KINDS = {
    ExportKind.LINES: ("JSON Lines: the log as it is", "JSON Lines (*.jsonl)"),
    ExportKind.REPLIES: ("CSV: a row per reply", "CSV (*.csv)"),
    ExportKind.ROUNDS: ("CSV: a row per round", "CSV (*.csv)"),
    ExportKind.RECORD: ("Markdown: a record to read", "Markdown (*.md)"),
}
_UID = Qt.ItemDataRole.UserRole


class LogExport(QDialog):
    """Not modal over an export: what fails leaves it open, so that another place can be chosen."""

    exported = Signal(str)
    """What was written, in words."""
    failed = Signal(dict)

    def __init__(
        self, folder: Path, chats: Sequence[tuple[str, str]], current: str, parent: QWidget | None = None
    ) -> None:
        """
        Args:
            folder: of the session logs.
            chats: (uid, title), as they stand in the list. Those without a log cannot be chosen.
            current: uid of the chat that is chosen at first.
        """
        super().__init__(parent)
        self.setWindowTitle("Export session log")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._folder = folder
        self.list = QListWidget()
        self.list.setAccessibleName("Chats")
        for uid, title in chats:
            if not sessionlog.log_parts(folder, uid):
                continue
            item = QListWidgetItem(title)
            item.setData(_UID, uid)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if uid == current else Qt.CheckState.Unchecked)
            self.list.addItem(item)
        self.kind = QComboBox()
        self.kind.setAccessibleName("Form")
        for kind, (name, _) in KINDS.items():
            self.kind.addItem(name, kind)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.export = self.buttons.addButton("Export…", QDialogButtonBox.ButtonRole.ActionRole)
        self.export.clicked.connect(self.choose_file)
        self.buttons.rejected.connect(self.reject)
        self.list.itemChanged.connect(self._on_checked)
        note = QLabel("Figures only, unless the settings allow the words of chats in the log.")
        note.setWordWrap(True)
        layout = QVBoxLayout(self)
        for widget in (QLabel("Chats"), self.list, QLabel("Form"), self.kind, note, self.buttons):
            layout.addWidget(widget)
        self._on_checked()

    def chosen(self) -> list[str]:
        """Uids of the chats that are checked, in the order of the list."""
        items = [self.list.item(row) for row in range(self.list.count())]
        return [item.data(_UID) for item in items if item.checkState() is Qt.CheckState.Checked]

    @Slot()
    def _on_checked(self) -> None:
        self.export.setEnabled(bool(self.chosen()))

    @Slot()
    def choose_file(self) -> None:
        kind = ExportKind(self.kind.currentData())  # Qt hands a StrEnum back as text
        place = Path.home() / f"pacenote-session{kind.suffix}"
        name, _ = QFileDialog.getSaveFileName(self, "Export session log", str(place), KINDS[kind][1])
        if not name:
            return
        try:
            done = sessionlog.export(self._folder, self.chosen(), kind, Path(name))
        except KnownError as error:
            self.failed.emit(as_dict(error))
            return
        remarks = len(done.problems)
        told = f"; the log has {figures.count(remarks, 'damaged place')}" if remarks else ""
        self.exported.emit(f"Exported to {Path(name).name}{told}")
        self.accept()
