"""A chat in the terminal: the prompt, the reply as it is written, its figures.

Of a reply only the answer goes to stdout; notices and figures go to stderr, so that a pipe gets clean text.
Reasoning is dimmed on a terminal and goes to stderr elsewhere.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from engine import Event, EventLog, Finished, KnownError, Notice, Receipt, Request, Text, WhenFull
from engine.cli.conversation import Conversation, Seeds
from engine.cli.figures import reply_line, session_lines, why_lines
from engine.cli.interrupt import interruptible

if TYPE_CHECKING:  # MLX comes with it, and takes seconds
    from engine import Engine

COMMANDS = (
    "/new · /regenerate · /verify (replay the reply by classic decode) · /why (this speed) · /stats · "
    "/drop-oldest (turns, when the chat no longer fits) · /quit · Ctrl-C stops a reply"
)
_DIM, _PLAIN = "\x1b[2m", "\x1b[22m"
_CONTROL = dict.fromkeys(c for c in (*range(32), 127, *range(128, 160)) if chr(c) not in "\n\t")
"""Control characters. A model can write them, and a terminal would obey."""


class ChatSession:
    """One chat with a loaded engine.

    Args:
        request: what all replies share; messages and seed are filled in for each.
        log: None for no session log.
    """

    def __init__(
        self, engine: Engine, request: Request, conversation: Conversation, seeds: Seeds, log: EventLog | None
    ) -> None:
        self._engine = engine
        self._request = request
        self._conversation = conversation
        self._seeds = seeds
        self._log = log
        self._replies: list[Finished] = []
        self._last: tuple[Request, Finished] | None = None

    def talk(self) -> None:
        """Read lines until /quit, Ctrl-D, or Ctrl-C at the prompt. A known error ends a reply, not the chat."""
        _edit_lines()
        info = self._engine.info
        _say(f"{info.name} on {info.device} · {info.verdict.state.value} · {COMMANDS}")
        while True:
            try:
                line = input("\n> ").strip()
            except (EOFError, KeyboardInterrupt):
                _say("")
                return
            if line == "/quit":
                return
            try:
                self._obey(line)
            except KnownError as error:
                _say(str(error))

    def _obey(self, line: str) -> None:
        if line == "/new":
            self._conversation.clear()
            self._last = None
            _say("A new chat.")
        elif line == "/stats":
            for text in session_lines(self._engine.info, self._replies):
                _say(text)
        elif line == "/why":
            for text in why_lines(self._engine.info, self._replies):
                _say(text)
        elif line == "/verify":
            self._verify()
        elif line == "/regenerate":
            if self._conversation.withdraw_reply():
                self._reply()
            else:
                _say("There is no message to answer yet.")
        elif line == "/drop-oldest":
            self._drop_oldest()
        elif line.startswith("/"):
            _say(COMMANDS)
        elif line:
            self.reply_to(line)

    def reply_to(self, text: str) -> None:
        """Write one reply to a user message.

        Raises:
            ContextFull: the chat no longer fits. The message stays and waits.
        """
        self._conversation.ask(text)
        self._reply()

    def _reply(self) -> None:
        request = replace(self._request, messages=self._conversation.messages, seed=self._seeds.draw())
        if self._log is not None:
            self._log.begin(self._engine.info, request, detailed=self._engine.detailed_timing)
        notices: list[Notice] = []
        printer = Printer()
        try:
            with interruptible() as stop:
                for event in self._engine.generate(request, stop):
                    self._record(event)
                    if isinstance(event, Text):
                        printer.show(event)
                    elif isinstance(event, Notice) and event.kind != "width":  # those are for the log
                        notices.append(event)  # in the middle of a line it would tear the text apart
                    elif isinstance(event, Finished):
                        self._conversation.take(event)
                        self._replies.append(event)
                        self._last = (request, event)
        finally:
            printer.end()  # never leave the terminal dimmed
        if self._log is not None and (trouble := self._log.take_notice()):
            notices.append(trouble)
        for notice in notices:
            _say(notice.text)
        _say(reply_line(self._replies[-1], self._engine.info))

    def _drop_oldest(self) -> None:
        """From now on the oldest turns make room. A message that was refused for want of it is answered."""
        self._request = replace(self._request, when_full=WhenFull.DROP_OLDEST)
        if self._conversation.waits_for_reply:
            self._reply()
        else:
            _say("When the chat no longer fits, its oldest turns are left out.")

    def _verify(self) -> None:
        """Replay the last reply by classic decode and say whether every token is the same."""
        if self._last is None or not self._last[1].tokens:
            _say("There is no reply to verify yet.")
            return
        request, finished = self._last
        with interruptible() as stop:
            for event in self._engine.verify(request, finished.tokens, stop):
                if isinstance(event, Receipt):
                    _say(f"Receipt: {event}")

    def _record(self, event: Event) -> None:
        if self._log is not None:
            self._log.write(event)


class Printer:
    """Writes text as it comes."""

    def __init__(self) -> None:
        self._colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._channel = "answer"
        self._any = False

    def show(self, text: Text) -> None:
        if text.channel != self._channel:
            self._switch(text.channel)
        if sys.stdout.isatty():
            print(text.text.translate(_CONTROL), end="", flush=True)
        else:
            print(text.text, end="", flush=True, file=sys.stdout if text.channel == "answer" else sys.stderr)
        self._any = True

    def end(self) -> None:
        if self._channel != "answer":
            self._switch("answer")
        if self._any:
            print(flush=True)

    def _switch(self, channel: str) -> None:
        if channel == "answer":
            print(_PLAIN if self._colour else "", flush=True, file=sys.stdout if sys.stdout.isatty() else sys.stderr)
        elif self._colour:
            print(_DIM, end="", flush=True)
        self._channel = channel


def _edit_lines() -> None:
    """Importing readline is what gives `input` its history and arrow keys. Some Pythons come without it."""
    with suppress(ImportError):
        import readline  # noqa: F401


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
