"""The measurement of what log and panel cost: its arms are what they are called, and its verdict can fail."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.happenings import Envelope
from app.panel import cost, live
from app.panel.cost import Bench, busy, main, measure
from app.panel.cost_record import ARMS, BOTH, OFF, Run, problems, verdict, worst
from app.replay import ScriptedEngine, ScriptedLoader
from engine import LoadOptions, Message, Request

REQUEST = Request((Message("user", "x"),), max_tokens=200)


@pytest.fixture
def runs(qapp: QApplication, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Run]]:
    """One block. The engine waits now and then until its events have arrived, so that there is something to draw."""
    monkeypatch.setattr(cost, "WARM_UP", 0)
    monkeypatch.setattr(live, "INTERVAL_MS", 1)
    arrived = threading.Event()
    benches: list[Bench] = []

    class Telling(Bench):
        @Slot(list)
        def _on_events(self, batch: list[Envelope]) -> None:
            super()._on_events(batch)
            arrived.set()

    def gate(index: int) -> None:
        arrived.clear()
        if index % 20 == 19 and benches[0].thread_.waiting:
            arrived.wait(5)

    engines = ScriptedLoader(lambda _: ScriptedEngine(lambda _: ("", "word " * 60), gate=gate))
    bench = Telling(engines, LoadOptions(), tmp_path)
    benches.append(bench)
    try:
        return measure(bench, REQUEST, 1, 0, lambda _: None)
    finally:
        bench.close()


def test_the_arms_differ_in_log_and_panel_and_in_nothing_else(runs: dict[str, list[Run]]) -> None:
    assert problems(runs) == []
    for arm in ARMS:
        (run,) = runs[arm.name]
        assert run.tokens == runs[OFF.name][0].tokens
        assert (run.lines > 10) == arm.log
        assert (run.draws > 1) == arm.panel
        assert run.seconds > 0
        assert run.gui > 0
        assert (run.log > 0) == arm.log


def test_an_arm_that_does_another_ones_work_is_named(runs: dict[str, list[Run]]) -> None:
    (run,) = runs[BOTH.name]
    wrong = ({"lines": 0}, "log grew"), ({"draws": 0}, "panel was drawn"), ({"tokens": (1,)}, "other tokens")
    for change, told in wrong:
        (problem,) = problems({**runs, BOTH.name: [replace(run, **change)]})
        assert problem.startswith("log and panel: ")
        assert told in problem


def arms(**seconds: list[float]) -> dict[str, list[Run]]:
    """By arm, "_" for a space. Arms that are not named take a second, or a thousandth more."""
    even = [1.0, 1.001] * 15
    made = {name.replace("_", " "): taken for name, taken in seconds.items()}
    return {arm.name: [Run(s, (), 0, 0, gui=9.0) for s in made.get(arm.name, even)] for arm in ARMS}


def test_the_verdict_needs_more_than_noise() -> None:
    """A loss beyond the A/A band falls short, one inside it is not shown, none holds."""
    heavy = {"gui": 9.1}  # so that what panel and log used settles nothing
    assert verdict(arms()).startswith("It holds: all")
    assert "falls short" in verdict(arms(log_and_panel=[1.1] * 30))
    few = {arm.name: [Run(1.0, (), 0, 0)] for arm in ARMS}
    few["both off again"] = [Run(3.0, (), 0, 0)]
    assert verdict(few).startswith("Not shown: "), "one pair on a busy machine held once"
    assert "differed from itself" in verdict(few)
    for noisy in (
        arms(log_and_panel=[1.0, 1.03] * 15),
        arms(both_off_again=[0.8, 1.3] * 15, log_and_panel=[0.9, 1.15] * 15),
    ):
        noisy[BOTH.name] = [replace(run, **heavy) for run in noisy[BOTH.name]]
        assert verdict(noisy).startswith("Not shown: ")


def test_on_a_restless_machine_what_log_and_panel_used_is_a_bound() -> None:
    """All of it counts, also what both off use not: 5 ms in the log's calls and 10 of the GUI thread of a second."""
    noisy = arms(both_off_again=[0.8, 1.3] * 15, log_and_panel=[0.9, 1.15] * 15)
    noisy[BOTH.name] = [replace(run, gui=9.010, log=0.005) for run in noisy[BOTH.name]]
    assert worst(noisy).median == pytest.approx(1 / 1.015, abs=1e-4)
    assert verdict(noisy).startswith("It holds by what log and panel used (0.985")
    noisy[BOTH.name] = [replace(run, gui=9.016, log=0.005) for run in noisy[BOTH.name]]
    assert verdict(noisy).startswith("Not shown: ")


def test_a_busy_machine_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert busy((2.0, 1.0, 1.0), 4).startswith("This machine is busy")
    assert busy((0.5, 9.0, 9.0), 4) == busy((), 4) == ""
    monkeypatch.setattr(cost, "busy", lambda *_: "busy")
    assert main(["--out", str(tmp_path)]) == 1
    assert list(tmp_path.iterdir()) == []
