"""Checks in a child process: one that crashes or hangs costs its own result, never the report.

MLX and Qt abort the process for some of what a self-test should find (no platform plugin, a broken Metal library), and
no `except` sees that. The child sends a line per check through a pipe of its own, since libraries print to stdout. When
it dies, what it was running has failed, and a new child does the rest.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from time import monotonic

from engine.selftest.check import REPORT, Check, Outcome, Result, run

HELLO = "pacenote self-test"
"""First line of a child: without it, what was started is something else."""
START_SECONDS = 60.0
"""For the child's imports, before its first check begins."""
_LAST_WORDS = 2000

Command = Callable[[int, Sequence[str]], Sequence[str]]
"""(file descriptor to write to, keys of checks) -> the command line of a child."""


class NoChild(Exception):
    """No child can be started here; says why."""


def run_apart(checks: Sequence[Check], command: Command) -> Iterator[Result]:
    """A result per check, in order.

    Raises:
        NoChild: a child does not start. The results so far are good, the other checks have not been tried.
    """
    left = list(checks)
    while left:
        for result in _one_child(tuple(left), command):
            yield result
            left.pop(0)


def serve(checks: Sequence[Check], pipe: int) -> None:
    """The child's side: run the checks and tell. Ends at once when the parent is gone, however it went."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with os.fdopen(pipe, "w", encoding="utf-8") as out:
        print(HELLO, file=out, flush=True)
        for check in checks:
            print(json.dumps(asdict(run(check)), default=str), file=out, flush=True)


def _end_with_parent() -> None:
    os.read(0, 1)  # the parent holds the other end and never writes
    os._exit(1)


def _one_child(checks: Sequence[Check], command: Command) -> Iterator[Result]:
    """Results until all checks are done or the child is; at least one."""
    read, write = os.pipe()
    try:
        child = subprocess.Popen(
            command(write, [check.key for check in checks]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(write,),
        )
    except OSError as error:
        os.close(read)
        raise NoChild(f"no second process could be started: {error}") from error
    finally:
        os.close(write)
    with child, _Listener(child, read) as listener:
        try:
            if listener.line(START_SECONDS) != HELLO:
                raise NoChild(f"the second process did not answer: {_how_it_ended(child, listener)}")
            for check in checks:
                line = listener.line(check.limit)
                if line is None:
                    yield _lost(check, child, listener)
                    return
                yield Result.from_json(json.loads(line))
        finally:
            child.kill()


def _lost(check: Check, child: subprocess.Popen[bytes], listener: _Listener) -> Result:
    """The result of a check that never told one."""
    if listener.late:
        text, seconds = f"It did not end within {check.limit:.0f} seconds.", check.limit
    else:
        text, seconds = f"The process that ran it ended: {_how_it_ended(child, listener)}.", 0.0
    lines = tuple(listener.last_words().splitlines()[-8:])
    return Result(check.key, Outcome.FAILED, text, REPORT, lines, seconds=seconds)


def _how_it_ended(child: subprocess.Popen[bytes], listener: _Listener) -> str:
    if listener.late:
        return "it gave no sign"
    code = child.wait(timeout=10)
    if code < 0:
        return signal.strsignal(-code) or f"signal {-code}"
    words = listener.last_words().strip().splitlines()
    return f"exit status {code}{f', {words[-1]}' if words else ''}"


class _Listener:
    """Reads lines from one pipe of a child, while what it prints is taken from another so that it never blocks.

    late: a deadline has passed.
    """

    def __init__(self, child: subprocess.Popen[bytes], pipe: int) -> None:
        assert child.stdout is not None  # Popen was asked for pipes
        self.late = False
        self._pipe, self._printed = pipe, child.stdout.fileno()
        self._told, self._words = b"", b""
        self._selector = selectors.DefaultSelector()
        for source in (self._pipe, self._printed):
            self._selector.register(source, selectors.EVENT_READ)

    def __enter__(self) -> _Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        os.close(self._pipe)

    def line(self, seconds: float) -> str | None:
        """The next line, None when the child closes its pipe or the time is over."""
        deadline = monotonic() + seconds
        while b"\n" not in self._told:
            ready = self._selector.select(max(0.0, deadline - monotonic()))
            self.late = monotonic() >= deadline
            if self.late:
                return None
            for source in [key.fd for key, _ in ready]:
                if not self._take(source) and source == self._pipe:
                    return None
        line, _, self._told = self._told.partition(b"\n")
        return line.decode("utf-8", errors="replace")

    def last_words(self) -> str:
        """The end of what it printed."""
        while not self.late and self._printed in self._selector.get_map() and self._selector.select(0.2):
            self._take(self._printed)
        return self._words.decode("utf-8", errors="replace")

    def _take(self, source: int) -> bool:
        data = os.read(source, 65536)
        if source == self._pipe:
            self._told += data
        else:
            self._words = (self._words + data)[-_LAST_WORDS:]
        if not data:
            self._selector.unregister(source)
        return bool(data)
