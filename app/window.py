"""The main window: the parts connected, and what the menu can do."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QInputDialog

from app import dialogs, figures, menus
from app.chat.item import Item
from app.chat.rehearsal import rehearse
from app.errorcard import as_dict
from app.modelwindow import ModelWindow
from app.panel.logexport import LogExport
from app.services import Services
from app.theme import Theme
from engine import KnownError, WhenFull


class MainWindow(ModelWindow):
    """Connects the parts. All decisions are in `Chats`, `Generations` and `ModelLoader`."""

    def __init__(self, services: Services, theme: Theme, *, crash_log: Path | None = None) -> None:
        super().__init__(services, theme)
        self._crash_log = crash_log
        self.actions_by_key = menus.build(self)
        self.header.more_menu.addActions(
            [self.actions_by_key[key] for key in ("rename", "export_chat", "export_log", "delete")]
        )
        self.header.model_menu.addActions([self.actions_by_key[key] for key in ("open", "reload")])
        self._connect()
        self.restore_geometry()
        self.fold()
        self.on_model()
        services.chats.open_latest()
        self._on_list()
        self.composer.setFocus()

    def _connect(self) -> None:
        chats, generations = self.services.chats, self.services.generations
        self.sidebar.chosen.connect(chats.open)
        self.sidebar.new_chat.connect(self.new_chat)
        self.sidebar.searched.connect(self._on_search)
        self.sidebar.rename.connect(self._rename)
        self.sidebar.delete.connect(chats.delete_conversation)
        self.sidebar.settings.connect(self.open_settings)
        self.header.sidebar.connect(self.toggle_sidebar)
        self.header.panel.connect(self.toggle_panel)
        self.find_bar.found.connect(self.transcript.scroll_to)
        self.find_bar.closed.connect(self.composer.setFocus)
        self.transcript.copy.connect(self._copy)
        self.transcript.again.connect(chats.regenerate)
        self.transcript.edit.connect(chats.edit)
        self.transcript.delete.connect(chats.delete_message)
        self.transcript.check.connect(self._check)
        self.transcript.branch.connect(chats.switch_branch)
        self.services.checks.item_changed.connect(self.transcript.refresh)
        self.services.checks.failed.connect(self.on_error)
        self.transcript.act.connect(self._on_message_action)
        self.empty.example.connect(chats.send)
        self.composer.send.connect(chats.send)
        self.composer.stop.connect(chats.stop)
        self.composer.edited.connect(self._on_typed)
        self.composer.edit_last.connect(chats.edit_last)
        self.composer.cancel_edit.connect(chats.cancel_edit)
        self.toast.acted.connect(chats.undo)
        chats.list_changed.connect(self._on_list)
        chats.opened.connect(self._on_opened)
        chats.appended.connect(self._on_appended)
        chats.draft_changed.connect(self._on_draft)
        chats.sent.connect(self.composer.clear)
        chats.editing_changed.connect(self.composer.set_editing)
        chats.deleted.connect(self.toast.show_text)
        chats.failed.connect(self.on_error)
        generations.item_changed.connect(self.transcript.refresh)
        generations.live_changed.connect(self.refresh_live)
        generations.finished.connect(self._on_finished)
        generations.alarm.connect(self._on_alarm)
        generations.store_failed.connect(self._on_store_failed)
        generations.store_recovered.connect(self._on_store_recovered)

    def rehearse(self) -> None:
        """Spend a first reply's first-time costs now, about 30 ms, while nobody waits for anything."""
        rehearse(self.transcript.viewport())

    # chats

    @Slot()
    def new_chat(self) -> None:
        self.services.chats.new_chat()
        self._on_list()
        self.composer.setFocus()

    @Slot()
    def _on_list(self) -> None:
        chats = self.services.chats
        self.sidebar.show_conversations(
            chats.conversations(), chats.current, self.services.generations.live_conversations()
        )
        self._show_title()

    def _show_title(self) -> None:
        conversation = self.services.chats.conversation()
        title = conversation.title if conversation is not None and conversation.title else "New chat"
        self.header.show_title(title)
        self.setWindowTitle("Pacenote" if conversation is None else f"{title} – Pacenote")

    @Slot(bool)
    def _on_opened(self, to_end: bool) -> None:
        items = self.services.chats.items()
        self.transcript.set_items(items, to_end=to_end)
        self.stack.setCurrentWidget(self.transcript if items else self.empty)
        self.find_bar.hide()
        self._show_title()
        self.refresh_live()
        if not self.services.generations.live_conversations():
            # Nothing runs, so the panel shows what is on screen: this chat's last reply.
            replies = [item for item in items if item.role == "assistant"]
            self.services.meter.show_finished(replies[-1].figures if replies else None)
            for view in (self.panel, self.strip):
                view.tick()

    @Slot(object)
    def _on_appended(self, item: Item) -> None:
        self.transcript.append(item)
        self.stack.setCurrentWidget(self.transcript)

    @Slot()
    def refresh_live(self) -> None:
        chats, generations = self.services.chats, self.services.generations
        self.composer.set_busy(chats.busy)
        live = bool(generations.live_conversations())
        for view in (self.panel, self.strip):
            view.set_live(live)
        self.sidebar.model.live = generations.live_conversations()
        self.sidebar.list.viewport().update()
        self.actions_by_key["stop"].setEnabled(chats.busy or self.services.loader.loading)
        for key in ("again", "edit_last"):
            self.actions_by_key[key].setEnabled(bool(chats.current) and not chats.busy)
        for key in ("rename", "delete", "export_chat", "export_log"):
            self.actions_by_key[key].setEnabled(bool(chats.current))

    @Slot(int, int)
    def _on_finished(self, conversation: int, message: int) -> None:
        self._on_list()
        if conversation == self.services.chats.current:
            dialogs.announce(self.transcript, "The reply is complete")

    @Slot(str)
    def _on_draft(self, text: str) -> None:
        self.composer.set_text(text)

    @Slot()
    def _on_typed(self) -> None:
        self.services.chats.note_draft(self.composer.text())

    @Slot(str)
    def _on_search(self, text: str) -> None:
        self.services.chats.search = text
        self._on_list()

    @Slot(int)
    def _copy(self, message: int) -> None:
        """The stored source, byte for byte; without the reasoning."""
        for item in self.transcript.items:
            if item.id == message:
                QGuiApplication.clipboard().setText(item.content)
                self.toast.show_text("Copied", "")

    @Slot(int)
    def _check(self, message: int) -> None:
        for item in self.transcript.items:
            if item.id == message:
                self.services.chats.check(item)

    @Slot(int, str)
    def _on_message_action(self, message: int, key: str) -> None:
        if key == "regenerate":
            self.services.chats.regenerate(message)
        elif key == "leave_out":
            self.services.chats.regenerate(message, WhenFull.DROP_OLDEST)
        elif key == "edit":
            reply = self.services.store.message(message)
            if reply is not None and reply.parent_id is not None:
                self.services.chats.edit(reply.parent_id)
                self.composer.setFocus()

    @Slot(str)
    def _on_alarm(self, text: str) -> None:
        self.toast.show_text(text, "")  # in short; the panel has all of it

    # menu

    @Slot()
    def stop(self) -> None:
        if self.services.chats.busy:
            self.services.chats.stop()
        elif self.services.loader.loading:
            self.services.loader.cancel()

    @Slot()
    def regenerate(self) -> None:
        self.services.chats.regenerate_last()

    @Slot()
    def edit_last(self) -> None:
        self.services.chats.edit_last()

    @Slot()
    def undo_delete(self) -> None:
        self.toast.hide()
        self.services.chats.undo()

    @Slot()
    def copy_last(self) -> None:
        replies = [item for item in self.transcript.items if item.role == "assistant"]
        if replies:
            self._copy(replies[-1].id)

    @Slot()
    def find_in_chat(self) -> None:
        if self.stack.currentWidget() is self.transcript:
            self.find_bar.open_for(self.transcript.items)

    @Slot()
    def search_chats(self) -> None:
        self.want_sidebar = True
        self.fold()
        self.sidebar.search.setFocus()
        self.sidebar.search.selectAll()

    @Slot()
    def rename_chat(self) -> None:
        self._rename(self.services.chats.current)

    @Slot(int)
    def _rename(self, number: int) -> None:
        conversation = self.services.store.conversation(number)
        if conversation is not None:
            title, ok = QInputDialog.getText(self, "Rename chat", "Title", text=conversation.title)
            if ok:
                self.services.chats.rename(number, title)

    @Slot()
    def delete_chat(self) -> None:
        self.services.chats.delete_conversation(self.services.chats.current)

    @Slot()
    def jump_to_latest(self) -> None:
        self.transcript.jump_to_end()

    @Slot()
    def zoom(self) -> None:
        if self.isMaximized():
            self.showNormal()
        else:
            self.showMaximized()

    @Slot()
    def quit(self) -> None:
        if self.close():
            QApplication.quit()

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
            self._export([conversation.id], f"{safe_name(conversation.title)}.md")

    @Slot()
    def export_all(self) -> None:
        self._export([chat.id for chat in self.services.store.conversations()], "pacenote-chats.json")

    def _export(self, conversations: list[int], suggestion: str) -> None:
        try:
            name = dialogs.export_chats(self, self.services.store, conversations, suggestion)
            if name:
                self.toast.show_text(f"Exported to {name}", "")
        except KnownError as error:
            self.on_error(as_dict(error))

    @Slot()
    def import_chats(self) -> None:
        try:
            added = dialogs.import_chats(self, self.services.store)
        except KnownError as error:
            self.on_error(as_dict(error))
            return
        if added:
            self._on_list()
            self.services.chats.open(added[-1])
            self._on_list()
            self.toast.show_text(f"Imported {figures.count(len(added), 'chat')}", "")

    @Slot()
    def about(self) -> None:
        dialogs.about(self)

    @Slot()
    def show_crash_log(self) -> None:
        dialogs.show_crash_log(self, self._crash_log)

    @Slot()
    def show_and_raise(self) -> None:
        """A second start knocked."""
        if self.isMinimized():
            self.showNormal()
        self.show()
        self.raise_()
        self.activateWindow()

    def closeEvent(self, event: QCloseEvent) -> None:
        generations = self.services.generations
        generations.save_again()
        unsaved = generations.unsaved()
        if unsaved and not dialogs.quit_anyway(self, unsaved):
            event.ignore()
            return
        self.services.chats.save_draft()
        self.save_geometry()
        super().closeEvent(event)


def safe_name(title: str) -> str:
    """A title as a file name."""
    kept = "".join(c if c.isalnum() or c in " -_" else " " for c in title)
    return "-".join(kept.split())[:40] or "chat"
