"""The one thread that owns the engine: commands in by a queue, events out by a deque.

Rules that keep it sound: the engine is loaded, used and closed here and nowhere else (MLX streams are bound to their
thread); only bound methods of QObjects of the GUI thread are connected to `woke`; the thread is never terminated.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, QThread, Signal

from app import collector
from app.enginelike import EngineLike, Loader, Progress, SessionSink
from app.happenings import (
    TERMINAL,
    Envelope,
    Failed,
    Happening,
    Ids,
    Loaded,
    LoadFailed,
    Started,
    Unloaded,
    coalesce,
)
from engine import (
    DoesNotFit,
    EngineInfo,
    Finished,
    KnownError,
    LoadCancelled,
    LoadOptions,
    LoadProgress,
    MemoryUse,
    Notice,
    Request,
    load,
    memory_use,
)


@dataclass(frozen=True, slots=True)
class _Load:
    ids: Ids
    options: LoadOptions
    cancel: threading.Event


@dataclass(frozen=True, slots=True)
class _Unload:
    ids: Ids


@dataclass(frozen=True, slots=True)
class _Generate:
    ids: Ids
    request: Request
    stop: threading.Event


@dataclass(frozen=True, slots=True)
class _Verify:
    ids: Ids
    request: Request
    tokens: tuple[int, ...]
    stop: threading.Event


class EngineThread(QThread):
    """Start it once; give it commands; drain `take`. `close` ends it."""

    woke = Signal()
    """The first event after a `take` that found nothing. Connect only a bound method of a QObject of the GUI thread."""

    def __init__(
        self,
        load: Loader | None = None,
        sink: SessionSink | None = None,
        parent: QObject | None = None,
        *,
        afterwards: Callable[[], None] | None = None,
        kept: Callable[[], Path | None] | None = None,
        memory: Callable[[], MemoryUse] = memory_use,
        detailed: Callable[[], bool] = lambda: True,
    ) -> None:
        """
        Args:
            afterwards: called on the thread after the first load, for slow imports that the GUI must not wait for.
            kept: called on the thread after the first load and at the end: the file in which the last chat's caches
                are kept from run to run, None for nowhere.
            memory: called on the thread before and after a load.
            detailed: called on the thread before a reply: whether its stages are timed one by one.
        """
        super().__init__(parent)
        self.setObjectName("engine")
        # macOS gives a secondary thread 512 KiB, too little for evaluating a deep graph.
        self.setStackSize(16 << 20)
        self._load = load or load_engine
        self._sink = sink
        self._afterwards = afterwards
        self._kept = kept or (lambda: None)
        self._memory = memory
        self._detailed = detailed
        self._restored = False
        self.farewell: Notice | None = None
        """Why the last chat's caches could not be kept; there once the thread has ended."""
        self._commands: queue.SimpleQueue[_Load | _Unload | _Generate | _Verify | None] = queue.SimpleQueue()
        self._events: deque[Envelope] = deque()
        self._announced = threading.Event()
        self._stops: dict[int, threading.Event] = {}
        self._engine: EngineLike | None = None
        self._options: LoadOptions | None = None
        """Of the engine."""

    # called from the GUI thread

    def load(self, ids: Ids, options: LoadOptions) -> None:
        self._commands.put(_Load(ids, options, self._new_stop(ids)))

    def unload(self, ids: Ids) -> None:
        """Give the memory of the model back. Ends with Unloaded."""
        self._commands.put(_Unload(ids))

    def generate(self, ids: Ids, request: Request) -> None:
        self._commands.put(_Generate(ids, request, self._new_stop(ids)))

    def verify(self, ids: Ids, request: Request, tokens: tuple[int, ...]) -> None:
        """Replay a reply by classic decode. Ends with a Receipt, or with Failed."""
        self._commands.put(_Verify(ids, request, tokens, self._new_stop(ids)))

    def stop(self, generation: int) -> None:
        """Ask a load or a generation to end. Its terminal event still comes. Unknown ids are ignored."""
        event = self._stops.get(generation)
        if event is not None:
            event.set()

    def take(self, limit: int = 10_000) -> list[Envelope]:
        """The next events, oldest first, neighbours joined where that loses nothing."""
        taken: list[Envelope] = []
        while len(taken) < limit:
            try:
                taken.append(self._events.popleft())
            except IndexError:
                break
        if not taken:
            # Only now: whoever takes looks again until there is nothing, so what comes meanwhile need not wake it.
            self._announced.clear()
        for envelope in taken:
            if isinstance(envelope.event, TERMINAL):
                self._stops.pop(envelope.ids.generation, None)
        return coalesce(taken)

    @property
    def waiting(self) -> int:
        """Events that nobody took yet."""
        return len(self._events)

    def close(self) -> None:
        """Stop what runs, end the thread and wait for it. The engine closes on its own thread."""
        for event in list(self._stops.values()):
            event.set()
        self._commands.put(None)
        self.wait()

    def _new_stop(self, ids: Ids) -> threading.Event:
        event = threading.Event()
        self._stops[ids.generation] = event
        return event

    # on the engine's thread

    def run(self) -> None:
        try:
            while (command := self._commands.get()) is not None:
                if isinstance(command, _Load):
                    self._do_load(command)
                    afterwards, self._afterwards = self._afterwards, None
                    if afterwards is not None:
                        afterwards()
                elif isinstance(command, _Unload):
                    self._do_unload(command)
                elif isinstance(command, _Verify):
                    self._do_verify(command)
                else:
                    self._do_generate(command)
            self._save_chat()
        finally:
            self._close_engine()

    def _save_chat(self) -> None:
        path = self._kept()
        if path is None or self._engine is None:
            return
        try:
            self.farewell = self._engine.save_chat(path) or self.farewell
        except Exception as error:  # noqa: BLE001  a bug in what is optional must not keep the program from ending well
            self.farewell = Notice("cache", _trace(error))

    def _restore_chat(self, engine: EngineLike) -> None:
        """Once a run: what a model that was opened later finds is of this run, and it has that already."""
        path = None if self._restored else self._kept()
        self._restored = True
        if path is None:
            return
        try:
            engine.restore_chat(path)
        except Exception as error:  # noqa: BLE001  likewise: the model is loaded and the chat can be read again
            path.unlink(missing_ok=True)
            self.farewell = Notice("cache", _trace(error))

    def _post(self, ids: Ids, event: Happening) -> None:
        self._events.append(Envelope(ids, event))
        if not self._announced.is_set():
            self._announced.set()
            self.woke.emit()

    def _do_load(self, command: _Load) -> None:
        ids = command.ids

        def progress(step: LoadProgress) -> None:
            self._post(ids, step)

        before = self._memory()
        try:
            engine = self._new_engine(command, progress)
        except KnownError as error:
            self._post(ids, LoadFailed(error, "", self._info()))
        except LoadCancelled:
            self._post(ids, LoadFailed(None, "", self._info(), cancelled=True))
        except Exception as error:  # noqa: BLE001  a bug must reach the screen and the crash log, not end the thread
            self._post(ids, LoadFailed(None, _trace(error), self._info()))
        else:
            # Only now: a load that fails must leave the model that was there.
            self._close_engine()
            self._engine, self._options = engine, command.options
            self._restore_chat(engine)
            self._post(ids, Loaded(engine.info, before, self._memory()))

    def _new_engine(self, command: _Load, progress: Progress) -> EngineLike:
        """Beside the engine in use where both fit, so that it stays whatever happens; else in its place."""
        try:
            return self._load(command.options, progress, command.cancel)
        except DoesNotFit:
            former = self._options
            if self._engine is None or former is None:
                raise
            progress(LoadProgress("Making room: the model in use is unloaded"))
            self._close_engine()
            try:
                return self._load(command.options, progress, command.cancel)
            except BaseException:
                progress(LoadProgress("Loading the former model again"))
                # It was in memory a moment ago, so it is not asked whether it fits.
                options = replace(former, load_anyway=True)
                self._engine = self._load(options, progress, threading.Event())
                self._options = former
                raise

    def _do_unload(self, command: _Unload) -> None:
        before = self._memory()
        self._close_engine()
        self._post(command.ids, Unloaded(before, self._memory()))

    def _take_up(self, ids: Ids, stop: threading.Event) -> EngineLike | None:
        """The engine for what begins now; None, and told, when there is nothing to begin."""
        if stop.is_set():
            self._post(ids, Failed(None, ""))
            return None
        if self._engine is None:
            self._post(ids, Failed(no_model(), ""))
            return None
        self._post(ids, Started(self._engine.info))
        return self._engine

    def _do_verify(self, command: _Verify) -> None:
        engine = self._take_up(command.ids, command.stop)
        if engine is None:
            return
        try:
            for event in engine.verify(command.request, command.tokens, command.stop):
                self._post(command.ids, event)
        except KnownError as error:
            self._post(command.ids, Failed(error, ""))
        except Exception as error:  # noqa: BLE001  as above
            self._post(command.ids, Failed(None, _trace(error)))

    def _do_generate(self, command: _Generate) -> None:
        ids = command.ids
        engine = self._take_up(ids, command.stop)
        if engine is None:
            return
        info = engine.info
        engine.detailed_timing = self._detailed()
        if self._sink is not None:
            self._sink.begin(ids, info, command.request, engine.detailed_timing)
        last: Failed | Finished | None = None
        try:
            for event in engine.generate(command.request, command.stop):
                if self._sink is not None:
                    self._sink.write(event)
                if isinstance(event, Finished):
                    last = event
                else:
                    self._post(ids, event)
            if last is None:
                raise RuntimeError("the engine's events ended without Finished")
        except KnownError as error:
            last = Failed(error, "")
        except Exception as error:  # noqa: BLE001  as above
            last = Failed(None, _trace(error))
        problem = self._sink.end() if self._sink is not None else None
        if problem is not None:
            self._post(ids, problem)
        # The terminal event is the very last one of its generation.
        self._post(ids, last)

    def _info(self) -> EngineInfo | None:
        return None if self._engine is None else self._engine.info

    def _close_engine(self) -> None:
        engine, self._engine, self._options = self._engine, None, None
        if engine is not None:
            collector.take_back()
            engine.close()


def load_engine(options: LoadOptions, progress: Progress, cancel: threading.Event) -> EngineLike:
    """The real engine. `engine.load` imports MLX here, on the engine's thread."""
    return load(options, progress, cancel)


def no_model() -> KnownError:
    return KnownError(
        "No model is loaded.",
        kept="Your message is saved.",
        todo="Open a model, then press Regenerate.",
    )


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
