"""Same words: whatever is drafted and however wide the blocks, tokens and caches equal classic decode."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import mlx.core as mx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.decode import classic, loops, replay, speculative
from engine.decode.speculative import count_accepted
from engine.events import EndReason, Round
from engine.loading import Pair
from engine.request import Sampler
from engine.target import Rows, TargetState
from tests.support.rig import NEVER, Rig, state_bytes

SAMPLERS = st.sampled_from(
    [
        Sampler(),
        Sampler(temperature=0.7),
        Sampler(temperature=1.0, top_k=30, top_p=0.9, min_p=0.02),
        Sampler(temperature=0.8, repetition_penalty=1.3, presence_penalty=0.5),
        Sampler(repetition_penalty=1.2, logit_bias=((3, 2.0), (9, -5.0))),
    ]
)
PROMPTS = st.lists(st.integers(0, 399), min_size=1, max_size=40)


@given(prompt=PROMPTS, sampler=SAMPLERS, seed=st.integers(0, 2**32 - 1), length=st.integers(2, 30), luck=st.randoms())
@settings(max_examples=18, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_widths_give_the_tokens_and_caches_of_classic_decode(
    pair: Pair, prompt: list[int], sampler: Sampler, seed: int, length: int, luck: random.Random
) -> None:
    """The core property. Widths change at random every round; the reply may be cut anywhere in a block."""
    rig = Rig(pair.target, pair.drafter, sampler, seed, length)
    reference = rig.classic(prompt)
    reply = rig.speculative(prompt, lambda: luck.randint(2, 6))
    assert reply.tokens == reference.tokens
    assert reply.line.state.length == reference.line.state.length == len(prompt) + length - 1
    assert state_bytes(reply.line.state) == state_bytes(reference.line.state)
    for line in (reply.line, reference.line):
        assert line.head.end == line.state.length, "the head was told of every token once"
    emitted = sum(r.emitted for r in reply.rounds)
    assert emitted == reply.accepted + len(reply.rounds) - sum(r.cut for r in reply.rounds) == length - 1


def test_the_loops_hand_over_both_ways_where_the_width_crosses_one(pair: Pair) -> None:
    """A parked reply takes up speculation again, and a speculative one parks, in the very round that was asked for."""
    rig, asked, rounds = Rig(pair.target, pair.drafter, length=60), (1, 1, 3, 2, 1, 4, 1, 1, 1, 2), list[Round]()
    reference = rig.classic([1, 2, 3])
    line, tokens = rig.start([1, 2, 3])
    for loop in loops(rig.target, rig.drafter, line, NEVER, lambda: asked[len(rounds) % len(asked)], detailed=True):
        for round_ in loop:
            rounds.append(round_)  # not extend: the next width is that of the next round
    assert [r.width for r in rounds] == [asked[n % len(asked)] for n in range(len(rounds))]
    assert len(rounds) > len(asked)
    assert tokens == reference.tokens
    assert state_bytes(line.state) == state_bytes(reference.line.state)


def test_starting_the_device_early_changes_no_byte(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: the device runs the first layers of a block while Python builds the rest of it."""
    reference = Rig(pair.target, pair.drafter, length=40).classic([1, 2, 3])
    monkeypatch.setattr(pair.target, "backend", replace(pair.target.backend, start_every=1))
    assert any(slot.starts for slot in pair.target.new_state().recurrent)
    reply = Rig(pair.target, pair.drafter, length=40).speculative([1, 2, 3], 4)
    assert reply.tokens == reference.tokens
    assert state_bytes(reply.line.state) == state_bytes(reference.line.state)


def test_the_tiny_pair_exercises_every_walk(pair: Pair) -> None:
    """Guards the tests themselves: with no acceptance, or with full acceptance, rollback would hardly run."""
    reply = Rig(pair.target, pair.drafter, Sampler(temperature=0.8), length=150).speculative([1, 2, 3], 4)
    assert {r.accepted for r in reply.rounds} == {0, 1, 2, 3}


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("at", range(2, 9))
def test_a_reply_that_ends_inside_a_block_leaves_everything_but_its_last_token(pair: Pair, width: int, at: int) -> None:
    """transformers #47912 (EOS accepted mid-block is overrun), qvac #2938 (an unsent tail stays in the KV)."""

    def ends(tokens: list[int]) -> EndReason | None:
        return EndReason.EOS if len(tokens) == at else None

    rig = Rig(pair.target, pair.drafter, length=60, ends=ends)
    reply, reference = rig.speculative([5, 6, 7], width), rig.classic([5, 6, 7])
    assert reply.tokens == reference.tokens
    assert len(reply.tokens) == at
    assert reply.line.ended is EndReason.EOS
    assert reply.line.state.length == 3 + at - 1
    assert state_bytes(reply.line.state) == state_bytes(reference.line.state)


@pytest.mark.parametrize("mode", ["classic", "speculative"])
def test_stop_between_rounds_leaves_a_canonical_end(pair: Pair, mode: str) -> None:
    """omlx #2235 (cancel wedges the engine): Stop answers within one round and the caches stay whole."""
    rig = Rig(pair.target, pair.drafter, length=500)
    stop = threading.Event()

    def ends(tokens: list[int]) -> EndReason | None:
        if len(tokens) >= 9:
            stop.set()
        return None

    rig.ends = ends
    reply = rig.classic([4, 4, 4], stop) if mode == "classic" else rig.speculative([4, 4, 4], 4, stop)
    assert 9 <= len(reply.tokens) <= 12
    assert reply.line.ended is None
    assert reply.line.state.length == 3 + len(reply.tokens) - 1
    assert reply.line.last == reply.tokens[-1]


def test_closing_the_classic_loop_takes_its_queued_step_back(pair: Pair) -> None:
    rig = Rig(pair.target, pair.drafter, length=500)
    line, tokens = rig.start([8, 9])
    rounds = classic(pair.target, line, threading.Event(), lambda: False)
    for _ in range(3):
        next(rounds)
    rounds.close()
    assert line.state.length == 2 + len(tokens) - 1


def test_switching_between_the_loops_keeps_tokens_and_head_history(pair: Pair) -> None:
    """Parking and unparking in mid-reply: the head is told of the parked stretch and does not start blind."""
    rig = Rig(pair.target, pair.drafter, Sampler(temperature=0.7), length=60)
    reference = rig.classic([1, 2, 3])
    line, tokens = rig.start([1, 2, 3])
    luck = random.Random(3)
    stop = threading.Event()
    while line.ended is None:
        budget = [luck.randint(1, 5)]

        def spent(budget: list[int] = budget) -> bool:
            budget[0] -= 1
            return budget[0] <= 0

        list(classic(pair.target, line, stop, spent))
        assert line.head.end == line.state.length
        if line.ended is None:
            turns = iter([3, 2, 4, 1])
            list(speculative(pair.target, pair.drafter, line, stop, lambda turns=turns: next(turns), True))
            assert line.head.end == line.state.length
    assert tokens == reference.tokens


def test_a_dense_and_a_quantized_drafter_give_the_same_text(pair: Pair, tiny_folders) -> None:
    from tests.support.rig import load_tiny

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACENOTE_COMPUTE", "float32")
        dense = load_tiny(*tiny_folders, quantize_drafter=False)
    assert dense.drafter.info.representation.startswith("dense")
    assert "4-bit" in pair.drafter.info.representation
    for drafter, target in ((pair.drafter, pair.target), (dense.drafter, dense.target)):
        rig = Rig(target, drafter, Sampler(temperature=0.6), length=50)
        assert (
            rig.speculative([10, 20, 30], 3).tokens
            == Rig(pair.target, pair.drafter, Sampler(temperature=0.6), length=50).classic([10, 20, 30]).tokens
        )


def test_a_drafter_that_is_always_wrong_changes_nothing(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(pair.target, pair.drafter, length=30)
    reference = rig.classic([1, 2])
    right = pair.drafter.choose

    def wrong(*args):
        return (right(*args) + 1) % pair.target.vocab_size

    monkeypatch.setattr(pair.drafter, "choose", wrong)
    reply = rig.speculative([1, 2], 4)
    assert reply.tokens == reference.tokens


@given(st.lists(st.integers(0, 3), max_size=7), st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_accepted_is_the_longest_agreeing_prefix(drafts: list[int], targets: list[int]) -> None:
    accepted = count_accepted(drafts, targets[: len(drafts) + 1])
    assert drafts[:accepted] == targets[:accepted]
    assert accepted == len(drafts) or drafts[accepted] != targets[accepted]


@pytest.mark.parametrize("length", [3, 4, 5, 11])
def test_feeding_a_reply_again_uses_blocks_of_one_width_only(
    pair: Pair, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Widths may be exact with gaps (2 and 4, not 3), so the rest of a reply must not become a narrower block."""
    target = pair.target
    right, seen = target.verify, []

    def watching(tokens: mx.array, state: TargetState) -> Rows:
        seen.append(tokens.shape[0])
        return right(tokens, state)

    monkeypatch.setattr(target, "verify", watching)
    states = [target.new_state() for _ in range(2)]
    for state, width in zip(states, (1, 4), strict=True):
        mx.eval(target.hidden(mx.array([9]), state))  # a reply has a prompt
        done = list(replay(target, range(length), state, None, width, None, threading.Event()))
        assert done[-1] == state.length - 1 == length
    assert seen == [4] * (length // 4)
    assert state_bytes(states[0]) == state_bytes(states[1])


def test_speculation_needs_history(pair: Pair) -> None:
    line, _ = Rig(pair.target, pair.drafter).start([1])
    line.head = None
    with pytest.raises(ValueError, match="history"):
        next(speculative(pair.target, pair.drafter, line, threading.Event(), lambda: 3, True))
    mx.synchronize()
