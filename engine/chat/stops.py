"""Stop strings in streamed text.

The reply ends at the first character that completes a stop string; of several that end there the longest
counts. Both are properties of the text alone, so the answer does not depend on how it was cut into tokens
and blocks. ("The earliest *start* wins" would: of "abcd" and "bc", "bc" is complete first.)
"""

from __future__ import annotations

from collections.abc import Sequence


class StopMatcher:
    """Lets text through up to a stop string. Holds back only what may still become one.

    Held text is at most the longest stop string less one character. Cost per character is bounded by the
    number and length of the stop strings.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if any(not stop for stop in stops):
            raise ValueError("a stop string must not be empty")
        self._stops = tuple(dict.fromkeys(stops))
        self._longest = max((len(stop) for stop in self._stops), default=0)
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        """Text that may be shown. Afterwards `matched` is the stop string, if one is complete."""
        if self.matched is not None:
            return ""
        text = self._held + text
        ends = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if ends:
            _, at, self.matched = min(ends)
            self._held = ""
            return text[:at]
        keep = self._may_become_stop(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """The text that looked like a stop string and did not become one."""
        held, self._held = self._held, ""
        return held

    def _may_become_stop(self, text: str) -> int:
        """Length of the longest end of `text` that is a beginning of a stop string."""
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-size:]) for stop in self._stops):
                return size
        return 0
