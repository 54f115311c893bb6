"""The speculation view's marks on rendered text: which drawn characters stand for which characters of the source.

Rendering drops markup and adds bullets, so the drawn text is first aligned with the source it was made of, word by
word. Marks are an overlay (extra selections): document, selection and copying do not know of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QColor, QHelpEvent, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QTextEdit, QToolTip

from app.chat.trace import Channel, Mark, Origin, Trace
from app.theme.manager import current

LIVE_SPANS = 400
"""Spans of one part up to which the unfinished paragraph is marked too: Qt looks at all of them at each change."""
MOST_FOUND = 200
"""Words marked in one part."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Span:
    """Drawn characters from start, in UTF-16 units of the document, with one mark."""

    start: int
    length: int
    mark: Mark


def align(shown: str, source: str) -> list[int]:
    """Per drawn character the index in `source` that it stands for, -1 for one that was added.

    Words are looked for one after the other; a word that markup cuts in two is followed letter by letter.
    """
    found = [-1] * len(shown)
    at = 0
    for match in _WORD.finditer(shown):
        word = match.group()
        place = source.find(word, at)
        if place >= 0:
            for n in range(len(word)):
                found[match.start() + n] = place + n
            at = place + len(word)
            continue
        for n, letter in enumerate(word, match.start()):
            place = source.find(letter, at)
            # Far away it is another letter of the same kind; a link's address is the longest that is stepped over.
            if 0 <= place - at <= 200:
                found[n] = place
                at = place + 1
    return found


class Marking:
    """The marks of one channel of a reply, as far as its rounds are known."""

    def __init__(self, trace: Trace, channel: Channel) -> None:
        self.trace = trace
        self._channel = channel
        self._rounds = 0
        self._marks: list[Mark] = []
        self._ends: list[int] = []

    def _catch_up(self) -> None:
        new = list(self.trace.marks(self._channel, self._rounds))
        self._rounds = len(self.trace.rounds)
        self._marks += new
        self._ends += [mark.end for mark in new]

    def spans(self, shown: str, start: int, source: str, offset: int) -> Iterator[Span]:
        """Marks on drawn text.

        Args:
            shown: the drawn text. start: where it begins in its document.
            source: what it was drawn from. offset: where that begins in the channel's text.
        """
        self._catch_up()
        marks, number = self._marks, bisect_right(self._ends, offset)
        begin, last, mark = 0, -1, None
        unit = start
        for letter, place in zip(shown, align(shown, source), strict=True):
            here = None
            if place >= 0:
                while number < len(marks) and marks[number].end <= offset + place:
                    number += 1
                if number < len(marks) and marks[number].start <= offset + place:
                    here = marks[number]
            if here is not mark and (here is not None or not letter.isspace()):
                if mark is not None:
                    yield Span(begin, last - begin, mark)
                begin, mark = unit, here
            unit += 2 if ord(letter) > 0xFFFF else 1
            if here is not None:
                last = unit
        if mark is not None:
            yield Span(begin, last - begin, mark)


class Marked:
    """Mixed into a QTextEdit or QPlainTextEdit: shows spans, and their round where the pointer rests."""

    _spans: Sequence[Span] = ()
    _marking: Marking | None = None
    _hovered = -1
    _hover: _Hover | None = None
    _found: Sequence[QTextCursor] = ()

    def show_spans(self, marking: Marking | None, spans: Iterable[Span]) -> None:
        if marking is not None and self._hover is None:
            self._hover = _Hover(self)
        if self._marking is None and marking is None and not self._found:
            return
        if marking is None:
            self._found = ()
        self._marking, self._spans, self._hovered = marking, list(spans), -1 if marking is None else self._hovered
        self._overlay()

    def mark_words(self, words: Sequence[str]) -> None:
        """Mark where words are in the text, in whatever case."""
        document = self.document()  # type: ignore[attr-defined]
        found: list[QTextCursor] = []
        for word in words:
            cursor = document.find(word)
            while not cursor.isNull() and len(found) < MOST_FOUND:
                found.append(cursor)
                cursor = document.find(word, cursor)
        if found or self._found:
            self._found = sorted(found, key=QTextCursor.selectionStart)
            self._overlay()

    def first_found(self) -> int | None:
        """Pixels from the top of this widget to the first word that is marked."""
        if not self._found:
            return None
        start = QTextCursor(self._found[0])
        start.setPosition(start.selectionStart())
        return int(self.cursorRect(start).top())  # type: ignore[attr-defined]

    def _overlay(self) -> None:
        roles = current()
        lines = {Origin.ACCEPTED: _line(roles.draft, dashed=False), Origin.CORRECTED: _line(roles.verify, dashed=True)}
        chosen: list[QTextEdit.ExtraSelection] = []
        for span in self._spans:
            hovered = span.mark.round == self._hovered
            shape = lines.get(span.mark.origin)
            if shape is None and not hovered:
                continue
            selection = QTextEdit.ExtraSelection()
            selection.cursor = self._cursor(span)
            shape = QTextCharFormat(shape) if shape is not None else QTextCharFormat()
            if hovered:
                shape.setBackground(QColor(roles.selection))
            selection.format = shape
            chosen.append(selection)
        for cursor in self._found:
            selection = QTextEdit.ExtraSelection()
            selection.cursor = cursor
            selection.format.setBackground(QColor(roles.selection))
            chosen.append(selection)
        self.setExtraSelections(chosen)  # type: ignore[attr-defined]

    def _cursor(self, span: Span) -> QTextCursor:
        cursor = QTextCursor(self.document())  # type: ignore[attr-defined]
        cursor.setPosition(span.start)
        cursor.setPosition(span.start + span.length, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    @property
    def is_marked(self) -> bool:
        return self._marking is not None

    def leave(self) -> None:
        """The pointer is elsewhere."""
        if self._hovered >= 0:
            self._hovered = -1
            self._overlay()

    def show_tip(self, event: QHelpEvent) -> None:
        position = self.cursorForPosition(event.pos()).position()  # type: ignore[attr-defined]
        number = self.round_at(position)
        if number != self._hovered:
            self._hovered = number
            self._overlay()
        if number >= 0 and self._marking is not None:
            QToolTip.showText(event.globalPos(), self._marking.trace.tip(number), self)  # type: ignore[arg-type]
        else:
            QToolTip.hideText()

    def round_at(self, position: int) -> int:
        """The round of what is drawn at a position of the document, -1 for none."""
        index = bisect_right(self._spans, position, key=_start) - 1
        if index < 0 or position > self._spans[index].start + self._spans[index].length:
            return -1
        return self._spans[index].mark.round


class _Hover(QObject):
    """What the pointer does over marked text. A filter, so that text without marks pays nothing for it."""

    def __init__(self, marked: Marked) -> None:
        super().__init__(marked.viewport())  # type: ignore[attr-defined]
        self._marked = marked
        marked.viewport().installEventFilter(self)  # type: ignore[attr-defined]

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not self._marked.is_marked:
            return False
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._marked.show_tip(event)
            return True
        if event.type() == QEvent.Type.Leave:
            self._marked.leave()
        return False


def _start(span: Span) -> int:
    return span.start


def _line(colour: str, *, dashed: bool) -> QTextCharFormat:
    shape = QTextCharFormat()
    style = QTextCharFormat.UnderlineStyle
    # Told apart without colour vision too.
    shape.setUnderlineStyle(style.DashUnderline if dashed else style.SingleUnderline)
    shape.setUnderlineColor(QColor(colour))
    return shape
