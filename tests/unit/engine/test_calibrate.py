"""Costs at load: what a planted clock says each forward takes comes out as the cost of that kind of round."""

from __future__ import annotations

import threading

import mlx.core as mx
import pytest

from engine import calibrate
from engine.arrays import token_array
from engine.decode import classic, speculative
from engine.loading import Pair
from tests.support.clock import Clock

STEP, ROW, DRAFT, READ, LOGITS = 10.0, 4.0, 2.0, 0.25, 3.0
"""Milliseconds: a classic step, each further row of a verify, a head forward of any length, each row it reads, and
the LM head behind it."""


@pytest.fixture
def planted(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    clock = Clock()
    for function in (calibrate.measure, classic, speculative):
        monkeypatch.setitem(function.__globals__, "perf_counter", clock)
    target, drafter = pair.target, pair.drafter
    assert drafter is not None
    monkeypatch.setattr(target, "step", clock.after(target.step, lambda *_: STEP))
    monkeypatch.setattr(target, "verify", clock.after(target.verify, lambda ids, _: STEP + ROW * (ids.shape[0] - 1)))
    forward = clock.after(drafter._forward, lambda ids, *_: DRAFT + READ * ids.shape[0])
    monkeypatch.setattr(drafter, "_forward", forward)
    monkeypatch.setattr(drafter, "choose", clock.after(drafter.choose, lambda *_: LOGITS))
    return pair


def test_each_kind_of_round_costs_what_the_clock_says(planted: Pair) -> None:
    assert planted.drafter is not None
    costs = calibrate.measure(planted.target, planted.drafter, (2, 3, 4, 5), calibrate.sample(planted.tokenizer)).costs
    assert costs.rounds[1] == pytest.approx(STEP)
    hook = DRAFT + LOGITS + READ * 1.5  # one or two rows of a random head, whose drafts are accepted now and then
    for width in (2, 3, 4, 5):
        expected = STEP + ROW * (width - 1) + (width - 2) * (DRAFT + READ + LOGITS) + hook
        assert costs.rounds[width] == pytest.approx(expected, abs=4 * READ)
    assert costs.draft == pytest.approx(DRAFT + READ + LOGITS)
    assert costs.read == pytest.approx(READ)
    assert costs.fill == pytest.approx(STEP), "the first step of classic decode starts two"


@pytest.mark.parametrize(("times", "prepares"), [(1, 300.0), (2, 300.0), (1, 9000.0)])
def test_what_a_device_prepares_at_every_new_number_of_rows_is_no_cost(
    planted: Pair, monkeypatch: pytest.MonkeyPatch, times: int, prepares: float
) -> None:
    """Bug: on an H200 that had compiled nothing yet the first turn took all of the time that measuring may take, and
    a 3-row round was believed to cost 83 classic steps. The pace stayed parked where blocks are 1.15 x as fast."""
    assert planted.drafter is not None
    clock = calibrate.measure.__globals__["perf_counter"]
    seen: dict[int, int] = {}

    def preparing(ids: mx.array, *_: object) -> float:
        rows = ids.shape[0]
        seen[rows] = seen.get(rows, 0) + 1
        return prepares if seen[rows] <= times else 0.0

    monkeypatch.setattr(planted.target, "verify", clock.after(planted.target.verify, preparing))
    costs = calibrate.measure(planted.target, planted.drafter, (2, 3, 4, 5), calibrate.sample(planted.tokenizer)).costs
    dearest = STEP + 4 * ROW + 3 * (DRAFT + READ + LOGITS) + DRAFT + LOGITS + 5 * READ
    assert costs.rounds[1] == pytest.approx(STEP)
    assert max(costs.rounds.values()) < dearest + 4 * READ


@pytest.mark.parametrize(
    ("turns", "enough"),
    [
        ([], False),
        ([0.6], False),
        ([0.6] * 3, True),  # two cores
        ([1.4], False),
        ([1.4, 0.1], False),
        ([5.0], False),  # an H200 that had compiled nothing yet
        ([5.0, 0.1], False),
        ([5.0, *[0.1] * 22], True),
        ([0.1] * 24, True),
        ([2.0], False),
        ([2.0, 2.0], True),
        ([6.0, 3.0], False),
        ([6.0, 3.0, 3.1], True),
        ([40.0, 0.1], False),
        ([12.0], False),
        ([12.0, 11.0], True),  # a large model on a slow device
    ],
)
def test_how_long_measuring_goes_on(turns: list[float], enough: bool) -> None:
    assert calibrate._enough([calibrate._Turn(seconds, 0.0, ()) for seconds in turns]) is enough


def test_nothing_is_left_behind(pair: Pair) -> None:
    """Measuring happens before the first reply: what the pair says then is what it would have said."""
    assert pair.drafter is not None
    prompt = mx.arange(6, dtype=mx.uint32)
    state = pair.target.new_state()
    before = pair.target.hidden(prompt, state)
    mx.eval(before)
    calibrate.measure(pair.target, pair.drafter, (2, 3), calibrate.sample(pair.tokenizer))
    again = pair.target.hidden(prompt, pair.target.new_state())
    assert bool(mx.array_equal(before, again))


def test_what_was_accepted_meanwhile_is_of_the_reply_only(pair: Pair) -> None:
    """A pair is no stranger after its load. Behind the end of a reply head and target may agree on anything."""
    assert pair.drafter is not None
    asked = calibrate.sample(pair.tokenizer)
    seen = calibrate.measure(pair.target, pair.drafter, (2, 3), asked._replace(ends=frozenset()))
    assert 0 <= seen.accepted <= seen.judged
    assert seen.judged >= 3, "one block at least of every size, and one to begin"
    everything = frozenset(range(pair.target.vocab_size))
    assert calibrate.measure(pair.target, pair.drafter, (2, 3), asked._replace(ends=everything)).judged == 0


def test_a_head_that_is_always_right_is_known_from_the_load_on(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drafter is told what greedy decode writes behind the prompt."""
    assert pair.drafter is not None
    asked = calibrate.sample(pair.tokenizer)._replace(ends=frozenset())
    line = calibrate._begin(pair.target, asked.prompt)
    written = [line.last]
    for round_ in classic(pair.target, line, threading.Event(), lambda: len(written) > 600):
        written.extend(round_.tokens)
    start = len(asked.prompt)
    monkeypatch.setattr(pair.drafter, "choose", lambda *args: token_array([written[args[2] - start]]))
    seen = calibrate.measure(pair.target, pair.drafter, (2, 3, 4), asked)
    assert seen.judged == seen.accepted > 30
    paced = seen.pace((2, 3, 4), judged=1000, accepted=0)
    assert paced.acceptance.mean < 0.5, "a history counts too"


def test_a_tokenizer_beyond_the_model_s_tokens_does_not_stop_a_load(pair: Pair) -> None:
    assert pair.drafter is not None
    beyond = calibrate.Sample((pair.target.vocab_size + 3, 5, 6), frozenset())
    assert calibrate.measure(pair.target, pair.drafter, (2,), beyond).costs.rounds.keys() == {1, 2}
