"""The column of messages. Only what is near the viewport has widgets, so a long chat opens as fast as a short one."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from PySide6.QtCore import QElapsedTimer, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QScrollBar, QWidget

from app.chat.canvas import Canvas
from app.chat.column import Column
from app.chat.item import Item
from app.chat.message import MessageView
from app.chat.pill import Pill
from app.chat.trace import Trace
from app.chat.views import Views
from app.theme.tokens import COLUMN_WIDTH, GAP_24

MIN_WAIT_MS = 5
FRAME_MS = 16
MAKE_MS = 15.0
"""Making of views before what is there is shown; the others come in the next turns."""
TURN_MS = 8.0
"""Drawing in one turn of the event loop; what is left of the messages that wait comes in the next."""
NEAR_BOTTOM = 24
"""Pixels from the end within which the view counts as at the end."""


class Transcript(Canvas):
    """Shows a list of Items. Follows the end only while the user is there."""

    copy = Signal(int)
    again = Signal(int)
    edit = Signal(int)
    delete = Signal(int)
    check = Signal(int)
    branch = Signal(int, int)
    act = Signal(int, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("transcript")
        self.setAccessibleName("Conversation")
        self._column = Column()
        self._views = Views(self.viewport(), self._connect)
        self._follow = True
        self._placing = False
        self._width = 0
        self._sought: int | None = None
        self._waiting: set[int] = set()
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self.draw_now)
        self._prepare = QTimer(self)
        self._prepare.setSingleShot(True)
        self._prepare.setInterval(MIN_WAIT_MS)
        self._prepare.timeout.connect(self.prepare_next)
        self.drawings = 0
        """Counted for `app.measure`: on a busy machine there are fewer."""
        self._since_draw = QElapsedTimer()
        self._since_draw.start()
        self._pill = Pill(self.viewport())
        self._pill.clicked.connect(self.jump_to_end)
        bar = self.verticalScrollBar()
        bar.setSingleStep(40)
        bar.valueChanged.connect(self._on_scrolled)

    # what is shown

    @property
    def items(self) -> list[Item]:
        return list(self._column.items)

    @property
    def following(self) -> bool:
        return self._follow

    @property
    def pill(self) -> Pill:
        return self._pill

    def view(self, message: int) -> MessageView | None:
        """The widget of a message, None while it is far from the viewport."""
        return self._views.get(message)

    def set_items(self, items: list[Item], *, to_end: bool = True) -> None:
        """Show other messages. Views of messages that stay are kept."""
        keep = {item.id: item for item in items}
        changed: set[int] = set()
        for number, view in self._views:
            if keep.get(number) is not view.item:
                self._views.drop(number)
                changed.add(number)
        self._column.columns = max(20, (self._column_width() or COLUMN_WIDTH) // 8)
        self._column.set_items(items, changed)
        if to_end:
            self._follow = True
        self._place()

    def append(self, item: Item) -> None:
        """Add a message at the end and go there: it was asked for just now."""
        self._column.append(item)
        self._follow = True
        self._place()

    @Slot(int)
    def refresh(self, message: int) -> None:
        """A message's item changed. Drawn now, or a little later when drawing it is costly."""
        self._waiting.add(message)
        view = self._views.get(message)
        # Several changes in one turn of the event loop are drawn once.
        wait = max(view.wait_ms() if view is not None else 0, FRAME_MS - self._since_draw.elapsed())
        if wait > MIN_WAIT_MS:
            self._later_in(wait)
        else:
            self.draw_now()

    @property
    def up_to_date(self) -> bool:
        """Whether all that was asked for is drawn."""
        return not self._waiting and not self._later.isActive()

    @Slot()
    def draw_now(self) -> None:
        """Draw what changed and more of what is behind."""
        self._later.stop()
        self.drawings += 1
        waiting, self._waiting = self._waiting, set()
        started = perf_counter()
        # The newest first: it is the one that is being written.
        for message in sorted(waiting, reverse=True):
            if (perf_counter() - started) * 1000 >= TURN_MS:
                self._waiting.add(message)
                continue
            index = self._column.index(message)
            if index is None:
                continue
            view = self._views.get(message)
            self._column.doubt(index, estimate=view is None)
            if view is not None:
                view.refresh()
        self._place()
        self._seek()
        self._since_draw.start()
        if self._waiting:
            self._later_in(MIN_WAIT_MS)

    def _note_behind(self) -> None:
        behind = [number for number, view in self._views if view.behind]
        if behind:
            self._waiting.update(behind)
            self._later_in(MIN_WAIT_MS)

    def _later_in(self, milliseconds: int) -> None:
        if not self._later.isActive():
            self._later.start(milliseconds)

    @Slot(int)
    def _on_resized(self, message: int) -> None:
        index = self._column.index(message)
        if index is not None:
            self._column.doubt(index)
            self._place()

    def show_marks(self, trace_of: Callable[[int], Trace | None] | None) -> None:
        """Mark on replies which round each token came of. trace_of: asked for each of them; None stops marking."""
        self._views.show_marks(trace_of)
        self._column.doubt_all()
        self._place()

    def refresh_theme(self) -> None:
        self._pill.refresh_theme()
        self._views.refresh_theme()
        self._column.doubt_all()
        self._place()

    @Slot()
    def jump_to_end(self) -> None:
        self._follow = True
        self._place()

    def scroll_to(self, message: int) -> None:
        """Bring a message to the top of the view."""
        index = self._column.index(message)
        if index is not None:
            self._follow = False
            self._place(anchor=(index, 0))

    @Slot(int)
    def go_to(self, message: int) -> None:
        """Bring a message into view, at the first of the words that are marked in it once that is drawn."""
        self.scroll_to(message)
        self._sought = message
        self._seek()

    def _seek(self) -> None:
        if self._sought is None:
            return
        view, index = self._views.get(self._sought), self._column.index(self._sought)
        if view is None or index is None or view.behind:
            return
        self._sought = None
        where = view.first_found()
        page = self.viewport().height()
        if where is not None and where > page // 2:
            self._place(anchor=(index, where - page // 3))

    @Slot(list)
    def mark_words(self, words: list[str]) -> None:
        """Mark words wherever they are in the chat; none marks nothing."""
        self._views.mark_words(words)

    # layout

    def _column_width(self) -> int:
        # From the whole width, scroll bar or not: text must not shift when the bar comes.
        return min(COLUMN_WIDTH, self.width() - 2 * GAP_24)

    def _anchor(self) -> tuple[int, int]:
        """(index, pixels from its top to the top of the view) of the message that is to stay where it is.

        One that is measured: another may turn out shorter than it seemed, and would push what is read away.
        """
        column, value = self._column, self.verticalScrollBar().value()
        if not column.items:
            return 0, 0
        seen = column.between(value, value + self.viewport().height())
        index = next((n for n in seen if column.measured(n)), column.at(value)[0])
        return index, value - column.tops()[index]

    def _place(self, anchor: tuple[int, int] | None = None, *, least: int = 1) -> None:
        """Measure what is in the viewport, place it, and keep the reader's place. least: views made in any case."""
        if self._placing or self.viewport().width() < 50:
            return
        self._placing = True
        self._prepare.stop()
        try:
            column, width = self._column, self._column_width()
            anchor = anchor or self._anchor()
            if width != self._width:
                self._width = width
                column.doubt_all()
            page = self.viewport().height()
            until = perf_counter() + (MAKE_MS / 1000 if least else 0.0)
            value = 0
            # A measured height differs from its estimate, which may bring other messages into view.
            for again in range(8):
                tops = column.tops()
                end = max(0, tops[-1] - page)
                value = end if self._follow else max(0, min(end, tops[anchor[0]] + anchor[1])) if column.items else 0
                if not self._measure(value, value + page, width, until, least=0 if again else least):
                    break
            self._apply(value, width, page)
        finally:
            self._placing = False
        self._note_behind()
        if column.unmeasured_near(self.verticalScrollBar().value(), page) is not None:
            self._prepare.start()

    def _measure(self, low: int, high: int, width: int, until: float, *, least: int = 1) -> bool:
        """Measure the messages between two heights. Returns whether a height changed.

        until: when to stop making views (`perf_counter`), but for the first `least`. `prepare_next` makes the others.
        """
        changed, made = False, 0
        between = self._column.between(low, high)
        for index in reversed(between) if self._follow else between:
            if self._column.measured(index):
                continue
            item = self._column.items[index]
            view = self._views.get(item.id)
            if view is None:
                if made >= least and perf_counter() >= until:
                    continue
                view, made = self._views.make(item), made + 1
            changed |= self._column.set_height(index, view.height_for(width))
        return changed

    @Slot()
    def prepare_next(self) -> None:
        """Make one of the messages that are in view or come into it next, so that scrolling need not wait for it."""
        heights = self._column.unmeasured_near(self.verticalScrollBar().value(), self.viewport().height())
        if heights is not None:
            anchor = self._anchor()
            self._measure(*heights, self._width, 0.0)
            self._place(anchor, least=0)  # comes back here for the next one

    def _apply(self, value: int, width: int, page: int) -> None:
        column = self._column
        tops = column.tops()
        bar = self.verticalScrollBar()
        bar.setPageStep(page)
        bar.setRange(0, max(0, tops[-1] - page))
        bar.setValue(value)
        value = bar.value()
        left = (self.width() - width) // 2
        self._move_along(tops, value)
        for number, view in self._views:
            index = column.index(number)
            if index is None:
                continue
            top = tops[index] - value
            if top + column.height(index) > -2 * page and top < 3 * page:
                view.setGeometry(left, top, width, column.height(index))
                view.place()
                if view.isHidden():
                    view.show()
            else:
                self._views.drop(number)
                column.doubt(index)
        self._show_pill()

    def _move_along(self, tops: list[int], value: int) -> None:
        """Scroll what is drawn already. Views that moved by another way than most are placed by `_apply`."""
        page = self.viewport().height()
        for number, view in self._views:
            index = self._column.index(number)
            if index is None or view.isHidden() or not -view.height() < view.y() < page:
                continue
            way = tops[index] - value - view.y()
            if way and abs(way) < page:
                self.viewport().scroll(0, way)
            return

    def _show_pill(self) -> None:
        bar = self.verticalScrollBar()
        self._pill.show_when(not self._follow and bar.maximum() - bar.value() > NEAR_BOTTOM)

    def _connect(self, view: MessageView) -> None:
        for name in ("copy", "again", "edit", "delete", "check", "branch", "act"):
            getattr(view, name).connect(getattr(self, name))
        view.resized.connect(self._on_resized)

    # events

    @Slot()
    def _on_scrolled(self) -> None:
        if self._placing:
            return
        bar: QScrollBar = self.verticalScrollBar()
        self._follow = bar.maximum() - bar.value() <= NEAR_BOTTOM
        self._sought = None
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        if event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.jump_to_end()
        else:
            super().keyPressEvent(event)
