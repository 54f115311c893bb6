"""Takes widgets away a few at a time: deleting a long reply's hundreds of parts at once stalls the window."""

from __future__ import annotations

from collections import deque

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.chat.markdown.body import Body

PER_TURN = 6
"""Widgets per turn of the event loop, about 0.2 ms each."""


class Trash(QObject):
    """`put` hides a widget at once and deletes it later, its Markdown parts first."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: deque[QWidget] = deque()
        self._timer = QTimer(self)
        self._timer.setInterval(5)
        self._timer.timeout.connect(self._work)

    @property
    def empty(self) -> bool:
        return not self._waiting

    def put(self, widget: QWidget) -> None:
        widget.hide()
        for body in widget.findChildren(Body):
            self._waiting.extend(body.parts)
        self._waiting.append(widget)
        if not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _work(self) -> None:
        for _ in range(min(PER_TURN, len(self._waiting))):
            widget = self._waiting.popleft()
            # Its window may have been closed meanwhile.
            if isValid(widget):
                widget.deleteLater()
        if not self._waiting:
            self._timer.stop()
