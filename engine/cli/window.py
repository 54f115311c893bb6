"""Open the window, or say why there can be none and what works instead.

The engine never imports `app` statically: it is looked up by name, here, and only when asked for.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

NO_WINDOW = 2


def run(args: argparse.Namespace) -> int:
    """Returns the window's own exit code, or NO_WINDOW."""
    reason = _no_display()
    if not reason:
        try:
            # First by itself: a missing system library of Qt is the user's to install, an import that
            # fails inside the app is our bug and keeps its traceback.
            importlib.import_module("PySide6.QtWidgets")
        except ImportError as error:
            reason = f"Qt cannot be loaded ({error})"
    if not reason:
        try:
            window = importlib.import_module("app.main")
        except ModuleNotFoundError as error:
            if error.name not in ("app", "app.main"):
                raise
            reason = "the window is not part of this installation"
        else:
            return int(window.main() or 0)
    print(f"No window can open: {reason}.", file=sys.stderr)
    print("Chat in this terminal instead: pacenote chat", file=sys.stderr)
    return NO_WINDOW


def _no_display() -> str:
    """Why Qt would abort the process instead of raising, "" when it would not."""
    # QT_QPA_PLATFORM set by hand (offscreen, vnc) means that the caller knows better.
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in names):
        return "there is no display (DISPLAY and WAYLAND_DISPLAY are not set)"
    return ""
