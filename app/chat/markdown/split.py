"""Cut Markdown into top-level blocks, and find the point up to which nothing can change any more.

The parser never gets HTML (it is shown literally) nor link reference definitions: a definition far below would change
text above, and a finished block must stay finished.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.chat.markdown.rules import add_to

_PARSER = add_to(
    MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    .enable(["table", "strikethrough"])
    .disable(["reference", "html_block", "html_inline"])
)
# Only http, https and mailto become links; anything else is shown as it was written.
_PARSER.validateLink = lambda url: url.lower().startswith(("http://", "https://", "mailto:"))  # type: ignore[method-assign]

_LINE_END = re.compile(r"\r\n?|\n")

Kind = Literal["prose", "code", "table"]
_KINDS: dict[str, Kind] = {"fence": "code", "table_open": "table"}


@dataclass(frozen=True, slots=True)
class Block:
    """One top-level block. line: its first line, from 0, counted in the text that was parsed."""

    tokens: tuple[Token, ...]
    line: int

    @property
    def kind(self) -> Kind:
        """Which widget shows it."""
        return _KINDS.get(self.tokens[0].type, "prose")

    @property
    def quotes(self) -> bool:
        """Whether a quote is in it, at whatever depth."""
        return any(token.type == "blockquote_open" for token in self.tokens)


def normalise(text: str) -> str:
    """Line ends as the parser sees them, so that line numbers and offsets agree."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def source_offset(source: str, text: str, offset: int) -> int:
    """Where in `source` that is what is at `offset` in `text`, which is `source` normalised.

    offset: where a line begins, or the end.
    """
    if len(source) == len(text):
        return offset
    if offset == len(text):
        return len(source)
    lines = text.count("\n", 0, offset)
    return next(islice(_LINE_END.finditer(source), lines - 1, None)).end() if lines else 0


def parse(text: str) -> list[Block]:
    """The top-level blocks of normalised text."""
    blocks: list[Block] = []
    current: list[Token] = []
    depth = 0
    for token in _PARSER.parse(text):
        current.append(token)
        depth += token.nesting
        if depth == 0:
            first = current[0].map
            blocks.append(Block(tuple(current), first[0] if first else 0))
            current = []
    return blocks


def fence_language(block: Block) -> str:
    """The first word after the fence, "" when there is none."""
    words = block.tokens[0].info.split()
    return words[0] if words else ""


def fence_is_closed(block: Block, text: str) -> bool:
    """Whether the closing fence was written. text: what `block` was parsed from."""
    token = block.tokens[0]
    if token.map is None:
        return False
    lines = text.split("\n")[token.map[0] : token.map[1]]
    mark = token.markup
    return len(lines) > 1 and lines[-1].strip().startswith(mark) and not lines[-1].strip().strip(mark[0])


class OpenFence:
    """A code block that is still open, so what follows is code until its closing fence, without parsing it anew."""

    def __init__(self, block: Block, text: str) -> None:
        """text: what `block` was parsed from; it begins with the fence."""
        self.block = block
        self._body = text.index("\n") + 1
        self._seen = len(text)

    def grow(self, text: str) -> bool:
        """The block with more text. False, and unchanged, where a line of what is new may close it."""
        token = self.block.tokens[0]
        line = text.rfind("\n", 0, self._seen) + 1
        if token.markup in text[max(line, self._body) :]:
            return False
        self._seen = len(text)
        last = max(text.rfind("\n") + 1, self._body)
        # The parser leaves out a last line that is blank so far.
        token.content = text[self._body :] if text[last:].strip(" \t") else text[self._body : last]
        token.map = [0, text.count("\n") + 1]
        return True


def open_fence(text: str, offset: int, blocks: Sequence[Block]) -> OpenFence | None:
    """What `text` has from `offset` on as an open code block, where it is nothing else, and not indented.

    blocks: those from there on. None, too, while its first line may still grow.
    """
    tail = text[offset:]
    if len(blocks) != 1 or blocks[0].kind != "code" or fence_is_closed(blocks[0], text):
        return None
    if "\n" not in tail or not tail.startswith(blocks[0].tokens[0].markup):
        return None
    return OpenFence(replace(blocks[0], line=0), tail)


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table that is still open. Its finished rows need not be parsed anew: each is of its line and the head alone.

    head: its first two lines. rows: finished ones under it. end: where they end, counted from where the table begins.
    """

    head: str
    rows: int
    end: int

    @property
    def left_out(self) -> int:
        """Characters between the head and what `shorten` keeps."""
        return self.end - len(self.head)

    def shorten(self, text: str) -> str:
        """The same text without the finished rows. text: begins with the table."""
        return self.head + text[self.end :]


def open_table(text: str, offset: int, blocks: Sequence[Block], before: OpenTable | None) -> OpenTable | None:
    """What `text` has from `offset` on as an open table, where it is nothing else.

    blocks: those from there on. before: the same table, when `text` was shortened by it.
    """
    if len(blocks) != 1 or blocks[0].kind != "table" or text.count("\n", 0, offset) != blocks[0].line:
        return None
    tail, lines = text[offset:], blocks[0].tokens[0].map
    # A line behind it, blank perhaps, ends it.
    if lines is None or tail.count("\n") + (not tail.endswith("\n")) != lines[1] - lines[0]:
        return None
    if tail.count("\n") < 2:
        return None  # its head may still grow
    head, end = tail[: _offset(tail, 2)], tail.rfind("\n") + 1
    rows = tail.count("\n", len(head), end)
    if before is None:
        return OpenTable(head, rows, end)
    return OpenTable(head, before.rows + rows, before.left_out + end)


def safe_cut(text: str, blocks: list[Block]) -> tuple[int, int]:
    """Up to where `text` is finished: (offset in characters, number of blocks before it).

    A block is finished when a later top-level block has begun on a complete line: CommonMark reads line by line and
    never goes back behind the last open block. The last line may still grow, so a block that starts there proves
    nothing; nor does a table whose second line may.
    """
    lines_complete = text.count("\n")
    for index in range(len(blocks) - 1, 0, -1):
        if blocks[index].line + (blocks[index].kind == "table") < lines_complete:
            return _offset(text, blocks[index].line), index
    return 0, 0


def starts(text: str, blocks: Sequence[Block]) -> list[int]:
    """Where each block begins in the text it was parsed from, in characters; and last where the text ends."""
    found: list[int] = []
    offset = line = 0
    for block in blocks:
        while line < block.line:
            offset = text.index("\n", offset) + 1
            line += 1
        found.append(offset)
    return [*found, len(text)]


def _offset(text: str, line: int) -> int:
    offset = 0
    for _ in range(line):
        offset = text.index("\n", offset) + 1
    return offset
