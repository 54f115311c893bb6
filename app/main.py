"""`pacenote` without a command: the window."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from app import display
from engine import self_test

SELF_TEST = "--self-test"
INSTEAD = "Chat in this terminal instead: pacenote chat"


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window and run until it closes. Returns the exit status; 2 without a display.

    With --self-test as its first argument it opens none: the same as `pacenote doctor --self-test`.
    """
    arguments = list(sys.argv if argv is None else argv)
    if arguments[1:2] == [SELF_TEST]:
        return self_test(arguments[2:])
    if reason := display.why_none():
        sys.stderr.write(f"No window can open: {reason}.\n{INSTEAD}\n")
        return 2
    # Imported late: without a display there may be no Qt libraries either.
    from app.application import run

    return run(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
