"""What the pace knows: costs, acceptance, how long replies are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import Round
from engine.pace import Acceptance, Costs
from engine.pace.forecast import USUAL_REPLY, Forecast
from tests.support.device import WIDTHS, costs, demo, round_of


def test_one_stalled_round_does_not_decide() -> None:
    known = costs(0.1)
    before = known.rounds[3]
    known.observe(Round(0, 0, 3, 2, 1, 2, 0, 1.0, 5000.0, 0.0, 1.0, 0.0, (0, 0)), True, False)
    assert known.rounds[3] < 1.5 * before


def test_one_look_undoes_a_cost_that_was_many_times_too_high() -> None:
    """Bug: a load that measured compiling left a 3-row round at 83 classic steps; after sixty replies it was at 32."""
    known = costs(0.1)
    real = known.rounds[3]
    known.rounds[3] *= 40
    known.observe(round_of(3, 2, costs(0.1)), False, False)
    assert known.rounds[3] == pytest.approx(real)
    others = {w: ms for w, ms in known.rounds.items() if w != 3}
    assert others == {w: ms for w, ms in costs(0.1).rounds.items() if w != 3}


def test_a_cost_of_nothing_is_no_end() -> None:
    """Bug: a stall counted at most twice the known cost, so what once was 0 stayed 0 and every round seemed free."""
    known = Costs(dict.fromkeys((1, *WIDTHS), 0.0), 0.0, 0.0)
    for _ in range(3):
        known.observe(round_of(3, 1, demo()), True, False)
    assert known.rounds[3] == pytest.approx(demo().rounds[3])
    assert known.hook == pytest.approx(demo().hook)


def test_drafts_behind_the_first_rejection_are_not_counted_as_tried() -> None:
    acceptance = Acceptance()
    for _ in range(200):
        acceptance.observe(round_of(4, 1, costs(0.1)))  # first draft right, second wrong, third untested
    assert acceptance.at(1) > 0.85
    assert acceptance.at(2) < 0.25
    assert 3 not in acceptance.tried


def test_drafts_behind_the_end_of_a_reply_are_not_counted() -> None:
    """The head and the target may agree on what would follow an end of text. Nobody reads it."""
    acceptance = Acceptance()
    whole = round_of(5, 4, costs(0.1))
    acceptance.observe(replace(whole, cut=3, emitted=2, tokens=whole.tokens[:2]))
    assert acceptance.tried == acceptance.taken == {1: 1.0, 2: 1.0}


@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("stage", ["hook_ms", "verify_ms"])
def test_a_round_that_catches_up_teaches_what_that_costs_and_nothing_else(stage: str, queued: bool) -> None:
    """Bug: the head's reading of the prompt counted as accept hook, or as verify without stage times. Bug: the step
    that is thrown away counted as reading."""
    known, real = replace(demo(), read=0.4), demo()
    before = dict(known.rounds), known.draft, known.hook
    round_ = round_of(4, 3, real)
    for waiting in (20, 300, 50, 1, 120) * 20:
        late = real.entry_ms(waiting, queued)
        known.observe_entry(replace(round_, **{stage: getattr(round_, stage) + late}), waiting, queued, known.rounds[4])
    assert (known.rounds, known.draft, known.hook) == before
    assert known.read == pytest.approx(real.read, rel=0.02)
    assert known.start == pytest.approx(0.0, abs=2.0)


def test_a_stalled_start_is_soon_forgotten() -> None:
    known, real = demo(), demo()
    round_ = round_of(4, 3, real)
    known.observe_entry(replace(round_, verify_ms=30_000.0), 25, False, real.rounds[4])
    assert known.entry_ms(25, False) < 3 * real.rounds[4]
    for _ in range(12):
        known.observe_entry(
            replace(round_, hook_ms=round_.hook_ms + real.entry_ms(25, False)), 25, False, real.rounds[4]
        )
    assert known.entry_ms(25, False) == pytest.approx(real.entry_ms(25, False), rel=0.05)


def test_what_the_first_classic_step_takes_more_is_learned() -> None:
    known = demo()
    known.observe_fill(30_000.0)
    assert known.fill < known.rounds[1], "a stall"
    for _ in range(20):
        known.observe_fill(1.9 * known.rounds[1])
    assert known.fill == pytest.approx(0.9 * known.rounds[1], rel=0.01)
    for _ in range(20):
        known.observe_fill(0.8 * known.rounds[1])
    assert known.fill == 0.0


def test_costs_of_the_load_give_way_within_a_few_rounds() -> None:
    """Bug: a reply of five rounds ended before a cost was learned that had been 13 % too low at load."""
    known, real = demo(), demo()
    real.rounds = {w: 1.13 * ms for w, ms in real.rounds.items()}
    for _ in range(4):  # the fifth is the first, which catches up
        known.observe(round_of(5, 4, real), True, False)
    assert known.rounds[5] > demo().rounds[5] + 0.6 * (real.rounds[5] - demo().rounds[5])


def test_without_stage_times_only_the_sum_of_a_round_is_learned() -> None:
    """Bug: drafting then lay in verify too, so that a round cost more than it took, and other widths less."""
    known = demo()
    staged = round_of(5, 4, demo())
    lumped = replace(staged, draft_ms=0.1, hook_ms=0.1, verify_ms=staged.total_ms - 0.2)
    for _ in range(50):
        known.observe(lumped, False, False)
    assert known.rounds == pytest.approx(demo().rounds)
    assert (known.draft, known.hook) == (demo().draft, demo().hook)
    for _ in range(50):
        known.observe(replace(lumped, verify_ms=1.2 * staged.total_ms), False, False)
    assert known.rounds[5] == pytest.approx(1.2 * demo().rounds[5], rel=0.01)
    assert known.rounds[4] == demo().rounds[4]


@given(factors=st.lists(st.floats(0.3, 30.0), min_size=1, max_size=20))
def test_steps_taken_together_teach_what_they_teach_one_by_one(factors: list[float]) -> None:
    together, alone = demo(), demo()
    together.observe_steps([factor * together.rounds[1] for factor in factors])
    for factor in factors:
        step = round_of(1, 0, replace(demo(), rounds={1: factor * demo().rounds[1]}))
        alone.observe(step, False, True)
    assert together.rounds == pytest.approx(alone.rounds)


def test_a_reply_is_expected_to_be_as_long_as_others_were() -> None:
    forecast = Forecast()
    forecast.begin(1000)
    assert forecast.left == USUAL_REPLY
    for _ in range(8):
        forecast.add(20)
        forecast.begin(1000)
    assert 20 < forecast.left < 30
    forecast.add(500)
    assert forecast.left == 500, "half done"
    forecast.add(450)
    assert forecast.left == 50, "its budget is near"
    forecast.begin(10)
    assert forecast.left == 10
    forecast.add(12)
    assert forecast.left == 1


def test_what_slows_the_width_in_use_slows_the_others() -> None:
    """Bug: the machine grew twice as fast, rounds were learned anew and classic decode was not: for a hundred rounds
    a tenth was lost to what had seemed slow."""
    known = demo()
    for _ in range(40):
        slow = replace(demo(), rounds={w: 0.5 * ms for w, ms in demo().rounds.items()}, draft=4.0, hook=5.0)
        known.observe(round_of(3, 2, slow), True, True)
    assert known.rounds == pytest.approx({w: 0.5 * ms for w, ms in demo().rounds.items()}, rel=0.01)
    known.observe(round_of(4, 3, demo()), True, False)
    assert known.rounds[1] == pytest.approx(0.5 * demo().rounds[1], rel=0.01), "a look tells of its own width"
    known.look_at_classic(0.55 * demo().rounds[1])
    assert known.rounds[1] == pytest.approx(0.525 * demo().rounds[1], rel=0.01)
    known.look_at_classic(demo().rounds[1])
    assert known.rounds[1] == demo().rounds[1]
