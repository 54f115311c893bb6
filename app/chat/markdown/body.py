"""The text of one reply as a column of widgets that grows at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.chat.markdown.code import CodeBlock
from app.chat.markdown.marks import Marking
from app.chat.markdown.parts import Part, mark, marked, runs
from app.chat.markdown.prose import Prose, Table
from app.chat.markdown.split import (
    Block,
    Kind,
    OpenFence,
    OpenTable,
    fence_is_closed,
    fence_language,
    normalise,
    open_fence,
    open_table,
    parse,
    safe_cut,
    source_offset,
    starts,
)
from app.theme.tokens import GAP_12

PIECE = 256
"""Characters of a growing text drawn between two looks at the clock. A fast model writes about so many in a drawing."""
WINDOW = 2048
"""Characters of a finished text parsed at a time; they are drawn block by block."""
REDRAW_MS = 30.0
SPARE = 24
"""Parts up to which a reply's widgets are used again."""


class Body(QWidget):
    """Shows Markdown. `set_source` may be called for every update: what is finished is parsed and drawn once only.

    A long text that comes at once is fed in small pieces, as if it streamed, so that no call takes long: see `advance`.

    parsed_chars counts the characters given to the parser, for the test that the cost is linear.
    """

    def __init__(self, parent: QWidget | None = None, *, style: str = "prose") -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._style = style
        self._source = ""
        # Where the tail begins: in the text with plain line ends, and in the source.
        self._tail_start = self._tail_source = 0
        self._parts: list[Part] = []
        # Parts from here on belong to the tail. The one before may be prose that the tail continues.
        self._tail_parts = 0
        self._complete = False
        # Where each part is, while that holds: (y, width, height).
        self._places: dict[Part, tuple[int, int, int]] = {}
        self._moved: list[Part] = []
        # Leading parts that were placed at this width and cannot change any more.
        self._width = self._firm = 0
        # Written to and not laid out yet: what became finished and what follows it are laid out together.
        self._open: list[Prose] = []
        self._spare: list[Part] = []
        self._target = ""
        self._target_complete = False
        self.parsed_chars = 0
        self._marking: Marking | None = None
        self._words: Sequence[str] = ()
        self._drawing: Iterator[None] | None = None
        self._fence: OpenFence | None = None
        self._table: OpenTable | None = None

    def set_marking(self, marking: Marking | None) -> None:
        """Mark on the text which round it came of; None marks nothing. Draws the text anew."""
        if marking is not self._marking:
            self._marking = marking
            self.refresh_theme()

    def mark_words(self, words: Sequence[str]) -> None:
        """Mark where words are in the text, and in what will be drawn."""
        self._words = words
        for part in self._parts:
            marked(part).mark_words(words)

    def first_found(self) -> int | None:
        """Pixels from the top to the first word that is marked."""
        for part in self._parts:
            inside = marked(part).first_found()
            if inside is not None:
                return part.y() + inside + (part.edit.y() if isinstance(part, CodeBlock) else 0)
        return None

    @property
    def source(self) -> str:
        """What is to be shown; what is shown already may be less."""
        return self._target

    @property
    def behind(self) -> bool:
        """Whether `advance` has more to draw."""
        return self._source != self._target or self._complete != self._target_complete

    @property
    def parts(self) -> list[Part]:
        return list(self._parts)

    def set_source(self, text: str, *, complete: bool, budget_ms: float | None = None) -> None:
        """The whole text so far. complete: nothing follows. Text that did not just grow is drawn anew.

        budget_ms: draw for about so long, then be `behind`. None: draw all of it.
        """
        if text != self._target or complete is not self._target_complete:
            self._drawing = None
        self._target, self._target_complete = text, complete
        if not text.startswith(self._source):
            self._drop_all()
        self.advance(budget_ms)

    def advance(self, budget_ms: float | None = None) -> None:
        """Draw more of the source, at least one piece."""
        started = perf_counter()
        while self.behind:
            end = len(self._target)
            if budget_ms is not None and self._target_complete and "\r" not in self._target:
                self._drawing = self._drawing or self._block_by_block()
                next(self._drawing)
            else:
                end = end if budget_ms is None else min(end, len(self._source) + PIECE)
                self._feed(self._target[:end], complete=self._target_complete and end == len(self._target))
            if budget_ms is not None and (perf_counter() - started) * 1000 >= budget_ms:
                break

    def _block_by_block(self) -> Iterator[None]:
        """Draw a finished text from where the frozen part ends: parsed once, a block at each step."""
        text = normalise(self._target)
        whole = False
        while not whole:
            base, size = self._tail_start, WINDOW
            while True:
                tail = text[base : base + size]
                whole = base + size >= len(text)
                blocks = parse(tail)
                self.parsed_chars += len(tail)
                count = len(blocks) if whole else safe_cut(tail, blocks)[1]
                if count or whole:
                    break
                size *= 2  # one block that is longer than that
            places = starts(tail, blocks)
            for number in range(count):
                if number:
                    yield
                end = places[number + 1]
                self._show([blocks[number]], tail[:end], base, frozen=True)
                self._tail_start = self._tail_source = base + end
                self._source = self._target[: self._tail_start]
                self._show([], "", base, frozen=False)  # what was drawn as the unfinished tail goes
            if not whole:
                yield
        self._show([], "", self._tail_start, frozen=False)
        self._end()
        yield

    def _end(self) -> None:
        """All of a finished text is drawn."""
        self._source, self._complete, self._drawing = self._target, True, None
        if self._marking is not None:
            # The round of the last words of a paragraph may have come after it was frozen.
            for part in self._parts:
                if isinstance(part, Prose):
                    part.mark_again(self._marking)

    def _feed(self, text: str, *, complete: bool) -> None:
        """text: begins with what is drawn. Only its tail is looked at, so that a long reply costs no more per word."""
        self._complete = complete
        self._source = text
        source = text[self._tail_source :]
        if not complete:
            source = source.removesuffix("\r")  # half of a line end, perhaps
        tail = normalise(source)
        base = self._tail_start
        if self._fence is not None and not complete and self._fence.grow(tail):
            self._show([self._fence.block], tail, base, frozen=False)
            return
        # Marks are put on a whole table.
        table = self._table if self._marking is None else None
        parsed = table.shorten(tail) if table is not None else tail
        self.parsed_chars += len(parsed)
        blocks = parse(parsed)
        offset, count = (len(parsed), len(blocks)) if complete else safe_cut(parsed, blocks)
        kept = table.rows if table is not None else 0
        if count:
            self._show(blocks[:count], parsed[:offset], base, frozen=True, kept=kept)
            cut = offset + (table.left_out if table is not None else 0)
            self._tail_start += cut
            self._tail_source += source_offset(source, tail, cut)
            table, kept = None, 0
        self._show(blocks[count:], parsed, base, frozen=False, kept=kept)
        self._fence = None if complete else open_fence(parsed, offset, blocks[count:])
        self._table = None if complete else open_table(parsed, offset, blocks[count:], table)
        if complete:
            self._end()

    @property
    def reusable(self) -> bool:
        """Whether `reset` is worth it: hundreds of parts of a long reply are better deleted, a few at a time."""
        return len(self._parts) + len(self._spare) <= SPARE

    def reset(self) -> None:
        """Show nothing. The parts are kept for what is shown next: to make one takes a millisecond."""
        self._marking, self._words = None, ()
        for part in self._parts:
            part.hide()
            part.reset()
        self._spare += self._parts
        self._parts = []
        self._drop_all()
        self._target, self._complete, self._target_complete = "", False, False

    def _drop_all(self) -> None:
        for part in self._parts:
            part.hide()
            part.deleteLater()
        self._moved.clear()
        self._open.clear()
        self._parts, self._tail_parts, self._firm = [], 0, 0
        self._fence = self._table = None
        self._tail_start = self._tail_source = 0
        self._places.clear()
        self._source = ""
        self._drawing = None

    def refresh_theme(self) -> None:
        """Draw everything again in the present colours."""
        for part in self._spare:
            part.deleteLater()
        self._spare.clear()
        if self._target:
            self._drop_all()
            self._complete = False
            self.advance(REDRAW_MS)

    def height_for(self, width: int) -> int:
        """Height at this width, in pixels. `place` then puts the parts where this found room for them."""
        first = self._firm if width == self._width else 0
        y = 0
        if first:
            top, _, height = self._places[self._parts[first - 1]]
            y = top + height
        for index, part in enumerate(self._parts[first:], first):
            if index:
                y += GAP_12
            known = self._places.get(part)
            if known is None or known[:2] != (y, width):
                self._places[part] = known = (y, width, part.height_for(width))
                self._moved.append(part)
            y += known[2]
        # The last frozen part may be prose that the tail continues.
        self._width, self._firm = width, max(0, self._tail_parts - 1)
        return y

    def place(self) -> None:
        moved, self._moved = self._moved, []
        for part in moved:
            known = self._places.get(part)
            if known is not None:
                y, width, height = known
                part.setGeometry(0, y, width, height)

    def _show(self, blocks: list[Block], text: str, base: int, *, frozen: bool, kept: int = 0) -> None:
        """Bring the parts from `_tail_parts` on in line with `blocks`, reusing widgets of the same kind.

        base: where `text` begins in the source. kept: rows that a table at its beginning leaves out.
        """
        groups = runs(blocks)
        # Carriage returns are gone from `text`, so its offsets are not the reply's.
        marking = None if self._marking is None or "\r" in self._target else self._marking
        places = starts(text, blocks) if marking is not None else []
        first = 0
        index = self._tail_parts
        joins = bool(index and groups and groups[0][0] == "prose" and isinstance(self._parts[index - 1], Prose))
        if index and not joins and isinstance(self._parts[index - 1], Prose):
            # The tail may have begun as prose in the last frozen part and become something else.
            last = self._parts[index - 1]
            assert isinstance(last, Prose)
            last.show_tail([])
            self._open.append(last)
            self._places.pop(last, None)
        if joins:
            index -= 1
        for kind, members in groups:
            part = self._part(index, kind)
            self._places.pop(part, None)
            index += 1
            begin = part.frozen_end if isinstance(part, Prose) else 0
            if isinstance(part, Prose):
                self._open.append(part)
                if frozen:
                    part.freeze(members)
                else:
                    part.show_tail(members)
                if marking is not None or self._words:
                    self._commit()  # marks are put on what is laid out
            elif isinstance(part, Table):
                part.show_table(members[0], kept)
                kept = 0
            else:
                block = members[0]
                done = frozen or fence_is_closed(block, text)
                part.show_code(block.tokens[0].content, fence_language(block), complete=done)
            if marking is not None:
                source = text[places[first] : places[first + len(members)]]
                mark(part, marking, begin, source, base + places[first], frozen=frozen)
            if self._words:
                marked(part).mark_words(self._words)
            first += len(members)
        if frozen:
            self._tail_parts = index
        else:
            self._drop_from(max(index, self._tail_parts))
            self._commit()

    def _commit(self) -> None:
        parts, self._open = self._open, []
        for part in parts:
            part.commit()

    def _part(self, index: int, kind: Kind) -> Part:
        wanted = {"prose": Prose, "code": CodeBlock, "table": Table}[kind]
        if index < len(self._parts):
            if type(self._parts[index]) is wanted:
                return self._parts[index]
            self._drop_from(index)
        part = next((spare for spare in self._spare if type(spare) is wanted), None)
        if part is not None:
            self._spare.remove(part)
        elif kind == "code":
            part = CodeBlock(self)
        elif kind == "table":
            part = Table(self, style=self._style)
        else:
            part = Prose(self, style=self._style)
        part.show()
        self._parts.append(part)
        return part

    def _drop_from(self, index: int) -> None:
        for part in self._parts[index:]:
            self._places.pop(part, None)
            part.hide()
            part.deleteLater()
        del self._parts[index:]
