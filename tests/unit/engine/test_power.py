"""What the system says about power and heat, and that costs are measured afresh when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import power
from engine.calibrate import CostWatch, Measured, sample
from engine.loading import Pair
from tests.support.device import costs


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ({}, "unknown"),
        ({"AC": {"type": "Mains", "online": "1"}, "BAT0": {"type": "Battery", "status": "Charging"}}, "mains"),
        ({"AC": {"type": "Mains", "online": "0"}, "BAT0": {"type": "Battery", "status": "Discharging"}}, "battery"),
        ({"BAT0": {"type": "Battery"}}, "unknown"),
    ],
)
def test_source_on_linux(tmp_path: Path, supplies: dict[str, dict[str, str]], expected: str) -> None:
    for name, fields in supplies.items():
        (tmp_path / name).mkdir()
        for field, value in fields.items():
            (tmp_path / name / field).write_text(value + "\n")
    assert power.source_linux(tmp_path) == expected
    assert power.source_linux(tmp_path / "missing") == "unknown"


@pytest.mark.parametrize(
    ("batt", "therm", "expected"),
    [
        ("Now drawing from 'AC Power'\n", "CPU_Speed_Limit \t= 100\n", "mains"),
        ("Now drawing from 'Battery Power'\n", "Note: No thermal warning level has been recorded\n", "battery"),
        (
            "Now drawing from 'Battery Power'\n",
            "CPU_Scheduler_Limit = 100\nCPU_Speed_Limit = 62\n",
            "battery, slowed by heat",
        ),
        ("", "", "unknown"),
    ],
)
def test_state_on_macos(monkeypatch: pytest.MonkeyPatch, batt: str, therm: str, expected: str) -> None:
    monkeypatch.setattr(power.sys, "platform", "darwin")
    monkeypatch.setattr(power, "_pmset", lambda topic: {"batt": batt, "therm": therm}[topic])
    assert power.state() == expected


def test_costs_are_measured_afresh_when_the_power_state_changes(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """On battery a laptop may run at half speed: what was measured on mains says nothing about it."""
    said, now, asked = "mains", 0.0, []
    monkeypatch.setattr(power, "state", lambda: asked.append(now) or said)
    assert pair.drafter is not None
    watch = CostWatch(pair.target, pair.drafter, (2, 3), sample(pair.tokenizer), lambda: now)
    now = 200.0
    assert watch.look() is None
    said = "battery"
    now = 210.0
    assert watch.look() is None, "asked 10 s ago"
    assert asked == [0.0, 200.0]
    now = 240.0
    found = watch.look()
    assert found is not None
    costs, notice = found
    assert set(costs.rounds) == {1, 2, 3}
    assert "now battery" in notice.text
    assert "was mains" in notice.text
    assert watch.look() is None


def test_a_machine_at_the_limit_of_its_heat_does_not_measure_all_the_time(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: macOS says 100 and 99 in turns there, and each reply waited two seconds for new costs."""
    measured, now = [], 0.0
    monkeypatch.setattr(power, "state", lambda: f"battery{', slowed by heat' if now % 80 else ''}")
    monkeypatch.setattr("engine.calibrate.measure", lambda *_: measured.append(now) or Measured(costs(0.1), 0, 0))
    assert pair.drafter is not None
    watch = CostWatch(pair.target, pair.drafter, (2, 3), sample(pair.tokenizer), lambda: now)
    while now < 600:
        now += 40.0
        watch.look()
    assert 2 <= len(measured) <= 5
