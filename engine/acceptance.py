"""What acceptance a pair is expected to reach, and the alarm when its head stays far below.

A wrong head cannot change the text, so nothing else would tell of it. The rate here is accepted / judged drafts: behind
the first rejection of a round nothing was judged. Unlike accepted / drafted it does not fall with wider blocks.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from engine.events import EngineInfo, Notice, Round
from engine.exactness import cache

USUAL = 0.6
"""Expected of a pair without a history. Published pairs reach 0.65 to 0.9 (reference mtp.md 1.3, 5)."""
SHARE, OVER = 0.5, 0.6
DRAFTS = 200
"""The alarm: under SHARE of the expected rate over the last DRAFTS judged drafts, until it is above OVER of it."""
ENOUGH = 1000
"""Judged drafts from which on a pair's own history counts instead of USUAL."""
MEMORY = 20_000
"""Judged drafts that a history weighs at most; beyond, old ones fade."""

CAUSES = (
    "a head of another model or revision, a head whose norms were shifted twice or not at all, a very high "
    "temperature, or text unlike anything the head was trained on"
)


@dataclass
class History:
    """Counts of a pair, kept over restarts. path: None keeps nothing."""

    path: Path | None
    judged: float = 0
    accepted: float = 0

    @classmethod
    def of(cls, info: EngineInfo) -> History:
        """What is known of this pair; an unreadable file is an empty history."""
        if info.drafter is None or not info.drafter.hash:
            return cls(None)
        path = cache.folder() / "acceptance" / f"{info.weights_hash}-{info.drafter.hash}.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            judged, accepted = float(kept["judged"]), float(kept["accepted"])
        except (OSError, ValueError, KeyError, TypeError):
            return cls(path)
        return cls(path, judged, accepted) if 0 <= accepted <= judged <= MEMORY else cls(path)

    @property
    def known(self) -> float | None:
        """Share of its judged drafts that this pair had accepted; None before there are enough to tell."""
        return self.accepted / self.judged if self.judged >= ENOUGH else None

    @property
    def expected(self) -> float:
        """The share that this pair is expected to have accepted."""
        return USUAL if self.known is None else self.known

    def add(self, judged: int, accepted: int) -> None:
        """Count drafts; negative numbers take back what was counted."""
        self.judged = max(0.0, self.judged + judged)
        self.accepted = min(self.judged, max(0.0, self.accepted + accepted))
        if self.judged > MEMORY:
            fade = MEMORY / self.judged
            self.judged, self.accepted = self.judged * fade, self.accepted * fade

    def keep(self) -> bool:
        """Write it down. False when that failed, which costs a history and nothing else."""
        if self.path is None:
            return False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, suffix=".tmp")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"judged": self.judged, "accepted": self.accepted}, file)
            os.replace(name, self.path)
        except OSError:
            return False
        return True


class AcceptanceAlarm:
    """Watches the rounds of a loaded pair, over all its replies. Says it once, and once more when it is over.

    A stretch under alarm does not enter the history: a wrong head must not become what is expected.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.raised = False
        self._expected = history.expected  # of this load: what is watched must not move the mark
        self._recent: deque[tuple[int, int]] = deque()
        self._judged = self._accepted = 0

    def observe(self, round_: Round) -> Notice | None:
        """Learn from a finished round."""
        judged = min(round_.accepted + 1, round_.drafted)
        if not judged:
            return None
        self._recent.append((judged, round_.accepted))
        self._judged += judged
        self._accepted += round_.accepted
        if not self.raised:
            self.history.add(judged, round_.accepted)
        while self._judged - self._recent[0][0] >= DRAFTS:
            gone = self._recent.popleft()
            self._judged -= gone[0]
            self._accepted -= gone[1]
        if self._judged < DRAFTS:
            return None
        rate = self._accepted / self._judged
        low = rate < (OVER if self.raised else SHARE) * self._expected
        if low == self.raised:
            return None
        self.raised = low
        if not low:
            return Notice("drafter", f"Acceptance is back: {rate:.0%} of the last {self._judged} drafts.")
        self.history.add(-self._judged, -self._accepted)
        return Notice(
            "drafter",
            f"Only {rate:.0%} of the last {self._judged} drafts were accepted; {self._expected:.0%} are expected of "
            f"this pair. The text is not affected, the speed is. Likely causes: {CAUSES}.",
        )
