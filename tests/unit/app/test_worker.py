"""The engine's thread: one thread for everything, terminal events never lost, Stop in every phase."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.happenings import Envelope, Failed, Happening, Ids, Loaded, LoadFailed, Started, Unloaded, coalesce
from app.pump import BATCH, BEHIND_MS, INTERVAL_MS, Pump
from app.replay import DEMO_INFO, ScriptedEngine
from app.worker import EngineThread
from engine import (
    CheckpointError,
    DoesNotFit,
    EndReason,
    Finished,
    Fit,
    KnownError,
    LoadCancelled,
    LoadOptions,
    LoadProgress,
    MemoryUse,
    Message,
    Need,
    Notice,
    PrefillProgress,
    Request,
    Round,
    Text,
)
from tests.unit.app.fakes import FakeLoader

ASK = Request((Message("user", "hi"),))


@pytest.fixture
def thread(qapp: object) -> Iterator[EngineThread]:
    made = EngineThread(FakeLoader())
    made.start()
    yield made
    made.close()


def drain(qtbot: QtBot, thread: EngineThread, *last: type) -> list[Envelope]:
    """Everything up to and including the first event of one of these types."""
    got: list[Envelope] = []

    def done() -> bool:
        got.extend(thread.take())
        return any(isinstance(e.event, last) for e in got)

    qtbot.waitUntil(done, timeout=10_000)
    return got


def load(qtbot: QtBot, thread: EngineThread) -> None:
    thread.load(Ids(1), LoadOptions())
    drain(qtbot, thread, Loaded)


def test_a_generation_tells_everything_and_ends_with_finished(qtbot: QtBot, thread: EngineThread) -> None:
    load(qtbot, thread)
    ids = Ids(2, 3, 4)
    thread.generate(ids, ASK)
    events = [e.event for e in drain(qtbot, thread, Finished)]
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert "".join(e.text for e in events if isinstance(e, Text)) == events[-1].answer
    rounds = [e for e in events if isinstance(e, Round)]
    assert len(events[-1].tokens) == 1 + sum(r.emitted for r in rounds)


def test_load_and_generate_happen_on_one_thread_that_is_not_the_guis(qtbot: QtBot) -> None:
    """MLX streams are bound to their thread."""
    loader = FakeLoader()
    thread = EngineThread(loader)
    thread.start()
    load(qtbot, thread)
    thread.generate(Ids(2), ASK)
    drain(qtbot, thread, Finished)
    thread.close()
    assert len(loader.threads) == 1
    assert threading.get_ident() not in loader.threads
    assert loader.engines[0].closed


def test_nothing_is_loaded(qtbot: QtBot, thread: EngineThread) -> None:
    thread.generate(Ids(2), ASK)
    (envelope,) = drain(qtbot, thread, Failed)
    assert isinstance(envelope.event, Failed)
    assert envelope.event.error is not None
    assert "No model" in envelope.event.error.what


def test_a_load_that_fails_leaves_the_old_model_usable(qtbot: QtBot) -> None:
    loader = FakeLoader()
    thread = EngineThread(loader)
    thread.start()
    load(qtbot, thread)
    for failure in (CheckpointError("damaged", todo="get another"), ZeroDivisionError("bug")):
        loader.fail = failure
        thread.load(Ids(5), LoadOptions("other"))
        event = drain(qtbot, thread, LoadFailed)[-1].event
        assert isinstance(event, LoadFailed)
        assert event.current == DEMO_INFO
        assert (event.error is failure) == isinstance(failure, KnownError)
        assert bool(event.trace) != isinstance(failure, KnownError)
    thread.generate(Ids(6), ASK)
    drain(qtbot, thread, Finished)
    assert not loader.engines[0].closed
    thread.load(Ids(7), LoadOptions("other"))
    drain(qtbot, thread, Loaded)
    assert loader.engines[0].closed
    thread.close()


def test_stop_while_loading(qtbot: QtBot) -> None:
    """Bug 40: Stop ignored during model load."""
    entered = threading.Event()

    def slow(options: LoadOptions, progress: object, cancel: threading.Event) -> ScriptedEngine:
        entered.set()
        assert cancel.wait(10)
        raise LoadCancelled

    thread = EngineThread(slow)
    thread.start()
    thread.load(Ids(1), LoadOptions())
    assert entered.wait(10)
    thread.stop(1)
    event = drain(qtbot, thread, LoadFailed)[-1].event
    assert isinstance(event, LoadFailed)
    assert event.cancelled
    thread.close()


def test_stop_in_the_middle_keeps_the_text_so_far(qtbot: QtBot) -> None:
    loader = FakeLoader()
    loader.hold_at = 5
    thread = EngineThread(loader)
    thread.start()
    load(qtbot, thread)
    thread.generate(Ids(2), ASK)
    assert loader.held.wait(10)
    thread.stop(2)
    loader.release()
    event = drain(qtbot, thread, Finished)[-1].event
    assert isinstance(event, Finished)
    assert event.reason is EndReason.STOPPED
    assert event.answer.startswith("You said")
    thread.close()


def test_stop_before_its_turn_does_not_start_it(qtbot: QtBot) -> None:
    loader = FakeLoader()
    loader.hold_at = 1
    thread = EngineThread(loader)
    thread.start()
    load(qtbot, thread)
    thread.generate(Ids(2), ASK)
    thread.generate(Ids(3), ASK)
    assert loader.held.wait(10)
    thread.stop(3)
    loader.release()
    got = drain(qtbot, thread, Failed)
    assert got[-1] == Envelope(Ids(3), Failed(None, ""))
    assert len(loader.requests) == 1
    thread.close()


@pytest.mark.parametrize("error", [KnownError("memory", todo="close programs"), ValueError("bug")])
def test_a_failure_keeps_what_was_said_and_the_thread_goes_on(qtbot: QtBot, error: Exception) -> None:
    loader = FakeLoader()
    loader.error = error
    thread = EngineThread(loader)
    thread.start()
    load(qtbot, thread)
    thread.generate(Ids(2), ASK)
    got = drain(qtbot, thread, Failed)
    failed = got[-1].event
    assert isinstance(failed, Failed)
    assert (failed.error is error) == isinstance(error, KnownError)
    assert ("ValueError: bug" in failed.trace) == isinstance(error, ValueError)
    assert any(isinstance(e.event, Text) for e in got)
    loader.error = None
    thread.generate(Ids(3), ASK)
    drain(qtbot, thread, Finished)
    thread.close()


def test_an_engine_that_ends_without_finished_is_a_bug(qtbot: QtBot) -> None:
    class Mute(ScriptedEngine):
        def generate(self, request: Request, stop: threading.Event) -> Iterator[Text]:
            yield Text("half")

    thread = EngineThread(lambda *_: Mute(lambda request: ("", "")))
    thread.start()
    load(qtbot, thread)
    thread.generate(Ids(2), ASK)
    failed = drain(qtbot, thread, Failed)[-1].event
    assert isinstance(failed, Failed)
    assert "without Finished" in failed.trace
    thread.close()


def test_the_sink_gets_every_event_and_its_notice_comes_before_the_end(qtbot: QtBot) -> None:
    class Sink:
        def __init__(self) -> None:
            self.seen: list[object] = []
            self.ended = 0

        def begin(self, ids: Ids, info: object, request: Request, detailed: bool) -> None:
            self.seen.append(ids)

        def write(self, event: object) -> None:
            self.seen.append(event)

        def end(self) -> Notice | None:
            self.ended += 1
            return Notice("decline", "The session log is off: the disk is full.")

    sink = Sink()
    thread = EngineThread(FakeLoader(), sink)
    thread.start()
    load(qtbot, thread)
    thread.generate(Ids(2), ASK)
    got = drain(qtbot, thread, Finished)
    assert isinstance(sink.seen[-1], Finished)
    assert sink.ended == 1
    assert isinstance(got[-2].event, Notice)
    thread.close()


def test_stages_are_timed_as_the_setting_of_the_moment_says(qtbot: QtBot) -> None:
    """Asked before each reply, and told to the log: figures without it mean something else."""
    told: list[bool] = []

    class Sink:
        def begin(self, ids: Ids, info: object, request: Request, detailed: bool) -> None:
            told.append(detailed)

        def write(self, event: object) -> None:
            pass

        def end(self) -> Notice | None:
            return None

    wanted = iter((True, False, True))
    thread = EngineThread(FakeLoader(), Sink(), detailed=lambda: next(wanted))
    thread.start()
    load(qtbot, thread)
    for generation in (2, 3, 4):
        thread.generate(Ids(generation), ASK)
        drain(qtbot, thread, Finished)
    assert told == [True, False, True]
    thread.close()


def test_closing_in_the_middle_waits_for_the_end(qtbot: QtBot) -> None:
    loader = FakeLoader()
    loader.hold_at = 3
    thread = EngineThread(loader)
    thread.start()
    load(qtbot, thread)
    thread.generate(Ids(2), ASK)
    assert loader.held.wait(10)
    loader.release()
    thread.close()
    assert thread.isFinished()
    assert isinstance(thread.take()[-1].event, Finished)


def test_it_wakes_the_window_once_while_events_are_taken(qtbot: QtBot) -> None:
    """Counted: it woke the window after each batch, although the pump's timer was about to look anyway."""
    thread = EngineThread(FakeLoader())
    woken: list[int] = []
    thread.woke.connect(lambda: woken.append(1))
    for _ in range(5):
        thread._post(Ids(1), Notice("park", "slow"))
        assert thread.take()
    assert len(woken) == 1
    assert thread.take() == []
    thread._post(Ids(1), Notice("park", "slow"))
    assert len(woken) == 2


def test_the_pump_rests_when_there_is_nothing(qtbot: QtBot, thread: EngineThread) -> None:
    pump = Pump(thread)
    got: list[Envelope] = []
    pump.arrived.connect(got.extend)
    thread.load(Ids(1), LoadOptions())
    qtbot.waitUntil(lambda: any(isinstance(e.event, Loaded) for e in got))
    qtbot.waitUntil(lambda: not pump._timer.isActive())
    thread.generate(Ids(2), ASK)
    qtbot.waitUntil(lambda: any(isinstance(e.event, Finished) for e in got))
    qtbot.waitUntil(lambda: not pump._timer.isActive())


def test_a_backlog_is_brought_in_small_turns(qtbot: QtBot) -> None:
    """4,000 events in one turn held the window for 60 ms of its thread's own work, 86 on a slow machine."""
    thread = EngineThread(FakeLoader())
    pump = Pump(thread)
    turns: list[int] = []
    waits: list[int] = []

    def note(batch: list[Envelope]) -> None:
        turns.append(len(batch))
        waits.append(pump._timer.interval())

    pump.arrived.connect(note)
    count = 3 * BATCH + 1
    for _ in range(count):
        thread._post(Ids(1), Notice("park", "slow"))
    qtbot.waitUntil(lambda: not pump._timer.isActive())
    assert turns == [BATCH, BATCH, BATCH, 1]
    assert waits == [BEHIND_MS, BEHIND_MS, INTERVAL_MS, INTERVAL_MS]


events = st.one_of(
    st.builds(Text, st.text(max_size=3), st.sampled_from(["answer", "reasoning"])),
    st.builds(PrefillProgress, st.integers(0, 9), st.just(9), st.just(0), st.just(0.0)),
    st.builds(LoadProgress, st.just("stage"), st.integers(0, 9)),
    st.builds(Notice, st.just("park"), st.text(max_size=3)),
    st.just(Failed(None, "")),
    st.just(LoadFailed(None, "", None)),
    st.just(Loaded(DEMO_INFO)),
)
envelopes = st.lists(st.builds(Envelope, st.builds(Ids, st.integers(1, 3)), events), max_size=40)


@given(envelopes)
def test_joining_loses_nothing(batch: list[Envelope]) -> None:
    """Per generation: the same text per channel in the same places, every event that is neither text nor progress."""
    joined = coalesce(batch)
    assert len(joined) <= len(batch)
    for generation in (1, 2, 3):
        assert _essence(batch, generation) == _essence(joined, generation)


def _essence(batch: list[Envelope], generation: int) -> list[Happening | tuple[str, str]]:
    """What must survive: runs of text as one, of progress the last before something else."""
    result: list[Happening | tuple[str, str]] = []
    for envelope in batch:
        event = envelope.event
        if envelope.ids.generation != generation:
            continue
        last = result[-1] if result else None
        if isinstance(event, Text):
            if isinstance(last, tuple) and last[0] == event.channel:
                result[-1] = (event.channel, last[1] + event.text)
            else:
                result.append((event.channel, event.text))
        elif isinstance(event, PrefillProgress | LoadProgress) and type(last) is type(event):
            result[-1] = event
        else:
            result.append(event)
    return result


TOO_LARGE = DoesNotFit("It does not fit.", todo="Load it anyway.", fit=Fit(Need(2, 0, 0, 0, 0, 0), 1, 1, 1, ""))


class Memory:
    """A device that holds the engines that are open, and no more of them than `room`."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.engines: list[ScriptedEngine] = []
        self.asked: list[LoadOptions] = []
        self.broken: set[str] = set()

    @property
    def held(self) -> int:
        return sum(not engine.closed for engine in self.engines)

    def load(self, options: LoadOptions, progress: object, cancel: threading.Event) -> ScriptedEngine:
        self.asked.append(options)
        if self.held >= self.room and not options.load_anyway:
            raise TOO_LARGE
        if options.target in self.broken:
            raise CheckpointError("It is damaged.", todo="Download it again.")
        info = dataclasses.replace(DEMO_INFO, name=options.target or "demo")
        self.engines.append(ScriptedEngine(lambda request: ("", "words"), info=info))
        return self.engines[-1]

    def use(self) -> MemoryUse:
        return MemoryUse(self.held, self.room - self.held)


@pytest.fixture
def memory() -> Memory:
    return Memory(room=1)


@pytest.fixture
def small(qapp: object, memory: Memory) -> Iterator[EngineThread]:
    made = EngineThread(memory.load, memory=memory.use)
    made.start()
    yield made
    made.close()


def test_switching_gives_the_memory_back_where_both_do_not_fit(
    qtbot: QtBot, small: EngineThread, memory: Memory
) -> None:
    """The model in use makes room for the next one; the figures before and after are told."""
    load(qtbot, small)
    small.load(Ids(2), LoadOptions(target="b"))
    loaded = drain(qtbot, small, Loaded)[-1].event
    assert isinstance(loaded, Loaded)
    assert (loaded.info.name, memory.held) == ("b", 1)
    assert memory.engines[0].closed
    assert (loaded.before, loaded.after) == (MemoryUse(1, 0), MemoryUse(1, 0))


def test_the_model_in_use_stays_while_both_fit(qtbot: QtBot, small: EngineThread, memory: Memory) -> None:
    memory.room = 2
    load(qtbot, small)
    memory.broken = {"b"}
    small.load(Ids(2), LoadOptions(target="b"))
    failed = drain(qtbot, small, LoadFailed)[-1].event
    assert isinstance(failed, LoadFailed)
    assert failed.current is not None
    assert not memory.engines[0].closed
    assert len(memory.engines) == 1


@pytest.mark.parametrize("what", ["damaged", "too large"])
def test_a_load_that_fails_after_making_room_brings_the_former_model_back(
    what: str, qtbot: QtBot, small: EngineThread, memory: Memory
) -> None:
    """Whatever happens to the new model, the old one answers afterwards."""
    load(qtbot, small)
    if what == "damaged":
        memory.broken = {"b"}
    else:
        memory.room = 0
    small.load(Ids(2), LoadOptions(target="b"))
    failed = drain(qtbot, small, LoadFailed)[-1].event
    assert isinstance(failed, LoadFailed)
    assert failed.current is not None
    assert failed.current.name == "demo"
    assert memory.asked[-1] == LoadOptions(load_anyway=True)
    small.generate(Ids(3, 1, 1), ASK)
    assert isinstance(drain(qtbot, small, Finished, Failed)[-1].event, Finished)


def test_unload_gives_the_memory_back(qtbot: QtBot, small: EngineThread, memory: Memory) -> None:
    load(qtbot, small)
    small.unload(Ids(2))
    unloaded = drain(qtbot, small, Unloaded)[-1].event
    assert unloaded == Unloaded(MemoryUse(1, 0), MemoryUse(0, 1))
    small.generate(Ids(3, 1, 1), ASK)
    failed = drain(qtbot, small, Failed)[-1].event
    assert isinstance(failed, Failed)
    assert failed.error is not None
    assert failed.error.what == "No model is loaded."


def test_what_does_not_fit_into_an_empty_device_is_refused(qtbot: QtBot, small: EngineThread, memory: Memory) -> None:
    memory.room = 0
    small.load(Ids(1), LoadOptions(target="b"))
    failed = drain(qtbot, small, LoadFailed)[-1].event
    assert failed == LoadFailed(TOO_LARGE, "", None)
    small.load(Ids(2), LoadOptions(target="b", load_anyway=True))
    assert isinstance(drain(qtbot, small, Loaded, LoadFailed)[-1].event, Loaded)
