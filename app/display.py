"""Whether a window can be opened. Qt would abort the process instead of saying so. No Qt in here."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

X_SOCKETS = Path("/tmp/.X11-unix")
X_PORT = 6000
TIMEOUT_SECONDS = 2.0


def why_none() -> str:
    """Why no window can be opened, in words for "No window can open: ...". "" when one can."""
    if not sys.platform.startswith("linux"):
        return ""
    platform = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if platform and platform != "xcb" and not platform.startswith("wayland"):
        return ""  # offscreen, vnc and so on, set by hand: the caller knows better
    x, wayland = os.environ.get("DISPLAY", ""), os.environ.get("WAYLAND_DISPLAY", "")
    if not x and not wayland:
        return "there is no display (DISPLAY and WAYLAND_DISPLAY are not set)"
    if (wayland and _wayland_answers(wayland)) or (x and _x_answers(x)):
        return ""
    named = " and ".join(f"{name}={value}" for name, value in (("DISPLAY", x), ("WAYLAND_DISPLAY", wayland)) if value)
    return f"no display answers at {named}"


def _wayland_answers(name: str) -> bool:
    path = Path(os.environ.get("XDG_RUNTIME_DIR", "/nowhere")) / name  # an absolute name stays as it is
    return _connects(str(path))


def _x_answers(display: str) -> bool:
    """display: [protocol/][host]:number[.screen]."""
    match = re.fullmatch(r"(.*):(\d+)(\.\d+)?", display)
    if match is None:
        return False
    host, number = match[1].rpartition("/")[2], int(match[2])
    if host in ("", "unix"):
        path = str(X_SOCKETS / f"X{number}")
        # The name with a zero byte is Linux's own kind, which needs no file.
        if _connects("\0" + path) or _connects(path):
            return True
        host = "localhost"
    try:
        with socket.create_connection((host, X_PORT + number), TIMEOUT_SECONDS):
            return True
    except (OSError, OverflowError, UnicodeError):
        return False


def _connects(path: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(TIMEOUT_SECONDS)
            probe.connect(path)
            return True
    except (OSError, ValueError):
        return False
