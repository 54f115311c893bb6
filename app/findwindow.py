"""What the window does for finding: in the open chat, and in all."""

from __future__ import annotations

from PySide6.QtCore import Slot

from app.filewindow import FileWindow


class FindWindow(FileWindow):
    """Leads from a search to the message that it is about."""

    @Slot(str)
    def on_search(self, text: str) -> None:
        self.services.chats.search = text
        self.show_list()

    @Slot()
    def search_chats(self) -> None:
        self.want_sidebar = True
        self.fold()
        self.sidebar.search.setFocus()
        self.sidebar.search.selectAll()

    @Slot()
    def find_in_chat(self) -> None:
        if self.stack.currentWidget() is self.transcript:
            self.find_bar.open_for(self.transcript.items)

    @Slot(int)
    def on_located(self, message: int) -> None:
        """A search opened the chat."""
        self.find_bar.show_hit(self.transcript.items, self.services.chats.search, message)
