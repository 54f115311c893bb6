"""A timer that beats every 20 ms in the GUI thread and keeps what passed in between: the window's stalls."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Slot

BEAT_MS = 20


def waited_ms(*, gui: bool = True) -> float:
    """Milliseconds for which threads of this process were ready to run and had no core. 0 where nobody tells.

    gui: count the GUI thread too.
    """
    total = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        if not gui and path.parent.name == str(os.getpid()):
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(path.read_text().split()[1])
    return total / 1e6


class Heart(QTimer):
    """Milliseconds between beats. Make it in the GUI thread.

    walls: on the clock. gaps: without the wait for a core, which other programs cause. works: this thread's own work.
    cost: seconds of this thread's work that the beats themselves took, reading the kernel's files.
    """

    def __init__(self) -> None:
        super().__init__()
        self.walls: list[float] = []
        self.gaps: list[float] = []
        self.works: list[float] = []
        self.cost = 0.0
        self._last = (time.perf_counter(), time.thread_time(), waited_ms())
        self.setTimerType(Qt.TimerType.PreciseTimer)
        self.timeout.connect(self.beat)
        self.start(BEAT_MS)

    @Slot()
    def beat(self) -> None:
        began = time.thread_time()
        now = (time.perf_counter(), time.thread_time(), waited_ms())
        wall, work, waited = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        self.walls.append(wall * 1000)
        self.works.append(work * 1000)
        self.gaps.append(max(work * 1000, wall * 1000 - waited))
        self.cost += time.thread_time() - began


def p99(values: list[float]) -> float:
    """The value that one in a hundred exceeds."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]
