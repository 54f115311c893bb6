"""A chat in the terminal: the prompt, the reply as it is written, its figures.

Of a reply only the answer goes to stdout; notices and figures go to stderr, so that a pipe gets clean text.
Reasoning is dimmed on a terminal and goes to stderr elsewhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from engine import EndReason, Event, EventLog, Finished, KnownError, Notice, Receipt, Request, Text, WhenFull, merge
from engine.cli.conversation import Conversation, Seeds
from engine.cli.figures import reply_line, session_lines, why_lines
from engine.cli.interrupt import interruptible

if TYPE_CHECKING:  # MLX comes with it, and takes seconds
    from engine import Engine

COMMANDS = (
    "/new · /continue (a reply that was cut) · /regenerate · /verify (replay the reply by classic decode) · "
    "/why (this speed) · /stats · /drop-oldest (turns, when the chat no longer fits) · /quit · Ctrl-C stops a reply"
)
_CUT = (EndReason.BUDGET, EndReason.STOPPED)
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
        self._shown: Mapping[str, str] = {}
        self._talking = False

    def talk(self) -> None:
        """Read lines until /quit, Ctrl-D, or Ctrl-C at the prompt. A known error ends a reply, not the chat."""
        _edit_lines()
        self._talking = True
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
        elif line == "/continue":
            self._go_on()
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
        self._write(replace(self._request, messages=self._conversation.messages, seed=self._seeds.draw()))

    def _go_on(self) -> None:
        """Let the last reply go on where it was cut, as if it had never stopped: same request, same seed."""
        if self._last is None or self._conversation.waits_for_reply or self._last[1].reason not in _CUT:
            _say("There is no reply that was cut.")
            return
        self._write(*self._last)

    def _write(self, request: Request, cut: Finished | None = None) -> None:
        """One reply, or the rest of one. cut: what there is of it; it stays as it is when the rest fails."""
        asked = request if cut is None else replace(request, begun=cut.tokens)
        if self._log is not None:
            self._log.begin(self._engine.info, asked, detailed=self._engine.detailed_timing)
        notices: list[Notice] = []
        printer = Printer(self._shown if cut is not None else {})
        written: Finished | None = None
        try:
            with interruptible() as stop:
                for event in self._engine.generate(asked, stop):
                    self._record(event)
                    if isinstance(event, Text):
                        printer.show(event)
                    elif isinstance(event, Notice) and event.kind != "width":  # those are for the log
                        notices.append(event)  # in the middle of a line it would tear the text apart
                    elif isinstance(event, Finished):
                        written = event
                        self._take(request, event, cut)
        finally:
            printer.end()  # never leave the terminal dimmed
            self._shown = printer.shown
        if self._log is not None and (trouble := self._log.take_notice()):
            notices.append(trouble)
        for notice in notices:
            _say(notice.text)
        if written is not None:
            more = " · /continue goes on" if self._talking and written.tokens and written.reason in _CUT else ""
            _say(reply_line(written, self._engine.info) + more)

    def _take(self, request: Request, written: Finished, cut: Finished | None) -> None:
        if cut is not None:
            self._conversation.withdraw_reply()
            self._replies.pop()
            written = replace(written, stats=merge([cut.stats, written.stats]))
        self._conversation.take(written)
        self._replies.append(written)
        self._last = (request, written)

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
    """Writes text as it comes.

    Args:
        shown: text by channel that is on the screen of a reply that goes on. It is told again, and not written again.
    """

    def __init__(self, shown: Mapping[str, str] | None = None) -> None:
        self._told = {"answer": "", "reasoning": ""}
        self._before = {**self._told, **(shown or {})}
        self._colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._channel = "answer"
        self._any = False

    @property
    def shown(self) -> Mapping[str, str]:
        """What is on the screen now, by channel."""
        return {channel: max(told, self._before[channel], key=len) for channel, told in self._told.items()}

    def show(self, text: Text) -> None:
        new = self._new(text)
        if not new:
            return
        if text.channel != self._channel:
            self._switch(text.channel)
        if sys.stdout.isatty():
            print(new.translate(_CONTROL), end="", flush=True)
        else:
            print(new, end="", flush=True, file=sys.stdout if text.channel == "answer" else sys.stderr)
        self._any = True

    def _new(self, text: Text) -> str:
        """What of it is not on the screen yet."""
        known, shown = self._told[text.channel], self._before[text.channel]
        self._told[text.channel] = told = known + text.text
        if len(known) >= len(shown):
            return text.text
        agrees = told.startswith(shown) or shown.startswith(told)
        # The part may have ended inside a character, which the whole has.
        there = len(shown if agrees else shown.rstrip("\ufffd"))
        return told[max(len(known), there) :]

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
