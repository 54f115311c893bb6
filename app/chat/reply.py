"""A reply on screen: its reasoning, its text, and the marks of the speculation view."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QWidget

from app import figures
from app.chat.item import Item
from app.chat.markdown.body import Body
from app.chat.markdown.marks import Marking
from app.chat.markdown.prose import Prose
from app.chat.message import MessageView, UserView
from app.chat.trace import Origin, Trace
from app.theme.icons import icon
from app.theme.manager import current, use_class
from app.theme.tokens import GAP_4, GAP_8, GAP_12, GAP_16

BUDGET_MS = 5.0
"""Longest drawing at a time; the rest follows in the next turns of the event loop."""
REST = 5
"""Drawing of one growing reply takes at most one part in REST + 1 of the time."""


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
        self._marked = False
        self._legend = QLabel(self)
        use_class(self._legend, "caption")
        self._legend.setTextFormat(Qt.TextFormat.RichText)
        self._legend.setWordWrap(True)
        self._legend.hide()
        self.refresh_theme()
        self.refresh()

    @property
    def body(self) -> Body:
        return self._body

    @property
    def reusable(self) -> bool:
        bodies = (self._body, self._reasoning)
        return super().reusable and not self._marked and all(b is None or b.reusable for b in bodies)

    def show_item(self, item: Item) -> None:
        super().show_item(item)
        self._due, self._open = 0.0, None
        self._body.reset()
        if self._reasoning is not None:
            self._reasoning.reset()
            self._reasoning.hide()
        if self._fold is not None:
            self._fold.hide()
        self.refresh()

    def show_marks(self, trace: Trace | None, *, on: bool) -> None:
        """Mark which round each token came of, or stop marking. trace: None when that is not known."""
        self._marked = on
        self.item.trace = trace if trace is not None else self.item.trace
        known = self.item.trace if on else None
        self._body.set_marking(Marking(known, "answer") if known is not None else None)
        self._mark_reasoning()
        self._refresh_legend()

    def _mark_reasoning(self) -> None:
        known = self.item.trace if self._marked else None
        if self._reasoning is not None:
            self._reasoning.set_marking(Marking(known, "reasoning") if known is not None else None)

    def _refresh_legend(self) -> None:
        self._legend.setVisible(self._marked)
        if self._marked:
            self._legend.setText(legend(self.item.trace))

    @property
    def reasoning_open(self) -> bool:
        if self._open is not None:
            return self._open
        return self.item.streaming and not self.item.content

    def refresh(self) -> None:
        item, started = self.item, perf_counter()
        self._body.set_source(item.content, complete=not item.streaming, budget_ms=BUDGET_MS)
        self._refresh_reasoning()
        self._refresh_legend()
        super().refresh()
        # A long unfinished block is drawn whole each time; then less often, so that it takes its share of time only.
        now = perf_counter()
        self._due = now + (now - started) * REST

    def mark_words(self, words: Sequence[str]) -> None:
        self._body.mark_words(words)

    def first_found(self) -> int | None:
        inside = self._body.first_found()
        return None if inside is None else self._body.y() + inside

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
        self._refresh_legend()
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
                self._mark_reasoning()
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
        if self._fold is not None and not self._fold.isHidden():
            self._put(self._fold, -4, 0, min(width, self._fold.sizeHint().width()), 26)
            y += 26 + GAP_4
            if self._reasoning is not None and not self._reasoning.isHidden():
                height = self._reasoning.height_for(width - GAP_16)
                self._put(self._reasoning, GAP_16, y, width - GAP_16, height)
                y += height + GAP_12
        height = self._body.height_for(width)
        self._put(self._body, 0, y, width, height)
        y += height
        if not self._legend.isHidden():
            y += GAP_8
            height = max(16, self._legend.heightForWidth(width))
            self._put(self._legend, 0, y, width, height)
            y += height
        return self._place_below(y, 0, width)

    def place(self) -> None:
        super().place()
        self._body.place()
        if self._reasoning is not None:
            self._reasoning.place()
        self._place_caret()

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


def legend(trace: Trace | None) -> str:
    """What the marks mean and how many there are. Rich text of our own words and numbers."""
    if trace is None or not trace.rounds:
        return "No rounds were recorded for this reply."
    roles = current()
    accepted, corrected, own = (trace.count(o) for o in (Origin.ACCEPTED, Origin.CORRECTED, Origin.OWN))
    return "&nbsp; · &nbsp;".join(
        (
            f'<span style="color: {roles.draft}">▬</span>&nbsp; drafted and accepted: {accepted:,}',
            f'<span style="color: {roles.verify}">╌</span>&nbsp; corrected by the target: {corrected:,}',
            f"not drafted: {own:,}",
            f"{figures.count(len(trace.rounds), 'round')}; point at a word for its milliseconds",
        )
    )


def view_for(item: Item, parent: QWidget) -> MessageView:
    """The view of a message."""
    return UserView(item, parent) if item.role == "user" else ReplyView(item, parent)
