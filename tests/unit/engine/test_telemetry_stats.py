"""Statistics say what the rounds say, in every order and grouping, to the last digit."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import PrefillProgress, Round
from engine.telemetry.stats import STAGES, StatsBuilder, identity_holds, merge, round_problems, stage_shares
from engine.telemetry.why import speed_reason, time_parts
from tests.support.rounds import PREFILL, build, prefills, rounds


@settings(max_examples=40)
@given(prefill=prefills, seen=st.lists(rounds, max_size=30))
def test_figures_against_their_definitions(prefill, seen):
    stats = build(prefill, seen)
    assert stats.tokens == 1 + sum(r.emitted for r in seen)
    assert stats.rounds == len(seen)
    assert stats.accepted == sum(r.accepted for r in seen)
    assert stats.drafted == sum(r.drafted for r in seen)
    assert stats.parked_rounds == sum(r.parked for r in seen)
    assert stats.parked_ms == pytest.approx(sum(r.total_ms for r in seen if r.parked), abs=1e-4)
    assert identity_holds(stats)
    deepest = max((r.drafted for r in seen), default=0)
    assert stats.drafted_at == tuple(sum(r.drafted > i for r in seen) for i in range(deepest))
    assert stats.accepted_at == tuple(sum(r.accepted > i for r in seen) for i in range(deepest))
    assert sum(stats.accepted_at) == stats.accepted
    assert sum(stats.drafted_at) == stats.drafted
    for stage in STAGES:
        assert getattr(stats, stage) == pytest.approx(sum(getattr(r, stage) for r in seen), abs=1e-4)
    assert stats.decode_seconds == pytest.approx(sum(r.total_ms for r in seen) / 1000, abs=1e-6)
    assert (stats.prompt_tokens, stats.restored_tokens) == (prefill.total, prefill.restored)


@settings(max_examples=40)
@given(prefill=prefills, seen=st.lists(rounds, max_size=20), seed=st.integers())
def test_order_does_not_matter(prefill, seen, seed):
    shuffled = random.Random(seed).sample(seen, len(seen))
    assert build(prefill, shuffled) == build(prefill, seen)


@settings(max_examples=40)
@given(replies=st.lists(st.tuples(prefills, st.lists(rounds, max_size=6)), min_size=1, max_size=5), data=st.data())
def test_merging_in_any_grouping_gives_the_same(replies, data):
    all_ = [build(*reply) for reply in replies]
    cut = data.draw(st.integers(0, len(all_)))
    grouped = merge([merge(all_[:cut]), merge(all_[cut:])])
    assert grouped == merge(all_)
    assert merge(all_[:1]) == all_[0]
    assert grouped.tokens == len(all_) + grouped.accepted + grouped.rounds - grouped.cut


def test_no_figure_divides_by_zero():
    empty = StatsBuilder().build()
    assert identity_holds(empty)
    assert (empty.acceptance_rate, empty.mean_acceptance_length, empty.tokens_per_second) == (0.0, 1.0, 0.0)
    assert set(stage_shares(empty).values()) == {(0.0, 0.0)}
    assert merge([]) == empty


def test_a_reply_stopped_while_reading_has_no_token():
    builder = StatsBuilder()
    builder.prefill(PrefillProgress(512, 2000, 0, 1.5), token=False)
    stats = builder.build()
    assert (stats.tokens, stats.prompt_tokens, stats.prefill_seconds) == (0, 2000, 1.5)
    assert identity_holds(stats)


def test_a_wrong_count_is_noticed():
    stats = build(PrefillProgress(5, 5, 0, 0.1), [Round(0, 5, 3, 2, 2, 3, 0, 1, 2, 0, 1, 0, ())])
    assert identity_holds(stats)
    assert not identity_holds(dataclasses.replace(stats, tokens=stats.tokens + 1))
    assert not identity_holds(dataclasses.replace(stats, cut=1))


def test_building_twice_changes_nothing():
    builder = StatsBuilder()
    builder.observe(Round(0, 5, 3, 2, 1, 2, 0, 1.25, 2.5, 0, 1, 0, ()))
    assert builder.build() == builder.build()


def test_shares_are_per_round_and_sum_to_one():
    seen = [Round(i, i, 3, 2, 0, 1, 0, 2.0, 6.0, 0.5, 1.0, 0.5, ()) for i in range(4)]
    shares = stage_shares(build(PrefillProgress(1, 1, 0, 0), seen))
    assert shares["verify_ms"] == (6.0, 0.6)
    assert sum(share for _, share in shares.values()) == pytest.approx(1)


@given(seen=rounds)
def test_sound_rounds_have_no_problems(seen):
    assert round_problems(seen) == []


@pytest.mark.parametrize(
    "change",
    [
        {"width": 0},
        {"drafted": 3},
        {"accepted": 3, "emitted": 4},
        {"emitted": 3},
        {"cut": 2, "emitted": 0},
        {"cut": -1, "emitted": 3},
        {"tokens": (1,)},
        {"host_ms": -0.1},
    ],
)
def test_impossible_rounds_are_named(change):
    sound = Round(0, 5, 3, 2, 1, 2, 0, 1, 2, 0, 1, 0, (7, 8))
    assert round_problems(sound) == []
    assert round_problems(dataclasses.replace(sound, **change))


# ---------------------------------------------------------------------------------------------------- why this speed


@settings(max_examples=40)
@given(prefill=prefills, seen=st.lists(rounds, max_size=20))
def test_the_parts_of_a_replys_time_are_the_whole_of_it(prefill, seen):
    """Prefill and stages sum to all; what was parked is a part of them and not counted twice."""
    stats = build(prefill, seen)
    parts = time_parts(stats)
    whole = prefill.seconds + sum(r.total_ms for r in seen) / 1e3
    assert sum(p.seconds for p in parts if not p.of_which) == pytest.approx(whole, abs=1e-6)
    told = stats.prefill_seconds + stats.decode_seconds  # whole nanoseconds
    assert sum(p.share for p in parts if not p.of_which) == pytest.approx(1.0 if told else 0.0)
    parked = [p for p in parts if p.of_which]
    assert bool(parked) == any(r.parked for r in seen)
    for part in parked:
        assert part.seconds == pytest.approx(sum(r.total_ms for r in seen if r.parked) / 1e3, abs=1e-6)
        assert part.seconds <= stats.decode_seconds + 1e-9


def test_the_reason_of_a_speed_is_the_round_against_classic_steps():
    """Two tokens in 1.25 classic steps are 1.60x; without a classic speed no ratio is claimed."""
    seen = [Round(i, i, 3, 2, 1, 2, 0, 5.0, 40.0, 1.0, 3.0, 1.0, ()) for i in range(4)]
    stats = build(PrefillProgress(30, 30, 10, 0.5), seen)
    said = speed_reason(stats, 40.0)
    assert "50.0 ms and gave 2.00 tokens" in said
    assert "1.25 classic steps of about 40.0 ms: about 1.60x" in said
    assert "x classic" not in speed_reason(stats)
    assert time_parts(stats)[0].detail == "20 of 30 prompt tokens read, 10 restored"
    step = Round(0, 0, 1, 0, 0, 1, 0, 0.0, 9.0, 0.0, 0.0, 1.0, (), parked=True)
    assert speed_reason(build(PREFILL, [step] * 3)) == "Every token took one classic step of 10.0 ms, parked."
    free = dataclasses.replace(step, parked=False)
    assert speed_reason(build(PREFILL, [free] * 3)).endswith("10.0 ms. Nothing was drafted.")
    assert "parked" in speed_reason(build(PREFILL, [*seen, step]))
    assert "no decode speed" in speed_reason(build(PREFILL, []), 40.0)


@given(many=st.lists(st.lists(rounds, min_size=1, max_size=8), min_size=1, max_size=4))
def test_speed_of_several_replies_counts_the_first_token_of_none(many):
    """A reply that went on was once told as faster than it was: its parts begin with a token of the prompt each."""
    each = [build(PREFILL, seen) for seen in many]
    together = merge(each)
    assert together.decoded == sum(stats.tokens - 1 for stats in each) == together.tokens - len(many)
    if together.decode_seconds:
        assert together.tokens_per_second == together.decoded / together.decode_seconds
    (one,) = (merge([stats]) for stats in each[:1])
    assert one.tokens_per_second == each[0].tokens_per_second
