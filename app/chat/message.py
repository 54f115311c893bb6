"""One message on screen: a user's block, or a reply with its reasoning, text, state, figures and actions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRect, Qt, Signal, Slot
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QPushButton, QWidget

from app.chat.actions import Actions
from app.chat.chips import AttachmentDialog, Chips
from app.chat.item import Item
from app.chat.markdown.prose import Prose
from app.errorcard import ErrorCard
from app.store import Attachment
from app.store.values import State
from app.theme.icons import icon
from app.theme.manager import current, use_class
from app.theme.tokens import GAP_4, GAP_8, GAP_16

ACTIONS_HEIGHT = 28
MOST_SHOWN = 8_000
_STATES = {
    State.STOPPED: "Stopped.",
    State.INTERRUPTED: "Interrupted: Pacenote ended while this was being written.",
}


class MessageView(QWidget):
    """Draws an Item. Signals carry the message's id (and a step, an action key)."""

    copy = Signal(int)
    again = Signal(int)
    edit = Signal(int)
    delete = Signal(int)
    check = Signal(int)
    branch = Signal(int, int)
    act = Signal(int, str)
    resized = Signal(int)

    def __init__(self, item: Item, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # Grows downwards; what is above stays as it was drawn.
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.item = item
        self._places: list[tuple[QWidget, QRect]] = []
        self._actions = Actions(item, self)
        self._actions.pressed.connect(self._on_action)
        self._error: ErrorCard | None = None
        self._note = QLabel(self)
        use_class(self._note, "caption")
        self._note.setWordWrap(True)
        self._note.setTextFormat(Qt.TextFormat.PlainText)
        self._go_on: QPushButton | None = None

    @property
    def reusable(self) -> bool:
        """Whether it may become another message's: it has no state but its item's, and nobody is in it."""
        focus = QApplication.focusWidget()
        return self._error is None and not self.item.streaming and not (focus and self.isAncestorOf(focus))

    def show_item(self, item: Item) -> None:
        """Be the view of another message of the same role. To make one anew takes several times as long."""
        self.item = item
        self._places.clear()
        self._actions.show_item(item)

    def refresh(self) -> None:
        """Show the item as it is now."""
        item = self.item
        note = item.waiting or "\n".join(t for t in (_STATES.get(item.state, ""), item.end_note, item.check) if t)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self._show_go_on()
        self._show_error()
        self._actions.refresh()

    def mark_words(self, words: Sequence[str]) -> None:
        """Mark where words are in the text; none to mark nothing."""
        raise NotImplementedError

    def first_found(self) -> int | None:
        """Pixels from the top to the first word that is marked; None where there is none."""
        raise NotImplementedError

    def wait_ms(self) -> int:
        """How long the next `refresh` should wait, in milliseconds, so that drawing leaves time for the rest."""
        return 0

    @property
    def behind(self) -> bool:
        """Whether `refresh` did not draw all of it."""
        return False

    def refresh_theme(self) -> None:
        self._actions.refresh()

    def height_for(self, width: int) -> int:
        """Height at this width, in pixels. `place` then puts what is in it where this found room for it."""
        raise NotImplementedError

    def place(self) -> None:
        """Apart from `height_for`, because the transcript first scrolls what is drawn already.

        Qt cannot scroll what a widget in it has been resized on.
        """
        places, self._places = self._places, []
        for widget, where in places:
            widget.setGeometry(where)

    def _put(self, widget: QWidget, x: int, y: int, width: int, height: int) -> None:
        self._places.append((widget, QRect(x, y, width, height)))

    def _show_error(self) -> None:
        if self.item.error is None:
            if self._error is not None:
                self._error.hide()
            return
        if self._error is None:
            self._error = ErrorCard(self)
            self._error.acted.connect(self._on_error_action)
            self._error.resized.connect(self._on_resized)
        kind = self.item.error.get("kind", "")
        actions = [("edit", "Edit") if kind.startswith("context") else ("regenerate", "Regenerate")]
        if self.item.can_go_on:
            actions.insert(0, ("go_on", "Continue"))
        if kind == "context, too many turns":
            actions.insert(0, ("leave_out", "Leave out the oldest turns"))
        self._error.show_error(self.item.error, *actions)
        self._error.show()

    def _show_go_on(self) -> None:
        """A reply that was cut can go on; after an error its card has the button."""
        wanted = self.item.can_go_on and self.item.error is None
        if wanted and self._go_on is None:
            self._go_on = QPushButton("Continue", self)
            use_class(self._go_on, "small")
            self._go_on.setAccessibleName("Continue this reply")
            self._go_on.setToolTip("Goes on as if it had never stopped")
            self._go_on.clicked.connect(self._on_go_on)
        if self._go_on is not None:
            self._go_on.setIcon(icon("play", current().accent))
            self._go_on.setVisible(wanted)

    def _place_below(self, y: int, left: int, width: int, *, right: bool = False) -> int:
        """Note, error and actions under the text. Returns the height so far."""
        if not self._note.isHidden():
            y += GAP_4
            height = max(16, self._note.heightForWidth(width))
            self._put(self._note, left, y, width, height)
            y += height
        if self._go_on is not None and not self._go_on.isHidden():
            y += GAP_8
            size = self._go_on.sizeHint()
            self._put(self._go_on, left, y, size.width(), size.height())
            y += size.height() + GAP_4
        if self._error is not None and not self._error.isHidden():
            y += GAP_8
            height = self._error.height_for(width)
            self._put(self._error, left, y, width, height)
            y += height
        y += GAP_4
        wanted = min(width, self._actions.sizeHint().width()) if right else width
        # The icons line up with the text, not the padding of their buttons.
        shift = 6 if right else -6
        self._put(self._actions, left + width - wanted + shift, y, wanted, ACTIONS_HEIGHT)
        return y + ACTIONS_HEIGHT

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._actions.set_near(True)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._actions.set_near(False)

    @Slot(str)
    def _on_action(self, key: str) -> None:
        number = self.item.id
        if key == "copy":
            self.copy.emit(number)
        elif key == "again":
            self.again.emit(number)
        elif key == "edit":
            self.edit.emit(number)
        elif key == "check":
            self.check.emit(number)
        elif key == "delete":
            self.delete.emit(number)
        else:
            self.branch.emit(number, -1 if key == "left" else 1)

    @Slot()
    def _on_go_on(self) -> None:
        self.act.emit(self.item.id, "go_on")

    @Slot(str)
    def _on_error_action(self, key: str) -> None:
        self.act.emit(self.item.id, key)

    @Slot()
    def _on_resized(self) -> None:
        self.resized.emit(self.item.id)


class UserView(MessageView):
    """What the user wrote, exactly, in a soft block at the right."""

    def __init__(self, item: Item, parent: QWidget | None = None) -> None:
        super().__init__(item, parent)
        self._bubble = QFrame(self)
        use_class(self._bubble, "bubble")
        self._text = Prose(self._bubble)
        self._text.setAccessibleName("You")
        self._chips = Chips(removable=False, parent=self)
        self._chips.pressed.connect(self._on_chip)
        self._shown = ""
        self.show_item(item)

    def show_item(self, item: Item) -> None:
        super().show_item(item)
        self._shown = excerpt(item.content)
        self._text.reset()
        self._text.show_plain(self._shown)
        self._chips.show_attachments(item.attachments)
        self._bubble.setVisible(bool(self._shown.strip()) or not item.attachments)
        self.refresh()

    def mark_words(self, words: Sequence[str]) -> None:
        self._text.mark_words(words)

    def first_found(self) -> int | None:
        inside = self._text.first_found()
        return None if inside is None else self._bubble.y() + self._text.y() + inside

    @Slot(object)
    def _on_chip(self, attachment: Attachment) -> None:
        dialog = AttachmentDialog(attachment, movable=False, parent=self.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def refresh_theme(self) -> None:
        self._text.show_plain(self._shown)
        self._chips.refresh_theme()
        super().refresh_theme()

    def height_for(self, width: int) -> int:
        most = max(120, int(width * 0.82))
        y = 0
        if self.item.attachments:
            height = self._chips.height_for(most, right=True)
            self._put(self._chips, width - most, 0, most, height)
            y = height
            if self._bubble.isHidden():
                return self._place_below(y, 0, width, right=True)
            y += GAP_8
        document = self._text.document()
        # Laid out at the full width first, by the widget too: the ideal width is that of the last layout.
        self._text.resize(most - 2 * GAP_16, 30)
        self._text.height_for(most - 2 * GAP_16)
        inner = min(most - 2 * GAP_16, int(document.idealWidth()) + 2)
        self._text.resize(inner, 30)
        height = self._text.height_for(inner)
        self._put(self._bubble, width - inner - 2 * GAP_16, y, inner + 2 * GAP_16, height + 2 * 10)
        self._put(self._text, GAP_16, 10, inner, height)
        return self._place_below(y + height + 20, 0, width, right=True)


def excerpt(text: str) -> str:
    """A very long message is shown in part: all of it was sent, and Copy gives all of it."""
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[:MOST_SHOWN]}…\n\n[{len(text) - MOST_SHOWN:,} more characters are not shown. Copy gives all of it.]"


MESSAGE_GAP = GAP_16
