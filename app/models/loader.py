"""Loads models on the engine's thread and tells the window how it goes."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.errorcard import as_dict
from app.happenings import Envelope, Ids, Loaded, LoadFailed, Unloaded
from app.worker import EngineThread
from engine import DoesNotFit, EngineInfo, LoadOptions, LoadProgress, MemoryUse

SLOW_TICK_MS = 250


class ModelLoader(QObject):
    """State of the one loaded model. A load that fails leaves the former model in use.

    changed: `info` is another one. progressed: a load goes on (`progress`, `seconds`). failed: an error as a dict.
    """

    changed = Signal()
    progressed = Signal()
    failed = Signal(dict)
    bug = Signal(str)

    def __init__(self, thread: EngineThread, numbers: Numbers, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread = thread
        self._numbers = numbers
        self._generation = 0
        self._started = 0.0
        self.info: EngineInfo | None = None
        self.options: LoadOptions | None = None
        """Of the model in use."""
        self.memory: tuple[MemoryUse, MemoryUse] | None = None
        """Before and after the last load or unload."""
        self.refused: LoadOptions | None = None
        """What was not loaded because it does not fit."""
        self._wanted = LoadOptions()
        self._asked: dict[int, LoadOptions] = {}
        """Of loads that have not ended, by generation."""
        self.progress: LoadProgress | None = None
        self._tick = QTimer(self)
        self._tick.setInterval(SLOW_TICK_MS)
        self._tick.timeout.connect(self.progressed)

    @property
    def loading(self) -> bool:
        return self._generation != 0

    @property
    def seconds(self) -> float:
        """How long the present load has taken."""
        return time.monotonic() - self._started if self.loading else 0.0

    @property
    def stage(self) -> str:
        """What the present load is at, in words."""
        if self.progress is not None:
            return self.progress.stage
        # The engine does one thing at a time: a reply that is being written is written to its end, or stopped.
        return "starting" if self.info is None else "waits until the reply is written"

    @property
    def wanted_name(self) -> str:
        """The model that is being loaded, as the user named it."""
        target = self._wanted.target
        return target.rstrip("/").rsplit("/", 1)[-1] if target else "Demo model"

    def load(self, options: LoadOptions) -> None:
        """Begin; one that is under way is cancelled first."""
        self.cancel()
        self._wanted = options
        self.refused = None
        self._generation = self._numbers.next()
        self._asked[self._generation] = options
        self._started = time.monotonic()
        self.progress = None
        self._tick.start()
        self._thread.load(Ids(self._generation), options)
        self.progressed.emit()

    @Slot()
    def unload(self) -> None:
        """Give the model's memory back; a load that is under way is cancelled. `changed` tells when it is done."""
        self.cancel()
        self._thread.unload(Ids(self._numbers.next()))

    @Slot()
    def cancel(self) -> None:
        if self.loading:
            self._thread.stop(self._generation)

    @Slot(object)
    def on_events(self, batch: list[Envelope]) -> None:
        for envelope in batch:
            event, mine = envelope.event, self.loading and envelope.ids.generation == self._generation
            if isinstance(event, Unloaded):
                self.info = self.options = None
                self._measured(event)
                self.changed.emit()
            elif isinstance(event, Loaded):
                # Also of a load that was cancelled too late: then that is the model in use.
                self.info, self.options = event.info, self._asked.pop(envelope.ids.generation, self._wanted)
                self._measured(event)
                if mine:
                    self._end()
                self.changed.emit()
            elif isinstance(event, LoadFailed):
                self._asked.pop(envelope.ids.generation, None)
                if mine:
                    self._end()
                    self._on_failed(event)
            elif isinstance(event, LoadProgress) and mine:
                self.progress = event
                self.progressed.emit()

    def _on_failed(self, event: LoadFailed) -> None:
        self.info = event.current
        if event.current is None:
            self.options = None
        if event.cancelled:
            self.changed.emit()
            return
        if event.error is not None:
            error = as_dict(event.error)
            self.refused = self._wanted if isinstance(event.error, DoesNotFit) else None
        else:
            error = {
                "what": f"Pacenote made a mistake while loading {self.wanted_name}.",
                "kept": "",
                "todo": "Try another model. The details are in the crash log.",
                "detail": event.trace,
            }
            self.bug.emit(event.trace)
        if event.current is not None and not error["kept"]:
            error["kept"] = f"{event.current.name} is still loaded."
        self.failed.emit(error)

    def _measured(self, event: Loaded | Unloaded) -> None:
        if event.before is not None and event.after is not None:
            self.memory = event.before, event.after

    def _end(self) -> None:
        self._generation = 0
        self._tick.stop()


class Numbers:
    """Generation ids, never used twice in a run."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last
