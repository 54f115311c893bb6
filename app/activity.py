"""Tells macOS that a reply is being written, so that App Nap does not slow it down. Elsewhere nothing is done.

Through the Objective-C runtime by ctypes: two messages to NSProcessInfo do not need a dependency.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import sys
from collections.abc import Callable
from typing import Any, Protocol

from PySide6.QtCore import QObject, Slot

USER_INITIATED_ALLOWING_IDLE_SYSTEM_SLEEP = 0x00FFFFFF & ~(1 << 20)
"""NSActivityUserInitiatedAllowingIdleSystemSleep (Foundation, NSProcessInfo.h): no App Nap, but the Mac may sleep."""


class System(Protocol):
    """Begins and ends an activity. What `begin` gives is handed to `end`."""

    def begin(self, reason: str) -> Any: ...
    def end(self, token: Any) -> None: ...


class Activity(QObject):
    """One activity while anything runs. A system that refuses is not asked again: a reply matters more."""

    def __init__(self, running: Callable[[], bool], system: System | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._running = running
        self._system = system
        self._token: Any = None
        self.problem = ""

    @property
    def held(self) -> bool:
        return self._token is not None

    @Slot()
    def update(self) -> None:
        """Something began or ended."""
        wanted = self._running()
        if self._system is None or wanted == self.held:
            return
        try:
            if wanted:
                self._token = self._system.begin("Writing a reply")
            else:
                token, self._token = self._token, None
                self._system.end(token)
        except (OSError, AttributeError, ValueError) as error:
            self.problem = f"{type(error).__name__}: {error}"
            self._system = self._token = None

    def close(self) -> None:
        """At quit."""
        if self._system is not None and self.held:
            token, self._token = self._token, None
            self._system.end(token)


def system() -> System | None:
    """The Mac's; None elsewhere, or where its runtime cannot be loaded."""
    if sys.platform == "darwin":
        with contextlib.suppress(OSError, AttributeError):
            return ProcessInfo(ctypes.CDLL(ctypes.util.find_library("objc") or "/usr/lib/libobjc.dylib"))
    return None


class ProcessInfo:
    """NSProcessInfo. runtime: libobjc."""

    def __init__(self, runtime: Any) -> None:
        self._class, self._name = runtime.objc_getClass, runtime.sel_registerName
        for function in (self._class, self._name):
            function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        # objc_msgSend has the signature of the method it calls, so each use is a function of its own.
        address = ctypes.cast(runtime.objc_msgSend, ctypes.c_void_p).value or 0
        pointer, whole = ctypes.c_void_p, ctypes.c_uint64
        self._get = ctypes.CFUNCTYPE(pointer, pointer, pointer)(address)
        self._text = ctypes.CFUNCTYPE(pointer, pointer, pointer, ctypes.c_char_p)(address)
        self._begin = ctypes.CFUNCTYPE(pointer, pointer, pointer, whole, pointer)(address)
        self._pass = ctypes.CFUNCTYPE(None, pointer, pointer, pointer)(address)

    def begin(self, reason: str) -> int:
        text = self._text(self._class(b"NSString"), self._name(b"stringWithUTF8String:"), reason.encode())
        options = USER_INITIATED_ALLOWING_IDLE_SYSTEM_SLEEP
        token = self._begin(self._info(), self._name(b"beginActivityWithOptions:reason:"), options, text)
        if not token:
            raise ValueError("NSProcessInfo gave no activity")
        # It is autoreleased, and there is no pool of ours: kept until `end`.
        self._get(token, self._name(b"retain"))
        return int(token)

    def end(self, token: int) -> None:
        self._pass(self._info(), self._name(b"endActivity:"), token)
        self._get(token, self._name(b"release"))

    def _info(self) -> Any:
        return self._get(self._class(b"NSProcessInfo"), self._name(b"processInfo"))
