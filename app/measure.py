"""`python -m app.measure [NAME ...]`: what the window promises, measured on this machine.

stream: UI-thread time for answers of 4, 16 and 64 KB, and the heartbeat meanwhile. long: a chat of 2,000 messages,
opened and scrolled. start: the window up, with the model loading behind it. speed: generation with the window streaming
against the terminal's loop. Offscreen unless QT_QPA_PLATFORM says else; chats are kept in a temporary folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app import paths
from app.application import Application, make_qt
from app.heart import Heart, p99, waited_ms
from app.replay import Pieces, ScriptedEngine, ScriptedLoader
from app.samples import SAMPLES
from app.store import Database, Repository
from app.store.values import State
from engine import Finished, Message, Request, Sampler, Text, load

MESSAGES, MEGABYTES = 2000, 2
SPEED_TOKENS, PAIRS = 64, 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.measure")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args().names or list(NAMES)
    unknown = [name for name in names if name not in (*NAMES, "_start")]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    if names == ["_start"]:
        _started()
        return 0
    say(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, Qt platform {os.environ['QT_QPA_PLATFORM']}")
    with tempfile.TemporaryDirectory() as home:
        os.environ["PACENOTE_HOME"] = home
        qt = make_qt(["pacenote"])
        for name in names:
            say(f"\n{name}  (load at its start {os.getloadavg()[0]:.1f})")
            for line in NAMES[name](qt, Path(home) / name):
                say(f"  {line}")
    return 0


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _says(text: str, _: Request) -> tuple[str, str]:
    return "", text


def _drawn(window: Open) -> bool:
    return window.application.window.transcript.up_to_date


def stream(qt: QApplication, home: Path) -> Iterator[str]:
    """The whole path: engine thread, pump, item, transcript, store. Tokens of about 4 characters, 500 a second."""
    for kilobytes in (4, 16, 64):
        text = _answer(kilobytes * 1024)
        window = Open(qt, home / str(kilobytes), partial(_says, text), gate=_Pace(500))
        heart, before = Heart(), time.thread_time()
        window.ask("write")
        window.until(partial(_drawn, window))
        heart.stop()
        seconds = time.thread_time() - before - heart.cost
        yield (
            f"{kilobytes:>2} KB: UI thread {seconds:.2f} s in all, {seconds * 1000 / kilobytes:.0f} ms per KB, in "
            f"{window.application.window.transcript.drawings} drawings (and {heart.cost:.2f} s for measuring); "
            f"{_beats(heart)}"
        )
        window.close()


def long_chat(qt: QApplication, home: Path) -> Iterator[str]:
    window = Open(qt, home, lambda _: ("", "x"), fill=_fill)
    chats, view = window.application.services.chats, window.application.window
    longest = max(chats.conversations(), key=lambda c: c.created_at)
    opened, works = [], []
    for _ in range(7):
        chats.new_chat()
        window.settle(100)
        started, work = time.perf_counter(), time.thread_time()
        chats.open(longest.id)
        view.repaint()
        opened.append((time.perf_counter() - started) * 1000)
        works.append((time.thread_time() - work) * 1000)
        window.settle(200)
    yield (
        f"{MESSAGES:,} messages, {MEGABYTES} MB: open in {statistics.median(opened):.0f} ms on the clock "
        f"({min(opened):.0f} to {max(opened):.0f}), {statistics.median(works):.0f} ms of work, median of 7"
    )
    bar = view.transcript.verticalScrollBar()
    for step, name in ((-120, "wheel steps of 120 px"), (-600, "pages of 600 px")):
        view.transcript.jump_to_end()
        window.settle(500)
        heart = Heart()
        for _ in range(200):
            bar.setValue(bar.value() + step)
            window.settle(16)
        heart.stop()
        yield f"scrolled 200 {name}: {_beats(heart)}"
    window.close()


def start(qt: QApplication, home: Path) -> Iterator[str]:
    """A process of its own, with the real engine: from its start to the first painted frame."""
    shown = []
    for number in range(5):
        environment = {**os.environ, "PACENOTE_HOME": str(home / str(number)), "PACENOTE_STARTED": str(time.time())}
        done = subprocess.run(
            [sys.executable, "-m", "app.measure", "_start"], env=environment, capture_output=True, text=True, check=True
        )
        shown.append(done.stdout.split())
    seconds, works = [float(words[0]) for words in shown], [float(words[2]) for words in shown]
    yield (
        f"window painted {statistics.median(seconds):.2f} s after the process began ({min(seconds):.2f} to "
        f"{max(seconds):.2f}, 5 starts), {statistics.median(works):.2f} s of them the UI thread's own work; the model "
        f"was loading then in {sum(words[1] == 'True' for words in shown)} of 5"
    )


def _started() -> None:
    qt = make_qt(["pacenote"])
    application = Application(qt, paths.resolve())
    application.start()
    qt.processEvents()
    application.window.repaint()
    shown = time.time() - float(os.environ["PACENOTE_STARTED"])
    say(f"{shown} {application.services.loader.loading} {time.thread_time()}")
    application.close()


def speed(qt: QApplication, home: Path) -> Iterator[str]:
    """The demo pair in one process: replies in the window, and the terminal's loop, in turns, in random order."""
    window = Open(qt, home, None)
    services = window.application.services
    services.change_settings(
        dataclasses.replace(
            services.settings, max_tokens=SPEED_TOKENS, seed_mode="fixed", seed=5, temperature=0.8, speculation="off"
        )
    )
    terminal = _Terminal(services.chats.settings.sampler())
    luck = random.Random(1)
    # Seconds a token: on the clock, and without the time for which other programs had the cores.
    clock: dict[str, list[float]] = {"window": [], "terminal": [], "again": []}
    alone: dict[str, list[float]] = {arm: [] for arm in clock}
    for number in range(PAIRS + 1):
        arms = list(clock)
        luck.shuffle(arms)
        for arm in arms:
            waited = waited_ms(gui=False)
            if arm == "window":
                window.application.window.new_chat()
                window.ask("Tell me about the sea.")
                found = window.application.window.transcript.items[-1].figures or {}
                seconds = float(found["decode_seconds"]) / (found["tokens"] - 1)
            else:
                seconds = terminal.seconds("Tell me about the sea.", window)
            if number:  # the first of each warms up
                clock[arm].append(seconds)
                alone[arm].append(seconds - (waited_ms(gui=False) - waited) / 1000 / (SPEED_TOKENS - 1))
    terminal.close()
    window.close()
    for name, arms_ in (("on the clock", clock), ("without waiting for a core", alone)):
        rates = ", ".join(f"{arm} {1 / statistics.median(times):.1f}" for arm, times in arms_.items())
        ratios = [t / w for w, t in zip(arms_["window"], arms_["terminal"], strict=True)]
        noise = [t / a for a, t in zip(arms_["again"], arms_["terminal"], strict=True)]
        yield (
            f"{name}: median tok/s {rates}; window / terminal {_spread(ratios)}, terminal / terminal {_spread(noise)} "
            f"({PAIRS} pairs of {SPEED_TOKENS} tokens, classic decode)"
        )


class _Terminal:
    """What `pacenote chat` does with the events, on a thread of its own with its own engine."""

    def __init__(self, sampler: Sampler) -> None:
        self._asked: list[str | None] = []
        self._sampler = sampler
        self._wake, self._done = threading.Semaphore(0), threading.Event()
        self._seconds = 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def seconds(self, text: str, window: Open) -> float:
        """Seconds a token."""
        self._done.clear()
        self._asked.append(text)
        self._wake.release()
        # The window's event loop runs on, with nothing to do.
        window.until(self._done.is_set)
        return self._seconds

    def close(self) -> None:
        self._asked.append(None)
        self._wake.release()
        self._thread.join()

    def _run(self) -> None:
        engine = load()
        with Path(os.devnull).open("w") as out:
            while True:
                self._wake.acquire()
                text = self._asked.pop()
                if text is None:
                    break
                request = Request(
                    (Message("user", text),),
                    self._sampler,
                    5,
                    SPEED_TOKENS,
                    speculation="off",  # type: ignore[arg-type]
                )
                for event in engine.generate(request, threading.Event()):
                    if isinstance(event, Text):
                        out.write(event.text)
                        out.flush()
                    elif isinstance(event, Finished):
                        self._seconds = 1 / event.stats.tokens_per_second
                self._done.set()
        engine.close()


class Open:
    """A window with a scripted engine, or the real one. fill: puts chats into the store before it opens."""

    def __init__(
        self,
        qt: QApplication,
        home: Path,
        script: Callable[[Request], tuple[str, str]] | None,
        *,
        gate: Callable[[int], None] | None = None,
        fill: Callable[[Repository], None] | None = None,
    ) -> None:
        os.environ["PACENOTE_HOME"] = str(home)
        where = paths.resolve()
        if fill is not None:
            database = Database(where.database)
            fill(Repository(database))
            database.close()
        loader = None if script is None else ScriptedLoader(_Maker(script, gate).make)
        self.application = Application(qt, where, loader)
        self.application.window.resize(1180, 760)
        self.application.start()
        services = self.application.services
        self.until(lambda: services.loader.info is not None)
        services.change_settings(dataclasses.replace(services.settings, max_tokens=100_000, speculation="off"))

    def ask(self, text: str) -> None:
        self.application.services.chats.send_text(text)
        self.until(lambda: not self.application.services.generations.live_conversations())

    def until(self, done: Callable[[], bool]) -> None:
        # Seldom: looking every 20 ms took a tenth of what is measured.
        while not done():
            self.settle(100)

    def settle(self, milliseconds: int) -> None:
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()

    def close(self) -> None:
        self.application.window.close()
        self.application.close()


class _Maker:
    def __init__(self, script: Callable[[Request], tuple[str, str]], gate: Callable[[int], None] | None) -> None:
        self._script, self._gate = script, gate

    def make(self, _: object) -> ScriptedEngine:
        return ScriptedEngine(self._script, pieces=Pieces(most=7), gate=self._gate)


class _Pace:
    """Holds a scripted engine to so many rounds a second."""

    def __init__(self, rate: float) -> None:
        self._step, self._next = 1 / rate, 0.0

    def __call__(self, index: int) -> None:
        now = time.monotonic()
        self._next = now if index == 0 else self._next + self._step
        if self._next > now:
            time.sleep(self._next - now)


def _answer(size: int) -> str:
    """Markdown of all kinds."""
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts += [f"## Part {len(parts)}\n\n{answer}\n\n" for _, answer in SAMPLES.values()]
    return "".join(parts)[:size]


def _fill(store: Repository) -> None:
    text = _answer(2 * MEGABYTES * 1_000_000 // MESSAGES)
    chat = store.create_conversation("Long")
    parent: int | None = None
    with store.db.write():
        for number in range(MESSAGES // 2):
            cut = number * 97 % (len(text) // 2)
            asked = store.add_user_message(chat.id, parent, f"Question {number}: " + text[cut : cut + 80])
            reply = store.begin_reply(chat.id, asked.id, seed=1, request={}, model={})
            size = 2 * MEGABYTES * 1_000_000 // MESSAGES - 100
            store.finish_reply(reply.id, State.COMPLETE, (text[cut:] + text)[:size], "")
            parent = reply.id


def _beats(heart: Heart) -> str:
    return (
        f"heartbeat of {len(heart.gaps)} beats: p99 {p99(heart.gaps):.0f} ms, longest {max(heart.gaps):.0f} ms "
        f"(own work p99 {p99(heart.works):.0f}, longest {max(heart.works):.0f}; clock with what others took p99 "
        f"{p99(heart.walls):.0f})"
    )


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.3f} [{min(values):.3f}, {max(values):.3f}]"


NAMES: dict[str, Callable[[QApplication, Path], Iterator[str]]] = {
    "stream": stream,
    "long": long_chat,
    "start": start,
    "speed": speed,
}


if __name__ == "__main__":
    raise SystemExit(main())
