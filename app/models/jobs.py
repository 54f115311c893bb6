"""Calls that block, on threads of their own; what they say arrives on the GUI thread."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

Tell = Callable[[Any], None]
Call = Callable[[threading.Event, Tell], Any]
"""Gets a stop event and a function for what it wants to tell on the way; returns its result or raises."""

_PATIENCE = 2.0  # seconds; a transfer that stalls looks at its stop event later than that


class Jobs(QObject):
    """One job per key at a time. Every job ends with `done` or `failed`."""

    told = Signal(str, object)
    done = Signal(str, object)
    failed = Signal(str, object, str)
    """Key, the exception, its traceback."""
    _woke = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._said: deque[tuple[str, str, Any, str]] = deque()
        self._running: dict[str, tuple[threading.Thread, threading.Event]] = {}
        self._woke.connect(self._drain)
        self._closed = False

    def running(self, key: str) -> bool:
        return key in self._running

    def start(self, key: str, call: Call) -> bool:
        """Begin; False when this key is at work already."""
        if self._closed or key in self._running:
            return False
        stop = threading.Event()
        # A daemon: a transfer that stalls must not keep the program from ending.
        thread = threading.Thread(target=self._run, args=(key, call, stop), name=f"job {key}", daemon=True)
        self._running[key] = thread, stop
        thread.start()
        return True

    def stop(self, key: str) -> None:
        """Ask a job to end. Its `failed` still comes, with what it raises then."""
        if key in self._running:
            self._running[key][1].set()

    def close(self) -> None:
        """Stop all and wait a little. Nothing is told any more."""
        self._closed = True
        for _, stop in self._running.values():
            stop.set()
        for thread, _ in self._running.values():
            thread.join(_PATIENCE)
        self._running.clear()

    def _run(self, key: str, call: Call, stop: threading.Event) -> None:
        try:
            result = call(stop, lambda value: self._say("told", key, value))
        except Exception as error:  # noqa: BLE001  a bug must reach the screen, not end the thread
            self._say("failed", key, error, traceback.format_exc())
        else:
            self._say("done", key, result)

    def _say(self, kind: str, key: str, value: object, trace: str = "") -> None:
        self._said.append((kind, key, value, trace))
        if not self._closed:
            self._woke.emit()

    @Slot()
    def _drain(self) -> None:
        while self._said and not self._closed:
            kind, key, value, trace = self._said.popleft()
            if kind == "told":
                self.told.emit(key, value)
                continue
            thread, _ = self._running.pop(key)
            thread.join(_PATIENCE)  # it has nothing left to do
            if kind == "done":
                self.done.emit(key, value)
            else:
                self.failed.emit(key, value, trace)
