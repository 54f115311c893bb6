"""Where each message of a chat is. Heights are estimated until they are measured. No widgets here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from app.chat.item import Item
from app.chat.message import MESSAGE_GAP
from app.theme.tokens import GAP_24


class Column:
    """Messages one under the other. Pixels from the top of the whole chat."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._places: dict[int, int] = {}
        self._heights: list[int] = []
        self._measured: list[bool] = []
        self._tops: list[int] | None = None
        self.columns = 80
        """Characters of a line, for estimates."""

    def set_items(self, items: Sequence[Item], changed: set[int]) -> None:
        """Other messages. Heights of those that stay are kept, but for those in `changed`."""
        known = {item.id: n for n, item in enumerate(self.items) if item.id not in changed}
        heights, measured = self._heights, self._measured
        self._heights, self._measured = [], []
        for item in items:
            at = known.get(item.id)
            self._heights.append(self._estimate(item) if at is None else heights[at])
            self._measured.append(False if at is None else measured[at])
        self.items = list(items)
        self._places = {item.id: n for n, item in enumerate(self.items)}
        self._tops = None

    def append(self, item: Item) -> None:
        self._places[item.id] = len(self.items)
        self.items.append(item)
        self._heights.append(self._estimate(item))
        self._measured.append(False)
        self._tops = None

    def index(self, message: int) -> int | None:
        return self._places.get(message)

    def height(self, index: int) -> int:
        return self._heights[index]

    def measured(self, index: int) -> bool:
        return self._measured[index]

    def set_height(self, index: int, height: int) -> bool:
        """A measured height. Returns whether it differs from what was known."""
        self._measured[index] = True
        if height == self._heights[index]:
            return False
        self._heights[index] = height
        self._tops = None
        return True

    def doubt(self, index: int, *, estimate: bool = False) -> None:
        """Measure a message again. estimate: and take an estimate until then."""
        self._measured[index] = False
        if estimate:
            self._heights[index] = self._estimate(self.items[index])
            self._tops = None

    def doubt_all(self) -> None:
        self._measured = [False] * len(self.items)

    def tops(self) -> list[int]:
        """Where each message begins, and last where the chat ends."""
        if self._tops is None:
            self._tops = list(accumulate((height + MESSAGE_GAP for height in self._heights), initial=GAP_24))
        return self._tops

    def at(self, y: int) -> tuple[int, int]:
        """(index of the message at a height, pixels from its top)."""
        tops = self.tops()
        index = max(0, min(len(self.items) - 1, bisect_right(tops, y) - 1))
        return index, y - tops[index]

    def between(self, low: int, high: int) -> range:
        """Indices of the messages that reach into these heights."""
        tops = self.tops()
        first = max(0, bisect_right(tops, low) - 1)
        return range(first, min(len(self.items), bisect_left(tops, high)))

    def unmeasured_near(self, value: int, page: int) -> tuple[int, int] | None:
        """Between which heights there is a message that is not measured: in the page at `value`, below it, above it."""
        for low, high in ((0, page), (page, page + page // 2), (-page // 2, 0)):
            low, high = value + low, value + high
            if not all(self._measured[index] for index in self.between(low, high)):
                return low, high
        return None

    def _estimate(self, item: Item) -> int:
        """A height in pixels that is good enough until the message comes into view."""
        lines = item.content.count("\n") + len(item.content) // self.columns + 1
        return 60 + 24 * lines
