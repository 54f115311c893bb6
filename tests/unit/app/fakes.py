"""The scripted engine with handles for the tests: what it says, where it waits, how it fails."""

from __future__ import annotations

import threading

from app.replay import Pieces, ScriptedEngine, ScriptedLoader
from engine import LoadOptions, Request

LONG = "\n\n".join(
    f"## Part {n}\n\nSome words about part {n}, with **bold** and `code`.\n\n- one\n- two\n\n```python\nx = {n}\n```"
    for n in range(40)
)


class FakeLoader(ScriptedLoader):
    """Says back what was asked, unless `answer` says else.

    hold_at: the round before which a reply waits for `release`. error: raised there instead.
    """

    def __init__(self) -> None:
        super().__init__(self._make)
        self.answer: str | None = None
        self.reasoning = ""
        self.error: Exception | None = None
        self.hold_at: int | None = None
        self.pieces = Pieces()
        self.held = threading.Event()
        self._released = threading.Event()
        self.threads: set[int] = set()

    def release(self) -> None:
        self.hold_at = None
        self._released.set()

    @property
    def requests(self) -> list[Request]:
        return [request for engine in self.engines for request in engine.requests]

    def _make(self, options: LoadOptions) -> ScriptedEngine:
        self.threads.add(threading.get_ident())
        return ScriptedEngine(self._script, gate=self._gate, pieces=self.pieces)

    def _script(self, request: Request) -> tuple[str, str]:
        self.threads.add(threading.get_ident())
        asked = request.messages[-1].content
        return self.reasoning, self.answer if self.answer is not None else f"You said: {asked}. " + "More words. " * 12

    def _gate(self, index: int) -> None:
        if self.error is not None and index >= 2:
            raise self.error
        if self.hold_at is not None and index == self.hold_at:
            self.held.set()
            self._released.wait(20)
