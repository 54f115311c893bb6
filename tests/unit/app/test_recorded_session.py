"""One recorded session, five ways to its figures: panel, footer, CSV, record, and a computation of this test alone.

They must agree to the last digit that each shows. The computation here reads the log's lines with nothing but JSON.
"""

from __future__ import annotations

import csv
import io
import json
import random
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.happenings import Ids
from app.panel.meter import Meter
from app.panel.panel import Panel
from app.panel.words import why_text
from app.replay import DEMO_INFO, Pieces, ScriptedEngine
from app.sessionlog import SessionLogs, log_parts
from engine import (
    ContextUse,
    ExportKind,
    Finished,
    Message,
    Notice,
    PrefillProgress,
    Request,
    Round,
    Speculation,
    export_logs,
)

STAGES = ("draft_ms", "verify_ms", "rollback_ms", "hook_ms", "host_ms")
NAMES = {"draft_ms": "draft", "verify_ms": "verify", "rollback_ms": "rollback", "hook_ms": "hook", "host_ms": "host"}


@dataclass
class Recorded:
    panel: Panel
    footer: dict[str, Any]
    rounds: list[dict[str, Any]]
    prefill: dict[str, Any]
    csv: dict[str, str]
    page: str


@pytest.fixture(params=range(6))
def recorded(request: pytest.FixtureRequest, qtbot: QtBot, tmp_path: Path) -> Recorded:
    """A reply as the window takes it: every event goes to the log and to the meter. With cuts, parks, budgets."""
    draw = random.Random(request.param)
    words = " ".join(str(draw.random()) for _ in range(draw.randint(3, 60)))
    engine = ScriptedEngine(lambda _: ("", words), pieces=Pieces(draw.randint(0, 99), draw.randint(1, 6)))
    asked = Request(
        (Message("user", "x"),),
        seed=draw.randint(0, 999),
        max_tokens=draw.choice((7, 40, 9999)),
        block_size=draw.randint(2, 8),
        speculation=draw.choice((Speculation.ON, Speculation.ALWAYS)),
    )
    logs, meter = SessionLogs(tmp_path), Meter()
    meter.new_model(31.7)
    meter.begin()
    logs.begin(Ids(1, 1, 1, "chat", "m"), DEMO_INFO, asked, True)
    for event in engine.generate(asked, threading.Event()):
        logs.write(event)
        if isinstance(event, Round):
            meter.round(event)
        elif isinstance(event, PrefillProgress):
            meter.prefill(event)
        elif isinstance(event, ContextUse):
            meter.context(event)
        elif isinstance(event, Notice):
            meter.note(event)
        elif isinstance(event, Finished):
            meter.finish(event.stats)
    logs.end()
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.show()
    panel.set_info(DEMO_INFO)
    parts = log_parts(tmp_path, "chat")
    texts = {}
    for kind in (ExportKind.REPLIES, ExportKind.RECORD):
        export_logs(parts, kind, tmp_path / "out")
        texts[kind] = (tmp_path / "out").read_text()
    rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    return Recorded(
        panel=panel,
        footer=next(row for row in rows if row["kind"] == "footer")["stats"],
        rounds=[row for row in rows if row["kind"] == "round"],
        prefill=next(row for row in rows if row["kind"] == "prefill"),
        csv=next(csv.DictReader(io.StringIO(texts[ExportKind.REPLIES]))),
        page=texts[ExportKind.RECORD],
    )


def row_of(page: str, title: str, first: str) -> dict[str, str]:
    """The row of the table under a heading whose first cell is `first`."""
    lines = page.split(f"### {title}\n")[1].strip().splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return dict(zip(table[0], next(row for row in table[2:] if row[0] == first), strict=True))


def test_every_figure_is_the_same_everywhere(recorded: Recorded) -> None:
    rounds, panel, footer, table = recorded.rounds, recorded.panel, recorded.footer, recorded.csv
    count = len(rounds)
    reply = recorded.csv["gen"]
    accepted, drafted = sum(r["accepted"] for r in rounds), sum(r["drafted"] for r in rounds)
    cut, emitted = sum(r["cut"] for r in rounds), sum(r["emitted"] for r in rounds)
    tokens = 1 + emitted
    assert tokens == 1 + accepted + count - cut, "the identity, from the rows alone"
    # As docs/session_log.md says: sums are taken over whole nanoseconds.
    ns = {stage: sum(round(r[stage] * 1e6) for r in rounds) for stage in STAGES}
    ms = {stage: value / 1e6 for stage, value in ns.items()}
    total = sum(ns.values()) / 1e6
    shown = row_of(recorded.page, "Replies", reply)
    spent = row_of(recorded.page, "Milliseconds per round (share)", reply)

    # counts
    for name, value in (
        ("tokens", tokens), ("rounds", count), ("accepted", accepted), ("drafted", drafted), ("cut", cut),
        ("prompt_tokens", recorded.prefill["total"]), ("restored_tokens", recorded.prefill["restored"]),
        ("parked_rounds", sum(r.get("parked", False) for r in rounds)),
    ):  # fmt: skip
        assert footer[name] == int(table[name]) == value, name
    assert (shown["tokens"], spent["rounds"]) == (str(tokens), str(count))
    assert panel.counts.text() == (f"{accepted:,} of {drafted:,} drafts" if drafted else "")

    # speed
    speed = (tokens - 1) / total * 1e3
    assert panel.speed.text() == f"{speed:.1f} tok/s" == f"{float(table['tokens_per_second']):.1f} tok/s"
    assert shown["tok/s"] == f"{speed:.1f}"
    assert footer["decode_seconds"] == float(table["decode_seconds"]) == sum(ns.values()) / 1e9

    # acceptance
    rate, length = accepted / drafted, 1 + accepted / count
    assert panel.acceptance.text() == shown["acceptance"] == f"{rate * 100:.0f} %"
    assert float(table["acceptance_rate"]) == rate
    assert panel.length.text() == f"mean length {length:.2f}"
    assert shown["mean acceptance length"] == f"{length:.2f}"
    assert float(table["mean_acceptance_length"]) == length
    deepest = max(r["drafted"] for r in rounds)
    made = [sum(r["drafted"] > place for r in rounds) for place in range(deepest)]
    taken = [sum(r["accepted"] > place for r in rounds) for place in range(deepest)]
    assert (footer["drafted_at"], footer["accepted_at"]) == (made, taken)
    positions = [f"{a / d * 100:.0f} %" for a, d in zip(taken, made, strict=True)]
    assert panel.positions.accessibleDescription() == ", ".join(positions)
    assert shown["per position"] == " / ".join(positions)

    # milliseconds per round, and shares
    assert panel.round_ms.text() == f"{total / count:.1f}"
    for stage in STAGES:
        value, share = panel.stage_labels[NAMES[stage]]
        assert value.text() == f"{ms[stage] / count:.1f}", stage
        assert share.text() == f"{ms[stage] / total * 100:.0f} %", stage
        assert spent[NAMES[stage]] == f"{value.text()} ({share.text()})", stage
        assert footer[stage] == float(table[stage]) == ms[stage], stage

    # why it was this fast
    told = why_text(panel.meter)
    prefill = recorded.prefill["seconds"]
    whole = prefill + total / 1e3
    assert f"prefill: {prefill:.2f} s, {prefill / whole * 100:.0f} %" in told
    assert f"verify forward: {ms['verify_ms'] / 1e3:.2f} s, {ms['verify_ms'] / 1e3 / whole * 100:.0f} %" in told
    parked = sum(round(r[stage] * 1e6) for r in rounds if r.get("parked") for stage in STAGES) / 1e6
    assert (f"of it parked: {parked / 1e3:.2f} s" in told) == (parked > 0)
    assert footer["parked_ms"] == float(table["parked_ms"]) == parked
    a_round = f"A round took {total / count:.1f} ms and gave {(tokens - 1) / count:.2f} tokens"
    assert a_round in told
    assert a_round in recorded.page


def test_the_record_says_that_it_agrees(recorded: Recorded) -> None:
    """The page checks the footer against the rows itself."""
    assert f"- {recorded.csv['gen']}: the footer follows from the rows; tokens cannot" in recorded.page
    assert "What is wrong" not in recorded.page
