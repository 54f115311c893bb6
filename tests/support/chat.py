"""A chat with an engine, as a window or a terminal would keep it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from engine import Engine, Event, Finished, Message, Request
from engine.bench.soak.run import first_difference

NEVER = threading.Event()


def write(
    engine: Engine, request: Request, stop: threading.Event = NEVER, *, stop_when: Callable[[Event], bool] | None = None
) -> tuple[Finished, list[Event]]:
    """One reply and its events. stop_when: sets Stop at the first event that it says yes to."""
    if stop_when is not None:
        stop = threading.Event()
    events: list[Event] = []
    for event in engine.generate(request, stop):
        events.append(event)
        if stop_when is not None and stop_when(event):
            stop.set()
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(e, Finished) for e in events) == 1
    return events[-1], events


def assert_same_caches(a: Engine, b: Engine) -> None:
    """Every cache byte at the end of the last reply is equal. A small model may say the same from wrong ones."""
    ends = a.last_boundary, b.last_boundary
    assert ends[0] is not None
    assert ends[1] is not None
    assert first_difference(ends[0], ends[1]) == ""
    for end in ends:
        # The head is in step: it was told of every token once, whatever was stopped and restored before.
        assert end.head is None or end.head.start + end.head.told == end.length


def answer_of(done: Finished) -> Message:
    last = done.tokens[-1] if done.tokens else None
    return Message("assistant", done.answer, done.reasoning, done.segments, last_token=last)


@dataclass
class Chat:
    """A conversation that keeps what it would store."""

    engine: Engine
    messages: list[Message] = field(default_factory=list)

    def say(self, text: str, **asked: object) -> Finished:
        self.messages.append(Message("user", text))
        done, _ = write(self.engine, self.request(**asked))
        self.messages.append(answer_of(done))
        return done

    def request(self, **asked: object) -> Request:
        return Request(tuple(self.messages), **asked)  # type: ignore[arg-type]
