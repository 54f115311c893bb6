"""Order, warm-up, Stop, and what an outcome says, with arms that are only numbers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from engine.bench.arms import Arm, again
from engine.bench.design import blocks
from engine.bench.experiment import Comparison, Experiment, evaluate
from engine.bench.prompts import Prompt
from engine.bench.sample import Sample
from engine.bench.statistics import Verdict
from engine.bench.trials import Trials, run_trials
from engine.decode.prefill import Interrupted

PROMPTS = [Prompt("a", "A", (1,)), Prompt("b", "B", (2, 2))]


def fake(name: str, seconds: float, *, tokens: Sequence[int] = (5, 6), counts: Mapping[str, int] | None = None) -> Arm:
    """An arm that takes no time and says it took some."""
    moved = {name: 1} if counts is None else counts

    def run(prompt: Prompt, stop: threading.Event) -> Sample:
        if stop.is_set():
            raise Interrupted
        return Sample(seconds * len(prompt.tokens), tuple(tokens), moved)

    return Arm(name, run, frozenset({name}))


def experiment(*arms: Arm, bound: float | None = 1.0) -> Experiment:
    reference = arms[0]
    return Experiment(
        title="Fakes",
        work="nothing",
        tokens=10,
        arms=[reference, again(reference), *arms[1:]],
        prompts=PROMPTS,
        control=(reference.name, again(reference).name),
        comparisons=[Comparison(arm.name, reference.name, bound) for arm in arms[1:]],
        equal_to=reference.name,
        must_equal=frozenset(arm.name for arm in arms[1:]),
    )


def run(of: Experiment, count: int = 6) -> Trials:
    return run_trials(of.arms, of.prompts, count, 0, threading.Event())


def test_every_block_runs_every_arm_once_in_a_drawn_order() -> None:
    """Complete blocks, orders that differ, and the same seed gives the same order."""
    drawn = list(blocks("abcd", 40, seed=1))
    assert all(sorted(block) == list("abcd") for block in drawn)
    assert len({tuple(block) for block in drawn}) > 10
    assert drawn == list(blocks("abcd", 40, seed=1)) != list(blocks("abcd", 40, seed=2))
    first = Counter(block[0] for block in drawn)
    assert len(first) == 4, "no arm always comes first"


def test_warm_up_is_counted_and_not_kept() -> None:
    of = experiment(fake("x", 1.0), fake("y", 2.0))
    trials = run(of, count=4)
    assert trials.warm_up == 3
    assert len(trials.kept) == 4 * 3
    assert [t.prompt for t in trials.samples("x")] == ["a", "b", "a", "b"], "prompts take turns"


def test_stop_keeps_whole_blocks_only() -> None:
    """An arm whose block-mates never ran has nothing to be compared with."""
    stop = threading.Event()
    runs = 0

    def stopping(prompt: Prompt, event: threading.Event) -> Sample:
        nonlocal runs
        runs += 1
        if runs == 3 + 2 * 3 + 2:  # the warm-up, two blocks, and two thirds of another
            stop.set()
        return Sample(1.0, (), {})

    trials = run_trials([Arm(name, stopping, frozenset()) for name in "stu"], PROMPTS, 10, 0, stop)
    assert Counter(t.arm for t in trials.kept) == {"s": 2, "t": 2, "u": 2}
    assert trials.cut == 2


def test_outcome_compares_pairs_and_judges() -> None:
    """Half as fast falls short of 1.0; the A/A control of exact clocks has no band."""
    outcome = evaluate(of := experiment(fake("x", 1.0), fake("y", 2.0)), run(of), Trials((), 0), seed=0)
    assert outcome.band == 0.0
    (judged,) = outcome.judged
    assert judged.ratio.median == 0.5
    assert judged.verdict is Verdict.FALLS_SHORT
    assert outcome.failed
    assert outcome.rate("x") == pytest.approx(10 / 1.5), "median of 1 s and 2 s"


def test_a_wrong_token_fails_the_outcome_whatever_the_speed() -> None:
    """A speed-up counts only with token-for-token equality in the same run (rMLX #436)."""
    of = experiment(fake("x", 1.0), fake("fast", 0.1, tokens=(5, 7)))
    outcome = evaluate(of, run(of), Trials((), 0), seed=0)
    wrong = next(e for e in outcome.equality if e.arm == "fast")
    assert (wrong.runs, wrong.differing_runs) == (6, 6)
    assert str(wrong.first) == "token 2 is 7 where the reference has 6"
    assert outcome.failed


def test_an_arm_that_does_not_do_what_it_says_is_found() -> None:
    """Counters prove arms: one that runs another arm's work, or none, is named."""
    of = experiment(fake("x", 1.0), fake("idle", 1.0, counts={}), fake("thief", 1.0, counts={"thief": 1, "x": 3}))
    problems = evaluate(of, run(of, count=1), Trials((), 0), seed=0).problems
    assert problems == ("idle, block 0: no idle", "thief, block 0: has x")
