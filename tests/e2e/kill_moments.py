"""`python -m tests.e2e.kill_moments [TIMES] [SEED]`: the window is killed with SIGKILL at random moments of a reply.

After each kill the conversations file must be whole, hold every message that was sent, and miss at most half a second
of the partial answer. The same file is used all the time, so that damage would add up.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app import paths
from app.store import Database, Repository
from app.store.values import State

SCRIPT = Path(__file__).with_name("window_process.py")
LONGEST = 2.5
"""Seconds after sending within which a kill falls."""
PARTIAL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Kill:
    """What was found after one kill.

    seconds: after sending. shown: characters on screen at the last sign of life. saved: characters in the store.
    missing: how old the newest saved text was then, in seconds; 0 when nothing that was shown is missing.
    """

    seconds: float
    shown: int
    saved: int
    missing: float
    problems: tuple[str, ...]


def kill_often(times: int, seed: int, environment: dict[str, str]) -> Iterator[Kill]:
    """environment: of the window's process; PACENOTE_HOME is the folder that is used."""
    luck = random.Random(seed)
    for turn in range(times):
        yield _kill_once(f"question {turn} of {seed}", turn + 1, luck.uniform(0.0, LONGEST), environment)


def _kill_once(question: str, chats: int, seconds: float, environment: dict[str, str]) -> Kill:
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "script", question], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    if process.stdout.readline() != "asked\n":
        raise RuntimeError("the window did not come up")
    # Nothing is read meanwhile: the lines wait in the pipe, and the kill falls where it falls.
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    lines = [line.split() for line in rest.splitlines()]
    signs = [(float(line[1]), int(line[2])) for line in lines if len(line) == 3 and line[0] == "progress"]
    return _look(question, chats, seconds, signs, environment)


def _look(
    question: str, chats: int, seconds: float, signs: list[tuple[float, int]], environment: dict[str, str]
) -> Kill:
    os.environ["PACENOTE_HOME"] = environment["PACENOTE_HOME"]
    where = paths.resolve().database
    problems: list[str] = []
    raw = sqlite3.connect(where)
    if (found := raw.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
        problems.append(f"integrity: {found}")
    if raw.execute("PRAGMA foreign_key_check").fetchall():
        problems.append("foreign keys")
    raw.close()
    database = Database(where)
    store = Repository(database)
    try:
        database.connection.execute("INSERT INTO message_text(message_text, rank) VALUES ('integrity-check', 1)")
    except sqlite3.Error as error:
        problems.append(f"index: {error}")
    newest = store.conversations()
    if len(newest) != chats:
        problems.append(f"{chats - len(newest)} chats lost")
    path = store.path(newest[0].id)
    if not path or path[0].content != question:
        problems.append("the message is lost")
    reply = path[1] if len(path) > 1 else None
    if reply is not None and reply.state is not State.INTERRUPTED:
        problems.append(f"the reply is {reply.state}")
    saved = len(reply.content) if reply is not None else 0
    database.close()
    shown = signs[-1][1] if signs else 0
    # The first sign of life that showed more than what is saved: all after it is missing.
    lost = next((moment for moment, length in signs if length > saved), None)
    missing = signs[-1][0] - lost if lost is not None else 0.0
    if missing > PARTIAL_SECONDS:
        problems.append(f"{missing:.2f} s of the answer are missing")
    return Kill(seconds, shown, saved, missing, tuple(problems))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    say(f"{times} kills, seed {seed}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    kills: list[Kill] = []
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PACENOTE_HOME": home, "QT_QPA_PLATFORM": "offscreen"}
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        for number, kill in enumerate(kill_often(times, seed, environment), 1):
            kills.append(kill)
            told = "; ".join(kill.problems) or "ok"
            say(
                f"{number:>3}  after {kill.seconds:4.2f} s  {kill.shown:>5} characters shown, {kill.saved:>5} saved, "
                f"{kill.missing:4.2f} s missing  {told}"
            )
    bad = sum(bool(kill.problems) for kill in kills)
    worst = max(kill.missing for kill in kills)
    say(f"{len(kills)} kills, {bad} with a problem; at most {worst:.2f} s of an answer missing")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
