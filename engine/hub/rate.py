"""Speed and time left of a transfer, from what has arrived."""

from __future__ import annotations

from collections import deque

_WINDOW = 8.0  # seconds: long enough to be calm, short enough to follow a change
_ENOUGH = 1.0


class Rate:
    """Over the last seconds. Times in seconds, amounts in bytes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, now: float, done: int) -> None:
        """So much has arrived in all. Less than before: something was thrown away, and the measurement begins anew."""
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((now, done))
        while now - self._seen[0][0] > _WINDOW:
            self._seen.popleft()

    @property
    def speed(self) -> float | None:
        """Bytes per second; None while too little was seen."""
        if len(self._seen) < 2 or self._seen[-1][0] - self._seen[0][0] < _ENOUGH:
            return None
        (then, before), (now, done) = self._seen[0], self._seen[-1]
        return (done - before) / (now - then)

    def left(self, missing: int) -> float | None:
        """Seconds; None where nobody can tell."""
        return missing / self.speed if self.speed else None


def coarse_duration(seconds: float) -> str:
    """An estimate shows no more digits than it has: "31 s", "4 min", "1.6 h"."""
    if seconds < 59.5:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
