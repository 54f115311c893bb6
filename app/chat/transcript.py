"""The column of messages. Only what is near the viewport has widgets, so a long chat opens as fast as a short one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from PySide6.QtCore import QElapsedTimer, QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QPushButton, QScrollBar, QWidget

from app.chat.item import Item
from app.chat.message import MESSAGE_GAP, MessageView
from app.chat.reply import ReplyView, view_for
from app.chat.trace import Trace
from app.chat.trash import Trash
from app.theme.icons import icon
from app.theme.manager import current, use_class
from app.theme.tokens import COLUMN_WIDTH, GAP_24

MIN_WAIT_MS = 5
FRAME_MS = 16
NEAR_BOTTOM = 24
"""Pixels from the end within which the view counts as at the end."""


class Transcript(QAbstractScrollArea):
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
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Conversation")
        self.viewport().setAutoFillBackground(False)
        self._items: list[Item] = []
        self._heights: list[int] = []
        self._measured: list[bool] = []
        self._views: dict[int, MessageView] = {}
        self._follow = True
        self._placing = False
        self._width = 0
        self._waiting: set[int] = set()
        self._trace_of: Callable[[int], Trace | None] | None = None
        self._trash = Trash(self)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self.draw_now)
        self._since_draw = QElapsedTimer()
        self._since_draw.start()
        self._pill = QPushButton("Jump to latest", self.viewport())
        use_class(self._pill, "pill")
        self._pill.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._pill.clicked.connect(self.jump_to_end)
        self._pill.hide()
        bar = self.verticalScrollBar()
        bar.setSingleStep(40)
        bar.valueChanged.connect(self._on_scrolled)

    # what is shown

    @property
    def items(self) -> list[Item]:
        return list(self._items)

    @property
    def following(self) -> bool:
        return self._follow

    @property
    def pill(self) -> QPushButton:
        return self._pill

    def view(self, message: int) -> MessageView | None:
        """The widget of a message, None while it is far from the viewport."""
        return self._views.get(message)

    def set_items(self, items: list[Item], *, to_end: bool = True) -> None:
        """Show other messages. Views of messages that stay are kept."""
        keep = {item.id for item in items}
        for number in [n for n in self._views if n not in keep]:
            self._drop(number)
        known = {item.id: (h, m) for item, h, m in zip(self._items, self._heights, self._measured, strict=True)}
        self._items = list(items)
        self._heights, self._measured = [], []
        for item in items:
            view = self._views.get(item.id)
            if view is not None and view.item is not item:
                self._drop(item.id)
                known.pop(item.id, None)
            height, measured = known.get(item.id, (0, False))
            self._heights.append(height or self._estimate(item))
            self._measured.append(measured)
        if to_end:
            self._follow = True
        self._place()

    def append(self, item: Item) -> None:
        """Add a message at the end and go there: it was asked for just now."""
        self._items.append(item)
        self._heights.append(self._estimate(item))
        self._measured.append(False)
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
        waiting, self._waiting = self._waiting, set()
        for message in waiting:
            index = self._index(message)
            if index is None:
                continue
            self._measured[index] = False
            view = self._views.get(message)
            if view is None:
                self._heights[index] = self._estimate(self._items[index])
            else:
                view.refresh()
        self._place()
        self._since_draw.start()

    def _note_behind(self) -> None:
        behind = [number for number, view in self._views.items() if view.behind]
        if behind:
            self._waiting.update(behind)
            self._later_in(MIN_WAIT_MS)

    def _later_in(self, milliseconds: int) -> None:
        if not self._later.isActive():
            self._later.start(milliseconds)

    @Slot(int)
    def _on_resized(self, message: int) -> None:
        index = self._index(message)
        if index is not None:
            self._measured[index] = False
            self._place()

    def show_marks(self, trace_of: Callable[[int], Trace | None] | None) -> None:
        """Mark on replies which round each token came of. trace_of: asked for each of them; None stops marking."""
        self._trace_of = trace_of
        for view in self._views.values():
            self._mark(view)
        self._measured = [False] * len(self._items)
        self._place()

    def _mark(self, view: MessageView) -> None:
        if isinstance(view, ReplyView):
            ask = self._trace_of
            known = view.item.trace
            if ask is not None and known is None:
                known = ask(view.item.id)
            view.show_marks(known, on=ask is not None)

    def refresh_theme(self) -> None:
        self._pill.setIcon(icon("down", current().text_soft))
        for view in self._views.values():
            view.refresh_theme()
        self._measured = [False] * len(self._items)
        self._place()

    @Slot()
    def jump_to_end(self) -> None:
        self._follow = True
        self._place()

    def scroll_to(self, message: int) -> None:
        """Bring a message to the top of the view."""
        index = self._index(message)
        if index is not None:
            self._follow = False
            self._place(anchor=(index, 0))

    # layout

    def _index(self, message: int) -> int | None:
        # From the end: what changes is nearly always the last.
        for index in range(len(self._items) - 1, -1, -1):
            if self._items[index].id == message:
                return index
        return None

    def _estimate(self, item: Item) -> int:
        """A height in pixels that is good enough until the message comes into view."""
        columns = max(20, (self._column_width() or COLUMN_WIDTH) // 8)
        lines = item.content.count("\n") + len(item.content) // columns + 1
        return 60 + 24 * lines

    def _column_width(self) -> int:
        # From the whole width, scroll bar or not: text must not shift when the bar comes.
        return min(COLUMN_WIDTH, self.width() - 2 * GAP_24)

    def _tops(self) -> list[int]:
        tops, y = [], GAP_24
        for height in self._heights:
            tops.append(y)
            y += height + MESSAGE_GAP
        tops.append(y)
        return tops

    def _anchor(self) -> tuple[int, int]:
        """(index, pixels) of the message at the top of the viewport."""
        tops = self._tops()
        value = self.verticalScrollBar().value()
        index = max(0, min(len(self._items) - 1, bisect_right(tops, value) - 1))
        return index, value - tops[index]

    def _place(self, anchor: tuple[int, int] | None = None) -> None:
        """Measure what is near the viewport, place it, and keep the reader's place."""
        if self._placing or self.viewport().width() < 50:
            return
        self._placing = True
        try:
            width = self._column_width()
            anchor = anchor or (self._anchor() if self._items else (0, 0))
            if width != self._width:
                self._width = width
                self._measured = [False] * len(self._items)
            page = self.viewport().height()
            value = 0
            # A measured height differs from its estimate, which may bring other messages into view.
            for _ in range(8):
                tops = self._tops()
                end = max(0, tops[-1] - page)
                value = end if self._follow else max(0, min(end, tops[anchor[0]] + anchor[1])) if self._items else 0
                if not self._measure(tops, value - page // 2, value + page + page // 2, width):
                    break
            self._apply(value, width, page)
        finally:
            self._placing = False
        self._note_behind()

    def _measure(self, tops: list[int], low: int, high: int, width: int) -> bool:
        """Measure the messages between two heights. Returns whether a height changed."""
        changed = False
        for index, item in enumerate(self._items):
            if tops[index] + self._heights[index] < low or tops[index] > high or self._measured[index]:
                continue
            view = self._views.get(item.id) or self._make(item)
            height = view.height_for(width)
            self._measured[index] = True
            if height != self._heights[index]:
                self._heights[index] = height
                changed = True
        return changed

    def _apply(self, value: int, width: int, page: int) -> None:
        tops = self._tops()
        bar = self.verticalScrollBar()
        bar.setPageStep(page)
        bar.setRange(0, max(0, tops[-1] - page))
        bar.setValue(value)
        value = bar.value()
        left = (self.width() - width) // 2
        for index, item in enumerate(self._items):
            top = tops[index] - value
            near = top + self._heights[index] > -2 * page and top < 3 * page
            view = self._views.get(item.id)
            if view is None:
                continue
            if near:
                view.setGeometry(left, top, width, self._heights[index])
                if view.isHidden():
                    view.show()
            else:
                self._drop(item.id)
                self._measured[index] = False
        self._show_pill()

    def _show_pill(self) -> None:
        bar = self.verticalScrollBar()
        away = not self._follow and bar.maximum() - bar.value() > NEAR_BOTTOM
        if away:
            size = self._pill.sizeHint()
            self._pill.setGeometry(
                (self.viewport().width() - size.width()) // 2, self.viewport().height() - 44, size.width(), 30
            )
            self._pill.raise_()
        self._pill.setVisible(away)

    def _make(self, item: Item) -> MessageView:
        view = view_for(item, self.viewport())
        for name in ("copy", "again", "edit", "delete", "check", "branch", "act"):
            getattr(view, name).connect(getattr(self, name))
        view.resized.connect(self._on_resized)
        self._views[item.id] = view
        if self._trace_of is not None:
            self._mark(view)
        return view

    def _drop(self, message: int) -> None:
        view = self._views.pop(message, None)
        if view is not None:
            self._trash.put(view)

    # events

    @Slot()
    def _on_scrolled(self) -> None:
        if self._placing:
            return
        bar: QScrollBar = self.verticalScrollBar()
        self._follow = bar.maximum() - bar.value() <= NEAR_BOTTOM
        self._place()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        # Placed by `_place`; Qt must not move the children as well.
        return

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            return True
        return super().viewportEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.verticalScrollBar().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        if event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.jump_to_end()
        else:
            super().keyPressEvent(event)
