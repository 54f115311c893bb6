"""`pacenote` without a command: the window."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from app import display

INSTEAD = "Chat in this terminal instead: pacenote chat"


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window and run until it closes. Returns the exit status; 2 without a display."""
    if reason := display.why_none():
        sys.stderr.write(f"No window can open: {reason}.\n{INSTEAD}\n")
        return 2
    # Imported late: without a display there may be no Qt libraries either.
    from app.application import run

    return run(list(sys.argv if argv is None else argv))


if __name__ == "__main__":
    raise SystemExit(main())
