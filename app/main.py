"""`pacenote` without a command: the window."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

NO_DISPLAY = "No display was found, so the window cannot open. Use `pacenote chat` to chat in the terminal."


def has_display() -> bool:
    """Whether a window can be opened. Qt would abort the process instead of saying so."""
    if sys.platform != "linux":
        return True
    if os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0] in ("offscreen", "minimal", "vnc", "eglfs", "linuxfb"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window and run until it closes. Returns the exit status; 2 without a display."""
    if not has_display():
        print(NO_DISPLAY, file=sys.stderr)  # noqa: T201  this is what a terminal user reads
        return 2
    # Imported late: without a display there may be no Qt libraries either.
    from app.application import run

    return run(list(sys.argv if argv is None else argv))


if __name__ == "__main__":
    raise SystemExit(main())
