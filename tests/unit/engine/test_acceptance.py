"""The acceptance alarm: a head far below what its pair reaches is told of, once, and never becomes the norm."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Engine, EventLog, Message, Notice, Request, Round, Sampler
from engine.acceptance import DRAFTS, ENOUGH, MEMORY, SHARE, USUAL, AcceptanceAlarm, History
from engine.checkpoint.folder import open_folder
from engine.checkpoint.head import read_head
from engine.loading import Pair
from engine.quantize import quantize_weights, quantized_nbytes
from tests.support.chat import write
from tests.support.rounds import some_round


def rounds(rate: float, judged: int, width: int = 3, seed: int = 0) -> list[Round]:
    """Rounds whose drafts are accepted with this chance each, until so many were judged."""
    luck, made = random.Random(seed), []
    while judged > 0:
        accepted = 0
        while accepted < width - 1 and luck.random() < rate:
            accepted += 1
        made.append(
            replace(some_round(len(made)), width=width, drafted=width - 1, accepted=accepted, emitted=accepted + 1)
        )
        judged -= min(accepted + 1, width - 1)
    return made


def told(alarm: AcceptanceAlarm, seen: list[Round]) -> list[Notice]:
    return [notice for round_ in seen if (notice := alarm.observe(round_))]


def fresh(judged: float = 0, accepted: float = 0) -> AcceptanceAlarm:
    return AcceptanceAlarm(History(None, judged, accepted))


@pytest.mark.parametrize("width", [2, 3, 5, 8])
def test_a_head_under_half_of_the_usual_is_told_of_once_with_causes(width: int) -> None:
    alarm = fresh()
    (notice,) = told(alarm, rounds(0.1, 1000, width))
    assert notice.kind == "drafter"
    for part in ("drafts were accepted", f"{USUAL:.0%} are expected", "text is not affected", "norms", "temperature"):
        assert part in notice.text
    assert alarm.raised


@pytest.mark.parametrize("width", [2, 3, 5, 8])
def test_a_head_above_half_is_left_alone_at_every_width(width: int) -> None:
    """accepted / drafted would fall below half at 8 rows with a head that is right four times in five."""
    assert told(fresh(), rounds(0.8, 3000, width)) == []


def test_it_takes_200_judged_drafts() -> None:
    """199 wrong drafts are silence, 200 are not. Classic rounds do not count."""
    alarm = fresh()
    wrong = replace(some_round(0), width=2, drafted=1, accepted=0, emitted=1)
    classic = replace(some_round(0), width=1, drafted=0, accepted=0, emitted=1)
    assert told(alarm, [wrong, classic] * (DRAFTS - 1)) == []
    assert len(told(alarm, [wrong])) == 1


def test_a_bad_stretch_ends_with_a_word_and_may_come_again() -> None:
    alarm = fresh()
    kinds = [
        n.text.split()[0] for n in told(alarm, rounds(0.9, 400) + rounds(0, 400) + rounds(0.9, 400) + rounds(0, 400))
    ]
    assert kinds == ["Only", "Acceptance", "Only"]


def test_a_pairs_own_history_is_what_is_expected() -> None:
    """A pair that reaches 0.9 is told of at 0.4, which would be fine for most; one that reaches 0.3 is not at 0.25."""
    assert len(told(fresh(5000, 4500), rounds(0.4, 1000))) == 1
    assert told(fresh(5000, 1500), rounds(0.25, 1000)) == []
    assert fresh(ENOUGH - 1, 0).history.expected == USUAL


def test_a_stretch_under_alarm_does_not_become_the_norm() -> None:
    """A wrong head must be told of after every start, not only until it has made its own history."""
    history = History(None)
    for _ in range(20):
        assert len(told(AcceptanceAlarm(history), rounds(0.05, 2000))) == 1
    assert history.expected == USUAL
    assert history.judged < ENOUGH


@given(st.lists(st.tuples(st.integers(-300, 5000), st.integers(-300, 5000)), max_size=30))
@settings(deadline=None)
def test_counts_stay_counts(changes: list[tuple[int, int]]) -> None:
    history = History(None)
    for judged, accepted in changes:
        history.add(judged, accepted)
        assert 0 <= history.accepted <= history.judged <= MEMORY * (1 + 1e-9)


def test_history_survives_restarts_and_belongs_to_the_pair(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PACENOTE_CACHE_DIR", str(tmp_path))
    history = History.of(pair.info)
    assert (history.judged, history.expected) == (0, USUAL)
    history.add(4000, 3000)
    assert history.keep()
    assert History.of(pair.info).expected == 0.75
    (kept,) = (tmp_path / "acceptance").iterdir()
    assert pair.info.weights_hash in kept.name
    for damage in (
        "{",
        "[]",
        '{"judged": 1, "accepted": 2}',
        '{"judged": "x"}',
        json.dumps({"judged": 1e99, "accepted": 1}),
    ):
        kept.write_text(damage)
        assert History.of(pair.info).judged == 0


def test_a_folder_that_cannot_be_written_costs_the_history_alone(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACENOTE_CACHE_DIR", "/proc/nowhere")
    assert not History.of(pair.info).keep()
    _, events = write(Engine(pair), Request((Message("user", "the fox"),), max_tokens=10, speculation="always"))
    assert events


def test_a_wrong_head_is_told_of_in_the_reply_and_in_its_log(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """End to end: drafts made wrong, the notice among the events, after 200 of them, once, and a line in the log."""
    monkeypatch.setenv("PACENOTE_CACHE_DIR", str(tmp_path))
    right = pair.drafter.choose
    monkeypatch.setattr(pair.drafter, "choose", lambda *args: (right(*args) + 1) % pair.target.vocab_size)
    engine = Engine(pair)
    request = Request(
        (Message("user", "the quick fox"),),
        Sampler(temperature=0.9),
        max_tokens=300,
        speculation="always",
        ignore_eos=True,
    )
    log = EventLog(tmp_path / "log.jsonl")
    log.begin(pair.info, request, detailed=False)
    _, events = write(engine, request)
    for event in events:
        log.write(event)
    assert log.take_notice() is None
    (notice,) = [e for e in events if isinstance(e, Notice) and e.kind == "drafter"]
    before = events[: events.index(notice)]
    judged = sum(min(e.accepted + 1, e.drafted) for e in before if isinstance(e, Round))
    assert DRAFTS <= judged <= DRAFTS + 2
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [r["text"] for r in rows if r["kind"] == "notice" and r["about"] == "drafter"] == [notice.text]
    assert SHARE * USUAL > 0.25, "or this head is not under it"


def test_the_bytes_of_both_forms_are_known_whichever_is_in_force(pair: Pair, tiny_folders: tuple[Path, Path]) -> None:
    head = read_head(open_folder(tiny_folders[1]), pair.target.text_config)
    made = quantize_weights(head.weights, head.plan)
    real = sum(w.nbytes for w in made.weights.values())
    assert quantized_nbytes(head.weights, head.plan) == real == quantized_nbytes(made.weights, head.plan)
    assert pair.drafter.info.packed_bytes == real
    assert pair.drafter.info.dense_bytes == head.nbytes
