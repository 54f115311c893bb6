"""A session log fed with the engine's events, for the window and the terminal alike."""

from __future__ import annotations

from pathlib import Path

from engine.events import EngineInfo, Event, Finished, Notice, PrefillProgress, Round
from engine.request import Request
from engine.telemetry.environment import conditions, environment
from engine.telemetry.log import SessionLog


class EventLog:
    """Writes a chat's events as JSON Lines. Does not raise for what a disk does; `take_notice` says it, once.

    Args:
        path: of the newest file; older ones lie beside it.
        files: how many files are kept in all.
        content: also write messages, tokens and replies. Off: no word of the chat is in the log.
    """

    def __init__(self, path: Path, files: int = 5, *, content: bool = False) -> None:
        self._log = SessionLog(path, files=files, content=content)
        self._prefill: PrefillProgress | None = None

    def begin(self, info: EngineInfo, request: Request, *, detailed: bool) -> None:
        """A generation begins. detailed: see `Engine.detailed_timing`."""
        self._prefill = None
        self._log.begin(info, request, environment(), conditions(), timing="detailed" if detailed else "plain")

    def write(self, event: Event) -> None:
        """One event of it, in order."""
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
        """What the user should know of the log itself. Everything written so far is with the system afterwards."""
        self._log.flush()
        return self._log.take_notice()
