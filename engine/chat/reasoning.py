"""Splits a streamed reply into reasoning and answer.

What counts as a tag:
- `<think>` only at the start of the reply. Templates that open it in the prompt ("implicitly") leave the
  reply to start inside; a model that writes it once more is forgiven.
- `</think>` inside reasoning, unless it is quoted there: in an inline code span on one line, or as the
  partner of a `<think>` inside one fenced code block. A lone `</think>` in a fence ends the reasoning:
  hiding a whole answer because a model forgot to close a fence would be the worse mistake.
- In an answer nothing is a tag. What was shown as answer stays answer.

Tags and the white space around them belong to neither channel (`"markup"`); templates write it themselves
when they put a reply into the history. Joined, the pieces are the reply, for every way to cut it.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"

_TAG = re.compile(f"{THINK_OPEN}|{THINK_CLOSE}")
_SPACE = " \t\r\n"
_MAX_LEAD = 64
"""Characters of leading white space after which a reply is taken to have no opening tag."""
_LOOKAHEAD = 64
"""Characters after a doubtful tag within which the closing backtick of its code span must come."""


class Piece(NamedTuple):
    kind: Literal["reasoning", "answer", "markup"]
    text: str


def opens_reasoning(prompt: str) -> bool:
    """Whether a reply to this prompt starts inside reasoning."""
    return prompt.rstrip(_SPACE).endswith(THINK_OPEN)


class ReasoningSplitter:
    """inside: whether the prompt has opened the reasoning already (`opens_reasoning`)."""

    def __init__(self, inside: bool) -> None:
        self._inside = inside
        self._state: Literal["start", "lead", "reasoning", "after", "answer"] = "start"
        self._text = ""  # arrived, not decided
        self._gap: list[str] = []  # white space that is markup if the closing tag follows
        self._out: list[Piece] = []
        self._code = _CodeTracker()

    def push(self, text: str) -> list[Piece]:
        """The pieces that are decided now."""
        self._text += text
        return self._run(final=False)

    def finish(self) -> list[Piece]:
        """The rest. What looked like the beginning of a tag was text."""
        pieces = self._run(final=True)
        if self._gap:
            pieces.append(Piece("reasoning", "".join(self._gap)))
            self._gap = []
        return pieces

    def _run(self, final: bool) -> list[Piece]:
        # Every step consumes text or changes the state, and says whether there may be more to do.
        while self._text:
            if self._state == "answer":
                self._emit("answer", len(self._text))
            elif self._state == "start":
                if not self._start(final):
                    break
            elif self._state == "reasoning":
                if not self._reasoning(final):
                    break
            else:
                self._skip_space()
        pieces, self._out = self._out, []
        return pieces

    def _start(self, final: bool) -> bool:
        body = self._text.lstrip(_SPACE)
        lead = len(self._text) - len(body)
        if lead <= _MAX_LEAD and (tag := _TAG.match(body)):
            self._emit("markup", lead + tag.end())
            self._state = "lead" if tag[0] == THINK_OPEN else "after"
        elif not final and lead <= _MAX_LEAD and _is_partial_tag(body):
            return False
        elif self._inside:
            self._state = "lead"
        else:
            self._state = "answer"
        return True

    def _skip_space(self) -> None:
        body = self._text.lstrip(_SPACE)
        self._emit("markup", len(self._text) - len(body))
        if body:
            self._state = "reasoning" if self._state == "lead" else "answer"

    def _reasoning(self, final: bool) -> bool:
        """Consumes up to the next tag and, if it can be decided, the tag."""
        tag = _TAG.search(self._text)
        if tag is None:
            keep = 0 if final else _partial_tag_at_end(self._text)
            self._emit_reasoning(len(self._text) - keep)
            return False
        self._emit_reasoning(tag.start())
        quoted = self._code.quotes(tag[0], self._text[len(tag[0]) :], final)
        if quoted is None:
            return False
        if quoted:
            self._emit_reasoning(len(tag[0]))
            return True
        self._out.append(Piece("markup", "".join(self._gap)))
        self._gap = []
        self._emit("markup", len(tag[0]))
        self._state = "after"
        return True

    def _emit_reasoning(self, size: int) -> None:
        text = self._text[:size]
        self._code.read(text)
        body = text.rstrip(_SPACE)
        if body:
            self._out.append(Piece("reasoning", "".join(self._gap) + body))
            self._gap = []
        if len(body) < size:
            self._gap.append(text[len(body) :])
        self._text = self._text[size:]

    def _emit(self, kind: Literal["answer", "markup"], size: int) -> None:
        if size:
            self._out.append(Piece(kind, self._text[:size]))
            self._text = self._text[size:]


class _CodeTracker:
    """Whether the text read so far ends inside code. Knows fences and the inline spans of the current line."""

    def __init__(self) -> None:
        self._head = ""  # first three visible characters of the line
        self._ticks = 0  # backticks on the line
        self._fence = False
        self._opened = 0  # tags opened inside this fence

    def read(self, text: str) -> None:
        for n, part in enumerate(text.split("\n")):
            if n:
                self._end_line()
            self._ticks += part.count("`")
            if len(self._head) < 3:
                self._head = (self._head + part).lstrip(_SPACE)[:3]

    def quotes(self, tag: str, ahead: str, final: bool) -> bool | None:
        """Whether this tag, coming next, is quoted. ahead: the text after it. None: not known yet."""
        if tag == THINK_OPEN:
            self._opened += self._fence
            return True  # inside reasoning an opening tag has no meaning
        if self._fence:
            self._opened -= 1
            return self._opened >= 0
        if self._ticks % 2 == 0:
            return False
        if end := re.search(r"[`\n]", ahead[:_LOOKAHEAD]):
            return end[0] == "`"
        return False if final or len(ahead) >= _LOOKAHEAD else None

    def _end_line(self) -> None:
        if self._head == "```":
            self._fence = not self._fence
            self._opened = 0
        self._head = ""
        self._ticks = 0


def _is_partial_tag(text: str) -> bool:
    return THINK_OPEN.startswith(text) or THINK_CLOSE.startswith(text)


def _partial_tag_at_end(text: str) -> int:
    at = text.rfind("<", -len(THINK_CLOSE))
    return len(text) - at if at >= 0 and _is_partial_tag(text[at:]) else 0
