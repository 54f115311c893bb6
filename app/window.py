"""The main window: the parts connected, and what the menu can do."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QInputDialog

from app import dialogs, menus
from app.chat.chatsettings import ChatSettingsDialog
from app.chat.item import Item
from app.chat.rehearsal import rehearse
from app.chat.templates import TemplateDialog, TemplateMenu
from app.findwindow import FindWindow
from app.licences import LicencesDialog
from app.services import Services
from app.store import Draft
from app.store.attachments import compose
from app.theme import Theme
from engine import WhenFull


class MainWindow(FindWindow):
    """Connects the parts. All decisions are in `Chats`, `Generations` and `ModelLoader`."""

    def __init__(self, services: Services, theme: Theme, *, crash_log: Path | None = None) -> None:
        super().__init__(services, theme)
        self._crash_log = crash_log
        self.actions_by_key = menus.build(self)
        self.header.more_menu.addActions(
            [self.actions_by_key[key] for key in ("chat_settings", "rename", "export_chat", "export_log", "delete")]
        )
        self.header.model_menu.addActions([self.actions_by_key[key] for key in ("open", "reload")])
        self.templates = TemplateMenu(services.store, self.composer.menu)
        self.composer.menu.addAction(self.actions_by_key["attach"])
        self.composer.menu.addMenu(self.templates)
        self.composer.menu.addActions([self.actions_by_key[key] for key in ("save_template", "manage_templates")])
        self.setAcceptDrops(True)
        self._connect()
        self.restore_geometry()
        self.fold()
        self.on_model()
        services.chats.open_latest()
        self.show_list()
        self.composer.setFocus()

    def _connect(self) -> None:
        chats, generations = self.services.chats, self.services.generations
        self.sidebar.chosen.connect(chats.open)
        self.sidebar.new_chat.connect(self.new_chat)
        self.sidebar.searched.connect(self.on_search)
        self.sidebar.rename.connect(self._rename)
        self.sidebar.delete.connect(chats.delete_conversation)
        self.sidebar.settings.connect(self.open_settings)
        self.header.sidebar.connect(self.toggle_sidebar)
        self.header.panel.connect(self.toggle_panel)
        self.find_bar.found.connect(self.transcript.go_to)
        self.find_bar.marked.connect(self.transcript.mark_words)
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
        self.empty.example.connect(chats.send_text)
        self.empty.example.connect(self.composer.setFocus)
        self.composer.failed.connect(self.on_error)
        self.templates.chosen.connect(self.composer.insert)
        self.templates.failed.connect(self.on_error)
        self.composer.send.connect(chats.send)
        self.composer.stop.connect(chats.stop)
        self.composer.edited.connect(self._on_typed)
        self.composer.edit_last.connect(chats.edit_last)
        self.composer.cancel_edit.connect(chats.cancel_edit)
        self.toast.acted.connect(chats.undo)
        chats.list_changed.connect(self.show_list)
        chats.opened.connect(self._on_opened)
        chats.located.connect(self.on_located)
        chats.appended.connect(self._on_appended)
        chats.leaving.connect(self.composer.settle)
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

    def clear_search(self) -> None:
        self.sidebar.search.clear()
        self.services.chats.search = ""

    @Slot()
    def new_chat(self) -> None:
        """It ends a search, which would hide it from the list."""
        self.clear_search()
        self.services.chats.new_chat()
        self.show_list()
        self.composer.setFocus()

    @Slot()
    def show_list(self) -> None:
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
        self.composer.history = [item.content for item in items if item.role == "user" and item.content]
        self.find_bar.leave()
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
        if item.role == "user" and item.content:
            self.composer.history.append(item.content)
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
        items = self.transcript.items
        for key in ("again", "edit_last"):
            self.actions_by_key[key].setEnabled(bool(items) and not chats.busy)
        self.actions_by_key["go_on"].setEnabled(bool(items) and items[-1].can_go_on and not chats.busy)
        for key in ("rename", "delete", "export_chat", "export_log"):
            self.actions_by_key[key].setEnabled(bool(chats.current))

    @Slot(int, int)
    def _on_finished(self, conversation: int, message: int) -> None:
        self.show_list()
        if conversation == self.services.chats.current:
            dialogs.announce(self.transcript, "The reply is complete")

    @Slot(object)
    def _on_draft(self, draft: Draft) -> None:
        self.composer.set_draft(draft)

    @Slot()
    def _on_typed(self) -> None:
        self.services.chats.note_draft(self.composer.unsent())

    @Slot(int)
    def _copy(self, message: int) -> None:
        """The stored source, byte for byte; without the reasoning. Of a user's message all that was sent."""
        for item in self.transcript.items:
            if item.id == message:
                text = compose(item.content, item.attachments) if item.attachments else item.content
                QGuiApplication.clipboard().setText(text)
                self.toast.show_text("Copied", "")

    @Slot(int)
    def _check(self, message: int) -> None:
        for item in self.transcript.items:
            if item.id == message:
                self.services.chats.check(item)

    @Slot(int, str)
    def _on_message_action(self, message: int, key: str) -> None:
        if key == "go_on":
            self.services.chats.go_on(message)
        elif key == "regenerate":
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
    def go_on(self) -> None:
        self.services.chats.go_on_last()

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
    def chat_settings(self) -> None:
        chats = self.services.chats
        dialog = ChatSettingsDialog(chats.current, chats.options, self.services.settings, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.changed.connect(chats.set_options)
        dialog.open()

    @Slot()
    def attach(self) -> None:
        paths, _ = QFileDialog.getOpenFileNames(self, "Attach text files")
        self.composer.add_files(paths)
        self.composer.setFocus()

    @Slot()
    def save_template(self) -> None:
        self._template_dialog(self.composer.text())

    @Slot()
    def manage_templates(self) -> None:
        self._template_dialog("")

    def _template_dialog(self, text: str) -> None:
        dialog = TemplateDialog(self.services.store, text, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.failed.connect(self.on_error)
        dialog.open()

    @Slot()
    def speculation_view(self) -> None:
        """Mark on the text which round each token came of, or stop marking."""
        on = self.actions_by_key["speculation_view"].isChecked()
        self.services.generations.marked = on
        self.transcript.show_marks(self.services.chats.trace_of if on else None)

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
    def about(self) -> None:
        dialogs.about(self)

    @Slot()
    def show_licences(self) -> None:
        dialog = LicencesDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

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

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.composer.add_files([url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()])
        event.acceptProposedAction()
        self.composer.setFocus()

    def closeEvent(self, event: QCloseEvent) -> None:
        generations = self.services.generations
        generations.save_again()
        unsaved = generations.unsaved()
        if unsaved and not dialogs.quit_anyway(self, unsaved):
            event.ignore()
            return
        self.composer.settle()
        self.services.chats.save_draft()
        self.save_geometry()
        super().closeEvent(event)
