"""The session log of a chat in the terminal."""

from __future__ import annotations

from pathlib import Path

from engine import (
    EngineInfo,
    Event,
    Finished,
    Notice,
    PrefillProgress,
    Request,
    Round,
    SessionLog,
    conditions,
    environment,
)


class EventLog:
    """Writes the events of a chat as JSON Lines. Does not raise for what a disk does; `take_notice` says it.

    Text of the chat is not written.
    """

    def __init__(self, path: Path) -> None:
        self._log = SessionLog(path)
        self._prefill: PrefillProgress | None = None

    def begin(self, info: EngineInfo, request: Request, detailed: bool) -> None:
        self._prefill = None
        self._log.begin(info, request, environment(), conditions(), timing="detailed" if detailed else "plain")

    def write(self, event: Event) -> None:
        if isinstance(event, PrefillProgress):
            self._prefill = event
            return
        if isinstance(event, Round | Finished) and self._prefill is not None:
            # Its last progress only: one row says what the prompt cost.
            self._log.prefill(self._prefill, token=not isinstance(event, Finished) or event.stats.tokens > 0)
            self._prefill = None
        if isinstance(event, Round):
            self._log.round(event)
        elif isinstance(event, Notice):
            self._log.notice(event)
        elif isinstance(event, Finished):
            self._log.end(event)

    def take_notice(self) -> Notice | None:
        self._log.flush()
        return self._log.take_notice()
