"""What the engine's thread works with: an engine as the window sees it, a sink for its events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from app.happenings import Ids
from engine import (
    EngineInfo,
    Event,
    LoadOptions,
    LoadProgress,
    Notice,
    PrefillProgress,
    Receipt,
    Request,
)


class EngineLike(Protocol):
    """What the window needs of a loaded engine."""

    detailed_timing: bool

    @property
    def info(self) -> EngineInfo: ...
    def generate(self, request: Request, stop: threading.Event) -> Iterator[Event]: ...
    def verify(
        self, request: Request, tokens: Sequence[int], stop: threading.Event
    ) -> Iterator[PrefillProgress | Receipt]: ...
    def save_chat(self, path: Path) -> Notice | None: ...
    def restore_chat(self, path: Path) -> None: ...
    def close(self) -> None: ...


Progress = Callable[[LoadProgress], None]
Loader = Callable[[LoadOptions, Progress, threading.Event], EngineLike]


class SessionSink(Protocol):
    """Takes every event of a generation, on the engine's thread. Does not raise for what a disk does."""

    def begin(self, ids: Ids, info: EngineInfo, request: Request, detailed: bool) -> None:
        """detailed: whether each stage's milliseconds are its own (see `Engine`)."""
        ...

    def write(self, event: Event) -> None: ...
    def end(self) -> Notice | None:
        """The generation is over, however it ended. Returns what the user should know, once."""
        ...
