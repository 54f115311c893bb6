"""The real window in a process of its own, driven from inside. Run by the tests of this folder, with a mode:

script: a scripted engine streams slowly; every 40 ms a line `progress <seconds> <characters on screen>`.
real: the bundled demo pair answers twice, is stopped once, goes on, is verified twice; one line of JSON tells of it.
look: no engine; one line of JSON with what the store holds and the window shows.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable

from PySide6.QtCore import QEventLoop, QObject, QTimer

from app import paths
from app.application import Application, make_qt
from app.enginelike import Loader
from app.replay import Pieces, ScriptedEngine, ScriptedLoader
from app.single import SingleInstance

PACE_SECONDS = 0.01


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Driver(QObject):
    def __init__(self, load: Loader | None) -> None:
        super().__init__()
        self.qt = make_qt(["pacenote"])
        where = paths.resolve()
        self.single = SingleInstance(where.lock)
        assert self.single.first, "the lock of a killed process must be taken over"
        self.application = Application(self.qt, where, load)
        self.application.start()
        self.window = self.application.window
        self.services = self.application.services

    def until(self, done: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        loop = QEventLoop()
        timer = QTimer()
        timer.timeout.connect(loop.quit)
        timer.start(10)
        while not done():
            assert time.monotonic() < end, "took too long"
            loop.exec()

    def ask(self, text: str) -> None:
        self.window.composer.set_text(text)
        self.window.composer.submit()

    def idle(self) -> bool:
        return not self.services.generations.live_conversations()

    def close(self) -> None:
        self.window.close()
        self.application.close()
        self.single.close()

    def report(self) -> list[dict[str, object]]:
        return [
            {"role": i.role, "content": i.content, "state": str(i.state), "caption": i.caption, "check": i.check}
            for i in self.window.transcript.items
        ]


def script() -> None:
    text = "\n\n".join(f"Paragraph {n} with some words in it." for n in range(4000))

    def slow(_: int) -> None:
        time.sleep(PACE_SECONDS)

    def make(_: object) -> ScriptedEngine:
        return ScriptedEngine(lambda request: ("", text), pieces=Pieces(most=8), gate=slow)

    driver = Driver(ScriptedLoader(make))
    services = driver.services
    services.change_settings(dataclasses.replace(services.settings, max_tokens=1_000_000))
    driver.until(lambda: services.loader.info is not None)
    driver.window.new_chat()
    driver.ask(sys.argv[2])
    say("asked")
    for _ in range(10_000):
        length = len(driver.window.transcript.items[-1].content)
        say(f"progress {time.monotonic():.4f} {length}")
        end = time.monotonic() + 0.04
        driver.until(lambda end=end: time.monotonic() >= end)


def real() -> None:
    driver = Driver(None)
    services, window = driver.services, driver.window
    services.change_settings(
        dataclasses.replace(services.settings, max_tokens=40, temperature=0.8, speculation="always")
    )
    driver.until(lambda: services.loader.info is not None or not services.loader.loading)
    info = services.loader.info
    assert info is not None, window.empty.error.text
    for text in ("What is a volcano?", "Tell me more."):
        driver.ask(text)
        driver.until(driver.idle)
    last = window.transcript.items[-1]
    window.transcript.check.emit(last.id)
    driver.until(lambda: services.checks.item_of(last.id) is None)
    services.change_settings(dataclasses.replace(services.settings, max_tokens=80))
    driver.ask("How do I boil an egg?")
    driver.until(lambda: len(window.transcript.items[-1].content) > 40)
    window.actions_by_key["stop"].trigger()
    driver.until(driver.idle)
    shown = driver.report()
    window.go_on()
    driver.until(driver.idle)
    last = window.transcript.items[-1]
    window.transcript.check.emit(last.id)
    driver.until(lambda: services.checks.item_of(last.id) is None)
    went_on = driver.report()[-1]
    trace = services.chats.trace_of(last.id)
    texts = []
    for how in ("off", "always"):
        services.change_settings(
            dataclasses.replace(services.settings, max_tokens=30, seed_mode="fixed", seed=11, speculation=how)
        )
        window.new_chat()
        driver.ask("Tell me about the sea.")
        driver.until(driver.idle)
        texts.append(window.transcript.items[-1].content)
    window.panel.tick()
    outcome = {
        "texts": texts,
        "went_on": went_on,
        "marked": sum(1 for _ in trace.marks("answer")) if trace is not None else 0,
        "messages": shown,
        "name": info.name,
        "badge": window.panel.badge.text(),
        "speed": window.panel.speed.text(),
        "drafter": window.panel.drafter.text(),
        "logs": len(list(services.paths.sessions.iterdir())),
        "rounds": len(services.meter.history),
    }
    driver.close()
    say(json.dumps(outcome))


def look() -> None:
    driver = Driver(ScriptedLoader(lambda _: ScriptedEngine(lambda request: ("", "again"))))
    driver.until(lambda: driver.services.loader.info is not None)
    database = driver.services.store.db
    say(
        json.dumps(
            {
                "messages": driver.report(),
                "integrity": database.rows("PRAGMA integrity_check")[0][0],
                "foreign": len(database.rows("PRAGMA foreign_key_check")),
                "chats": [c.title for c in driver.services.chats.conversations()],
            }
        )
    )
    driver.close()


if __name__ == "__main__":
    {"script": script, "real": real, "look": look}[sys.argv[1]]()
