"""The widgets of the messages near the view: made, used again for other messages, taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from PySide6.QtWidgets import QWidget

from app.chat.item import Item
from app.chat.message import MessageView
from app.chat.reply import ReplyView, view_for
from app.chat.trace import Trace
from app.chat.trash import Trash

RESTING = 8
"""Views of a role that are kept for use again."""


class Views:
    """By the message's id. parent: of the widgets. connect: called with each new one."""

    def __init__(self, parent: QWidget, connect: Callable[[MessageView], None]) -> None:
        self._parent = parent
        self._connect = connect
        self._views: dict[int, MessageView] = {}
        # Of messages that went out of sight, to become those of others: to make one takes several times as long.
        self._resting: dict[str, list[MessageView]] = {"user": [], "assistant": []}
        self.trash = Trash(parent)
        self.words: tuple[str, ...] = ()
        self._trace_of: Callable[[int], Trace | None] | None = None

    def __iter__(self) -> Iterator[tuple[int, MessageView]]:
        """(message, view) of each; they may be dropped meanwhile."""
        return iter(list(self._views.items()))

    def get(self, message: int) -> MessageView | None:
        return self._views.get(message)

    def make(self, item: Item) -> MessageView:
        resting = self._resting[item.role]
        if resting:
            view = resting.pop()
            view.show_item(item)
        else:
            view = view_for(item, self._parent)
            self._connect(view)
        self._views[item.id] = view
        view.mark_words(self.words)
        if self._trace_of is not None:
            self._mark(view)
        return view

    def drop(self, message: int) -> None:
        view = self._views.pop(message, None)
        if view is None:
            return
        resting = self._resting[view.item.role]
        if view.reusable and len(resting) < RESTING:
            view.hide()
            resting.append(view)
        else:
            self.trash.put(view)

    def show_marks(self, trace_of: Callable[[int], Trace | None] | None) -> None:
        """See `Transcript.show_marks`."""
        self._trace_of = trace_of
        for _, view in self:
            self._mark(view)

    def _mark(self, view: MessageView) -> None:
        if isinstance(view, ReplyView):
            ask, known = self._trace_of, view.item.trace
            if ask is not None and known is None:
                known = ask(view.item.id)
            view.show_marks(known, on=ask is not None)

    def mark_words(self, words: Sequence[str]) -> None:
        """See `Transcript.mark_words`."""
        self.words = tuple(words)
        for _, view in self:
            view.mark_words(self.words)

    def refresh_theme(self) -> None:
        """Those that rest have the colours of the other theme."""
        for resting in self._resting.values():
            while resting:
                self.trash.put(resting.pop())
        for _, view in self:
            view.refresh_theme()
            view.mark_words(self.words)
