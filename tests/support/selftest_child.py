"""A process like the child of the self-test, with checks that end badly.

`python -m tests.support.selftest_child FD KEYS`; with `parent` for FD, the process that starts one.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.selftest.check import Check, Finding, Skip
from engine.selftest.child import run_apart, serve

ROOT = Path(__file__).parents[2]


def fine() -> Finding:
    return Finding("fine", ("a line",), {"pid": os.getpid()})


def crash() -> Finding:
    os.write(1, b"some library: assertion failed\n")
    os.abort()


def leave() -> Finding:
    os._exit(3)


def hang() -> Finding:
    signal.pause()
    return fine()


def chatter() -> Finding:
    """More than a pipe holds: who does not read it stands still here."""
    os.write(1, b"x" * 200_000)
    return fine()


def tell_and_hang() -> Finding:
    """Holds a named pipe open as long as this process lives."""
    with open(os.environ["SELFTEST_FIFO"], "w", encoding="utf-8") as held:
        held.write("here\n")
        held.flush()
        return hang()


def skip() -> Finding:
    raise Skip("not here")


CHECKS = [
    Check("fine", fine), Check("crash", crash), Check("leave", leave), Check("hang", hang, limit=0.3),
    Check("chatter", chatter), Check("skip", skip), Check("tell", tell_and_hang, limit=120),
]  # fmt: skip


def chosen(keys: Sequence[str]) -> list[Check]:
    by_key = {check.key: check for check in CHECKS}
    return [by_key[key] for key in keys]


def command(pipe: int, keys: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "tests.support.selftest_child", str(pipe), *keys]


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]
    if sys.argv[1] == "parent":
        list(run_apart(chosen(sys.argv[2:]), command))
    else:
        serve(chosen(sys.argv[2:]), int(sys.argv[1]))
