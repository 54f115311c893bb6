"""What the window writes to files and reads from them: exports and imports."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Slot
from PySide6.QtGui import QCloseEvent

from app import dialogs, figures
from app.errorcard import as_dict
from app.modelwindow import ModelWindow
from app.panel.logexport import LogExport
from app.selftestdialog import SelfTestDialog
from app.services import Services
from app.theme import Theme
from engine import KnownError


class FileWindow(ModelWindow):
    """Between the model's part and the main window."""

    def __init__(self, services: Services, theme: Theme) -> None:
        super().__init__(services, theme)
        self.self_test_dialog: SelfTestDialog | None = None

    @Slot()
    def show_list(self) -> None:
        """Fill the list of chats anew."""
        raise NotImplementedError

    def clear_search(self) -> None:
        """The list is about all chats again."""
        raise NotImplementedError

    @Slot()
    def export_log(self) -> None:
        current = self.services.chats.conversation()
        chats = [(chat.uid, chat.title) for chat in self.services.store.conversations()]
        dialog = LogExport(self.services.paths.sessions, chats, current.uid if current is not None else "", self)
        dialog.exported.connect(self._on_exported)
        dialog.failed.connect(self.on_error)
        dialog.open()

    @Slot(str)
    def _on_exported(self, told: str) -> None:
        self.toast.show_text(told, "")

    @Slot()
    def export_chat(self) -> None:
        conversation = self.services.chats.conversation()
        if conversation is not None:
            self._attempt(lambda: self._export([conversation.id], f"{safe_name(conversation.title)}.md"))

    @Slot()
    def export_all(self) -> None:
        store = self.services.store
        self._attempt(lambda: self._export([chat.id for chat in store.conversations()], "pacenote-chats.json"))

    def _export(self, conversations: list[int], suggestion: str) -> None:
        name = dialogs.export_chats(self, self.services.store, conversations, suggestion)
        if name:
            self.toast.show_text(f"Exported to {name}", "")

    @Slot()
    def import_chats(self) -> None:
        self._attempt(lambda: self._show_imported(dialogs.import_chats(self, self.services.store)))

    @Slot(str)
    def import_file(self, name: str) -> None:
        """A file that was opened with Pacenote."""
        self._attempt(lambda: self._show_imported(dialogs.read_chats(self.services.store, name)))

    def _attempt(self, action: Callable[[], None]) -> None:
        """What goes wrong with a file or the store is told."""
        try:
            action()
        except KnownError as error:
            self.on_error(as_dict(error))

    def _show_imported(self, added: list[int] | None) -> None:
        """added: None when no file was chosen."""
        if added is None:
            return
        if added:
            # A search would hide them from the list.
            self.clear_search()
            self.services.chats.open(added[-1])
            self.show_list()
        self.toast.show_text(f"Imported {figures.count(len(added), 'chat')}", "")

    @Slot()
    def self_test(self) -> None:
        """Not modal: the chats stay usable meanwhile. Asked again while it is open, it is raised."""
        if self.self_test_dialog is None or not self.self_test_dialog.isVisible():
            if self.self_test_dialog is not None:
                self.self_test_dialog.deleteLater()
            self.self_test_dialog = SelfTestDialog(self)
            self.self_test_dialog.failed.connect(self.on_error)
            self.self_test_dialog.show()
        self.self_test_dialog.raise_()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.self_test_dialog is not None:
            self.self_test_dialog.close()
        super().closeEvent(event)


def safe_name(title: str) -> str:
    """A title as a file name."""
    kept = "".join(c if c.isalnum() or c in " -_" else " " for c in title)
    return "-".join(kept.split())[:40] or "chat"
