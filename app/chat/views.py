"""The widgets of the messages near the view: made, used again for other messages, taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtWidgets import QWidget

from app.chat.item import Item
from app.chat.message import MessageView
from app.chat.reply import view_for
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

    def forget_resting(self) -> None:
        """They have the colours of another theme."""
        for resting in self._resting.values():
            while resting:
                self.trash.put(resting.pop())
