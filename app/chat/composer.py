"""Where the user writes. Enter is safe while an input method composes; Send becomes Stop in place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.chat.box import Box
from app.chat.chips import AttachmentDialog, ChipArea, Chips
from app.errorcard import as_dict
from app.store import Attachment, Draft
from app.store.attachments import MAX_BYTES, read_file, require_room, too_long
from app.text import exact_text
from app.theme.icons import icon
from app.theme.manager import current, use_class
from engine import KnownError

MOST_NAMED = 5
"""Files in a sentence."""


class Composer(QWidget):
    """The composer. What is written stays in it until `clear`, so a send that fails loses nothing.

    menu: of the button at the left; filled by the window. history: what `recall` steps through, oldest first.
    """

    send = Signal(object)
    """A Draft."""
    stop = Signal()
    edited = Signal()
    edit_last = Signal()
    cancel_edit = Signal()
    failed = Signal(dict)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._busy = False
        self._editing = False
        self.history: list[str] = []
        self._attachments: list[Attachment] = []
        # Where `recall` is in the history, what was written before it went there, and what it put into the box.
        self._recalled: tuple[int, str, str] | None = None
        self.box = Box()
        self.box.submitted.connect(self.submit)
        self.box.up_in_empty.connect(self.edit_last)
        self.box.escaped.connect(self._on_escape)
        self.box.textChanged.connect(self._on_changed)
        self.box.focused.connect(self._on_focus)
        self.box.pasted.connect(self._on_pasted)
        self.box.files.connect(self.add_files)
        self.box.picture.connect(self._on_picture)
        self.box.recall.connect(self.recall)
        self.chips = Chips(removable=True)
        self.chips.pressed.connect(self._on_chip)
        self.chips.removed.connect(self._on_chip_removed)
        self._chip_area = ChipArea(self.chips)
        self.more = QToolButton()
        use_class(self.more, "quiet")
        self.more.setFixedSize(34, 34)
        self.more.setAccessibleName("Attach files, insert a template")
        self.more.setToolTip("Attach files, insert a template")
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self.more)
        self.more.setMenu(self.menu)
        self.button = QPushButton()
        use_class(self.button, "send")
        self.button.setFixedSize(84, 34)
        self.button.clicked.connect(self._on_button)
        self._frame = QFrame()
        self._frame.setObjectName("composer")
        inner = QVBoxLayout(self._frame)
        inner.setContentsMargins(8, 8, 8, 8)
        inner.setSpacing(8)
        inner.addWidget(self._chip_area)
        row = QHBoxLayout()
        row.setSpacing(6)
        inner.addLayout(row)
        row.addWidget(self.more, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.box, 1)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        self._hint = QLabel()
        use_class(self._hint, "caption")
        self._hint.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._hint)
        layout.addWidget(self._frame)
        # In the order of the eye. No focus proxy: Tab would step over what comes before the box.
        QWidget.setTabOrder(self.chips, self.more)
        QWidget.setTabOrder(self.more, self.box)
        QWidget.setTabOrder(self.box, self.button)
        self.set_send_with("enter")
        self._refresh()

    @Slot()
    def setFocus(self) -> None:  # type: ignore[override]
        """Write."""
        self.box.setFocus()

    # state

    def text(self) -> str:
        return exact_text(self.box)

    def draft(self) -> Draft:
        return Draft(self.text(), tuple(self._attachments))

    def unsent(self) -> Draft:
        """What is to be kept: while the history is looked through, what was written before."""
        browsing = self._browsing()
        return self.draft() if browsing is None else Draft(browsing[1], tuple(self._attachments))

    @Slot()
    def settle(self) -> None:
        """Nothing of the text is in the hands of an input method any more."""
        self.box.settle()

    def set_draft(self, draft: Draft) -> None:
        self._recalled = None
        self._show_attachments(draft.attachments)
        self.set_text(draft.text)

    def set_text(self, text: str) -> None:
        self.box.setPlainText(text)
        self.box.moveCursor(self.box.textCursor().MoveOperation.End)

    def clear(self) -> None:
        self._recalled = None
        self._show_attachments(())
        self.box.clear()

    def insert(self, text: str) -> None:
        """Put a template at the cursor, with its first placeholder marked."""
        self.settle()
        cursor = self.box.textCursor()
        start = cursor.selectionStart()
        cursor.insertText(text)
        after = cursor.position()
        cursor.setPosition(start)
        self.box.setTextCursor(cursor)
        if not self.box.select_placeholder():
            cursor.setPosition(after)
            self.box.setTextCursor(cursor)
        self.box.setFocus()

    def set_busy(self, busy: bool) -> None:
        """busy: this chat's reply is being written."""
        self._busy = busy
        self._refresh()

    def set_editing(self, editing: bool) -> None:
        """editing: what is sent replaces an earlier message, on a branch of its own."""
        self._editing = editing
        self._hint.setText("Editing an earlier message. Sending makes a new branch; Esc cancels.")
        self._hint.setVisible(editing)

    @property
    def editing(self) -> bool:
        return self._editing

    def set_send_with(self, mode: str) -> None:
        """mode: "enter" or "modified" (Cmd-Enter)."""
        self.box.send_with = mode
        self.box.setPlaceholderText("Message" if mode == "enter" else "Message (Cmd-Enter sends)")

    def refresh_theme(self) -> None:
        self.chips.refresh_theme()
        self._refresh()

    # doing

    @Slot()
    def submit(self) -> None:
        """Send what is written. While a reply is being written nothing is sent and nothing is lost."""
        self.settle()
        if not self._busy and self._has_something():
            self.send.emit(self.draft())

    @Slot(list)
    def add_files(self, paths: Sequence[str]) -> None:
        """Attach text files. Those that cannot be attached are told; the others are."""
        found: list[Attachment] = []
        problems: dict[str, KnownError] = {}
        for path in paths:
            name, there = Path(path).name, [*self._attachments, *found]
            try:
                require_room(there, name)  # thousands may be dropped: no more are read than can be taken
                one = read_file(Path(path))
                require_room(there, one.name, len(one.text))
                found.append(one)
            except KnownError as error:
                problems[name] = error
        if found:
            self._show_attachments([*self._attachments, *found])
            self.edited.emit()
        self._tell(problems)

    def _tell(self, problems: dict[str, KnownError]) -> None:
        """By the name of what was not attached."""
        if not problems:
            return
        first, *others = problems
        told = as_dict(problems[first])
        if others:
            more = f" and {len(others) - MOST_NAMED:,} more" if len(others) > MOST_NAMED else ""
            told["what"] += f" Not attached either: {', '.join(others[:MOST_NAMED])}{more}."
            told["detail"] = "\n".join(f"{name}: {problems[name].what}" for name in list(problems)[:100])
        self.failed.emit(told)

    @Slot(int)
    def recall(self, step: int) -> None:
        """Put what was sent before into the box; what was written comes back at the end.

        A message that was fetched and then changed is what is written now.
        """
        at, written, _ = self._browsing() or (len(self.history), self.text(), "")
        at = min(at, len(self.history))
        to = max(0, min(len(self.history), at + step))
        if to != at:
            text = self.history[to] if to < len(self.history) else written
            self._recalled = (to, written, text) if to < len(self.history) else None
            self.set_text(text)

    def _browsing(self) -> tuple[int, str, str] | None:
        """Where in the history the box is, unless what it shows was changed."""
        return self._recalled if self._recalled is not None and self._recalled[2] == self.text() else None

    @Slot(str)
    def _on_pasted(self, text: str) -> None:
        one = Attachment("Pasted text", text, pasted=True)
        try:
            if len(text) > MAX_BYTES:
                raise too_long("The pasted text", len(text))
            require_room(self._attachments, one.name, len(text))
        except KnownError as error:
            self.failed.emit(as_dict(error))
            return
        self._show_attachments([*self._attachments, one])
        self.edited.emit()

    @Slot()
    def _on_picture(self) -> None:
        error = KnownError(
            "Pictures cannot be attached.", kept="Your message is unchanged.", todo="The models here read text only."
        )
        self.failed.emit(as_dict(error))

    @Slot(object)
    def _on_chip(self, attachment: Attachment) -> None:
        dialog = AttachmentDialog(attachment, movable=True, parent=self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.to_text.connect(self._on_to_text)
        dialog.open()

    @Slot(object)
    def _on_to_text(self, attachment: Attachment) -> None:
        self._on_chip_removed(attachment)
        self.box.insertPlainText(attachment.text)

    @Slot(object)
    def _on_chip_removed(self, attachment: Attachment) -> None:
        self._show_attachments([kept for kept in self._attachments if kept is not attachment])
        self.edited.emit()
        self.box.setFocus()

    def _show_attachments(self, attachments: Sequence[Attachment]) -> None:
        self._attachments = list(attachments)
        self.chips.show_attachments(self._attachments)
        self._chip_area.fit()
        self._refresh()

    def _has_something(self) -> bool:
        return bool(self._attachments) or bool(self.text().strip())

    @Slot()
    def _on_button(self) -> None:
        if self._busy:
            self.stop.emit()
        else:
            self.submit()

    @Slot()
    def _on_changed(self) -> None:
        self._refresh()
        self.edited.emit()

    @Slot(bool)
    def _on_focus(self, focused: bool) -> None:
        self._frame.setProperty("focused", focused)
        self._frame.style().unpolish(self._frame)
        self._frame.style().polish(self._frame)

    @Slot()
    def _on_escape(self) -> None:
        if self._editing:
            self.cancel_edit.emit()
        elif self._busy:
            self.stop.emit()

    def _refresh(self) -> None:
        roles = current()
        self.more.setIcon(icon("plus", roles.text_soft))
        self.button.setText("Stop" if self._busy else "Send")
        self.button.setAccessibleName("Stop the reply" if self._busy else "Send the message")
        self.button.setIcon(icon("stop" if self._busy else "send", roles.on_accent))
        self.button.setEnabled(self._busy or self._has_something())
        if not self.button.isEnabled():
            self.button.setIcon(icon("send", roles.text_soft))
