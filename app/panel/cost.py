"""What logging and an open panel cost a generation: the same reply with each, interleaved in one process.

    python -m app.panel.cost --pairs 30 --out docs/benchmark_results

The engine runs on its thread and its events reach the GUI thread as in the window. Only the log and the panel differ
between the arms; the transcript is drawn in none of them. The clock runs on the engine's thread, from the first token
to the footer of the log, so that all that the sink does and all that holds the thread up is inside.

Where the machine is too restless for that clock, what log and panel did themselves is a bound: the time of the log's
calls, and the processor time of the GUI thread.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from time import perf_counter, thread_time

from PySide6.QtCore import QEventLoop, QObject, Slot
from PySide6.QtWidgets import QApplication, QMainWindow

from app.application import make_qt
from app.enginelike import EngineLike, Loader
from app.happenings import Envelope, Failed, Ids, Loaded, LoadFailed
from app.panel.cost_record import ARMS, Arm, Run, Runs, page, problems
from app.panel.meter import Meter
from app.panel.panel import Panel
from app.pump import Pump
from app.sessionlog import SessionLogs, log_path
from app.theme import Theme
from app.worker import EngineThread, load_engine
from engine import (
    EngineInfo,
    Event,
    Finished,
    KnownError,
    LoadOptions,
    Message,
    Notice,
    PrefillProgress,
    Request,
    Round,
    Speculation,
    blocks,
    conditions,
    environment,
)

BUSY_LOAD = 0.25  # per core; as `pacenote bench`
WARM_UP = 2
CHAT = "cost"
PROMPT = "Tell me a story about a lighthouse keeper and a storm."


class _Timed:
    """The engine with a stopwatch around the decode, read on its own thread."""

    def __init__(self, engine: EngineLike) -> None:
        self._engine = engine
        self.seconds = 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def generate(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        started = 0.0
        for event in self._engine.generate(request, stop):
            if isinstance(event, PrefillProgress):
                started = perf_counter()  # the last one comes with the first token
            yield event
        self.seconds = perf_counter() - started


class _Switch:
    """A `SessionSink` that is there or not. seconds: that it held up the engine's thread since they were set to 0."""

    def __init__(self, logs: SessionLogs) -> None:
        self._logs = logs
        self.on = False
        self.seconds = 0.0

    def begin(self, ids: Ids, info: EngineInfo, request: Request, detailed: bool) -> None:
        if self.on:
            with self._watched():
                self._logs.begin(ids, info, request, detailed)

    def write(self, event: Event) -> None:
        if self.on:
            with self._watched():
                self._logs.write(event)

    def end(self) -> Notice | None:
        if not self.on:
            return None
        with self._watched():
            return self._logs.end()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        started = perf_counter()
        yield
        self.seconds += perf_counter() - started


class Bench(QObject):
    """An engine's thread, a meter and a panel in a window of its own. `close` it."""

    def __init__(self, load: Loader, options: LoadOptions, folder: Path) -> None:
        super().__init__()
        self._load, self._folder = load, folder
        self._switch = _Switch(SessionLogs(folder))
        self._engine: _Timed | None = None
        self.thread_ = EngineThread(self._loaded, self._switch, self)
        self._pump = Pump(self.thread_, self)
        self._pump.arrived.connect(self._on_events)
        self._loop = QEventLoop(self)
        self._terminal: object = None
        self._meter = Meter()
        self.window = QMainWindow()
        self.panel = Panel(self._meter)
        self.window.setCentralWidget(self.panel)
        self._number = 0
        self.thread_.start()
        self.thread_.load(Ids(0), options)
        loaded = self._wait()
        assert isinstance(loaded, Loaded)
        self.info = loaded.info
        self.panel.set_info(self.info)

    def _loaded(self, options: LoadOptions, *more: object) -> EngineLike:
        self._engine = _Timed(self._load(options, *more))  # type: ignore[arg-type]
        return self._engine  # type: ignore[return-value]

    def run(self, arm: Arm, request: Request) -> Run:
        """One reply. Raises KnownError when the engine does."""
        self._switch.on = arm.log
        self.window.setVisible(arm.panel)
        self._meter.begin()
        lines, draws = self._lines(), self.panel.draws
        self.panel.set_live(True)
        self._number += 1
        self._switch.seconds, before = 0.0, thread_time()
        self.thread_.generate(Ids(self._number, 1, 1, CHAT, "m"), request)
        done = self._wait()
        gui = thread_time() - before
        self.panel.set_live(False)
        assert isinstance(done, Finished)
        assert self._engine is not None
        lines, draws = self._lines() - lines, self.panel.draws - draws
        return Run(self._engine.seconds, done.tokens, lines, draws, gui, self._switch.seconds)

    def _lines(self) -> int:
        path = log_path(self._folder, CHAT)
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def _wait(self) -> object:
        self._terminal = None
        self._loop.exec()
        if isinstance(self._terminal, Failed | LoadFailed):
            raise self._terminal.error or RuntimeError(self._terminal.trace)
        return self._terminal

    @Slot(object)
    def _on_events(self, batch: list[Envelope]) -> None:
        for envelope in batch:
            event = envelope.event
            if isinstance(event, Round):
                self._meter.round(event)
            elif isinstance(event, PrefillProgress):
                self._meter.prefill(event)
            elif isinstance(event, Finished):
                self._meter.finish(event.stats)
            if isinstance(event, Finished | Failed | Loaded | LoadFailed):
                self._terminal = event
                self._loop.quit()

    def close(self) -> None:
        self.panel.set_live(False)
        self.thread_.close()
        self._pump.drain_all()
        self.window.close()
        for owner in (self.window, self):
            owner.deleteLater()  # by Qt, in order; Python would take the parts down in any


def measure(bench: Bench, request: Request, pairs: int, seed: int, say: Callable[[str], object]) -> Runs:
    """Every arm once per block, in an order drawn anew; the first WARM_UP blocks are thrown away."""
    runs: Runs = {arm.name: [] for arm in ARMS}
    for number, order in enumerate(blocks(ARMS, pairs + WARM_UP, seed)):
        say(f"block {number + 1} of {pairs + WARM_UP}")
        for arm in order:
            run = bench.run(arm, request)
            if number >= WARM_UP:
                runs[arm.name].append(run)
    return runs


def busy(load: Sequence[float], cores: int) -> str:
    """Why this machine is too busy to measure on, "" when it is not."""
    if not load or not cores or load[0] / cores <= BUSY_LOAD:
        return ""
    return f"This machine is busy: a load of {load[0] / cores:.2f} per core, {BUSY_LOAD} is the limit."


def main(argv: Sequence[str] | None = None, load: Loader = load_engine) -> int:
    """Returns 0 when the arms are proven, 1 when not or on a known error."""
    parser = argparse.ArgumentParser(prog="python -m app.panel.cost", description=__doc__.splitlines()[0])
    parser.add_argument("--model", metavar="PLACE", help="the bundled demo pair when absent")
    parser.add_argument("--pairs", type=int, default=30, metavar="N")
    parser.add_argument("--tokens", type=int, default=96, metavar="N")
    parser.add_argument("--mtp", type=Speculation, choices=list(Speculation), default=Speculation.OFF,
                        help="off (default) logs and draws most: a round for every token")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the order of runs")
    parser.add_argument("--anyway", action="store_true", help="measure on a busy machine; the record says so")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmark_results"), metavar="DIR")
    asked = parser.parse_args(argv)
    now = conditions()
    stamp = busy(now.load, environment().cpus)
    if stamp and not asked.anyway:
        sys.stderr.write(f"{stamp} Close other programs, or measure with --anyway.\n")
        return 1
    request = Request((Message("user", PROMPT),), max_tokens=asked.tokens, speculation=asked.mtp, ignore_eos=True)
    qt = QApplication.instance() or make_qt(["pacenote"])
    theme = Theme(qt, "light")  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        bench = None
        try:
            bench = Bench(load, LoadOptions(target=asked.model), Path(folder))
            runs = measure(bench, request, asked.pairs, asked.seed, lambda text: sys.stderr.write(text + "\n"))
            info = bench.info
        except KnownError as error:
            sys.stderr.write(f"{error} {error.detail}\n")
            return 1
        finally:
            if bench is not None:
                bench.close()
            theme.setParent(None)
    found = problems(runs)
    command = shlex.join(["python", "-m", "app.panel.cost", *(argv if argv is not None else sys.argv[1:])])
    text = "\n".join(page(info, runs, found, stamp, WARM_UP, command)) + "\n"
    sys.stdout.write(text)
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / f"panel-and-log-{environment().machine}-{environment().cpus}-cores-{date.today().isoformat()}.md"
    path.write_text(text, encoding="utf-8")
    raw = {name: [dataclasses.asdict(run) for run in done] for name, done in runs.items()}
    path.with_suffix(".json").write_text(json.dumps({"load": now.load, "runs": raw}) + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
