"""One message on screen: a user's block, or a reply with its reasoning, text, state, figures and actions."""

from __future__ import annotations

from time import perf_counter

from PySide6.QtCore import QEvent, Qt, Signal, Slot
from PySide6.QtGui import QEnterEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QWidget

from app.chat.actions import Actions
from app.chat.item import Item
from app.chat.markdown.body import Body
from app.chat.markdown.prose import Prose
from app.errorcard import ErrorCard
from app.store.values import State
from app.theme.icons import icon
from app.theme.manager import current, use_class
from app.theme.tokens import GAP_4, GAP_8, GAP_12, GAP_16

ACTIONS_HEIGHT = 28
MOST_SHOWN = 8_000
BUDGET_MS = 5.0
"""Longest drawing at a time; the rest follows in the next turns of the event loop."""
REST = 5
"""Drawing of one growing reply takes at most one part in REST + 1 of the time."""
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
        self.item = item
        self._actions = Actions(item, self)
        self._actions.pressed.connect(self._on_action)
        self._error: ErrorCard | None = None
        self._note = QLabel(self)
        use_class(self._note, "caption")
        self._note.setWordWrap(True)
        self._note.setTextFormat(Qt.TextFormat.PlainText)

    def refresh(self) -> None:
        """Show the item as it is now."""
        item = self.item
        note = item.waiting or "\n".join(t for t in (_STATES.get(item.state, ""), item.end_note, item.check) if t)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self._show_error()
        self._actions.refresh()

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
        raise NotImplementedError

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
        if kind == "context, too many turns":
            actions.insert(0, ("leave_out", "Leave out the oldest turns"))
        self._error.show_error(self.item.error, *actions)
        self._error.show()

    def _place_below(self, y: int, left: int, width: int, *, right: bool = False) -> int:
        """Note, error and actions under the text. Returns the height so far."""
        if not self._note.isHidden():
            y += GAP_4
            height = max(16, self._note.heightForWidth(width))
            self._note.setGeometry(left, y, width, height)
            y += height
        if self._error is not None and not self._error.isHidden():
            y += GAP_8
            height = self._error.height_for(width)
            self._error.setGeometry(left, y, width, height)
            y += height
        y += GAP_4
        wanted = min(width, self._actions.sizeHint().width()) if right else width
        # The icons line up with the text, not the padding of their buttons.
        shift = 6 if right else -6
        self._actions.setGeometry(left + width - wanted + shift, y, wanted, ACTIONS_HEIGHT)
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
        self._shown = excerpt(item.content)
        self._text.show_plain(self._shown)
        self.refresh()

    def refresh_theme(self) -> None:
        self._text.show_plain(self._shown)
        super().refresh_theme()

    def height_for(self, width: int) -> int:
        most = max(120, int(width * 0.82))
        document = self._text.document()
        # Laid out at the full width first, by the widget too: the ideal width is that of the last layout.
        self._text.resize(most - 2 * GAP_16, 30)
        self._text.height_for(most - 2 * GAP_16)
        inner = min(most - 2 * GAP_16, int(document.idealWidth()) + 2)
        self._text.resize(inner, 30)
        height = self._text.height_for(inner)
        self._bubble.setGeometry(width - inner - 2 * GAP_16, 0, inner + 2 * GAP_16, height + 2 * 10)
        self._text.setGeometry(GAP_16, 10, inner, height)
        return self._place_below(height + 20, 0, width, right=True)


class ReplyView(MessageView):
    """What the model wrote."""

    def __init__(self, item: Item, parent: QWidget | None = None) -> None:
        super().__init__(item, parent)
        self._body = Body(self)
        self._body.setAccessibleName("Reply")
        self._caret = QFrame(self._body)
        self._caret.setFixedSize(2, 18)
        self._due = 0.0
        self._reasoning: Body | None = None
        self._fold: QPushButton | None = None
        # None: as it comes, open while only reasoning has been written.
        self._open: bool | None = None
        self.refresh_theme()
        self.refresh()

    @property
    def body(self) -> Body:
        return self._body

    @property
    def reasoning_open(self) -> bool:
        if self._open is not None:
            return self._open
        return self.item.streaming and not self.item.content

    def refresh(self) -> None:
        item, started = self.item, perf_counter()
        self._body.set_source(item.content, complete=not item.streaming, budget_ms=BUDGET_MS)
        self._refresh_reasoning()
        super().refresh()
        # A long unfinished block is drawn whole each time; then less often, so that it takes its share of time only.
        now = perf_counter()
        self._due = now + (now - started) * REST

    def wait_ms(self) -> int:
        return max(0, int(1000 * (self._due - perf_counter()))) if self.item.streaming else 0

    @property
    def behind(self) -> bool:
        reasoning = self._reasoning
        return self._body.behind or (reasoning is not None and not reasoning.isHidden() and reasoning.behind)

    def refresh_theme(self) -> None:
        self._caret.setStyleSheet(f"background: {current().accent};")
        self._body.refresh_theme()
        if self._reasoning is not None:
            self._reasoning.refresh_theme()
        super().refresh_theme()

    def _refresh_reasoning(self) -> None:
        item = self.item
        if not item.reasoning:
            return
        if self._fold is None:
            self._fold = QPushButton(self)
            use_class(self._fold, "quiet")
            self._fold.clicked.connect(self.toggle_reasoning)
            self._fold.show()
        opened = self.reasoning_open
        thinking = item.streaming and not item.content
        self._fold.setText("Reasoning…" if thinking else "Reasoning")
        self._fold.setIcon(icon("down" if opened else "right", current().text_soft))
        self._fold.setAccessibleName("Hide reasoning" if opened else "Show reasoning")
        # Folded reasoning costs nothing: it is drawn when it is opened.
        if opened:
            if self._reasoning is None:
                self._reasoning = Body(self, style="reasoning")
            self._reasoning.set_source(item.reasoning, complete=not thinking, budget_ms=BUDGET_MS)
            self._reasoning.show()
        elif self._reasoning is not None:
            self._reasoning.hide()

    @Slot()
    def toggle_reasoning(self) -> None:
        self._open = not self.reasoning_open
        self._refresh_reasoning()
        self.resized.emit(self.item.id)

    def height_for(self, width: int) -> int:
        y = 0
        if self._fold is not None:
            self._fold.setGeometry(-4, 0, min(width, self._fold.sizeHint().width()), 26)
            y += 26 + GAP_4
            if self._reasoning is not None and not self._reasoning.isHidden():
                height = self._reasoning.height_for(width - GAP_16)
                self._reasoning.setGeometry(GAP_16, y, width - GAP_16, height)
                y += height + GAP_12
        height = self._body.height_for(width)
        self._body.setGeometry(0, y, width, height)
        self._place_caret()
        return self._place_below(y + height, 0, width)

    def _place_caret(self) -> None:
        parts = self._body.parts
        last = parts[-1] if parts else None
        shown = self.item.streaming and isinstance(last, Prose)
        self._caret.setVisible(shown)
        if shown and isinstance(last, Prose):
            end = QTextCursor(last.document())
            end.movePosition(QTextCursor.MoveOperation.End)
            where = last.cursorRect(end)
            self._caret.move(
                min(last.width() - 2, where.right() + 2), last.y() + where.top() + (where.height() - 18) // 2
            )
            self._caret.raise_()


def excerpt(text: str) -> str:
    """A very long message is shown in part: all of it was sent, and Copy gives all of it."""
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[:MOST_SHOWN]}…\n\n[{len(text) - MOST_SHOWN:,} more characters are not shown. Copy gives all of it.]"


def view_for(item: Item, parent: QWidget) -> MessageView:
    """The view of a message."""
    return UserView(item, parent) if item.role == "user" else ReplyView(item, parent)


MESSAGE_GAP = GAP_16
