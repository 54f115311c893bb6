"""An experiment: which arms, compared how. And what came out of it, in figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.bench.arms import Arm
from engine.bench.equality import Difference, first_difference
from engine.bench.prompts import Prompt
from engine.bench.statistics import Ratio, Spread, Verdict, judge, noise_band, speed_ratio, spread
from engine.bench.trials import Trials


@dataclass(frozen=True, slots=True)
class Comparison:
    """bound: the speed of `arm` relative to `against` that is promised; None: reported, not judged."""

    arm: str
    against: str
    bound: float | None = None


@dataclass(frozen=True)
class Experiment:
    """Arms that do the same work on the same prompts.

    arms: among them `control`, two names of one arm (A/A).
    work: what every arm's clock covers, in words; tokens: how many that are.
    equal_to: the arm whose token ids all others are compared with.
    must_equal: arms whose ids must agree with it; of others (mlx-lm) it is reported.
    stages: arms with detailed timing, run a few times after the blocks, for the table of stages.
    """

    title: str
    work: str
    tokens: int
    arms: Sequence[Arm]
    prompts: Sequence[Prompt]
    control: tuple[str, str]
    comparisons: Sequence[Comparison]
    equal_to: str
    must_equal: frozenset[str]
    stages: Sequence[Arm] = ()


@dataclass(frozen=True)
class Judged:
    """One comparison's outcome. verdict: None where nothing is promised."""

    comparison: Comparison
    ratio: Ratio
    verdict: Verdict | None


@dataclass(frozen=True)
class Equality:
    """One arm's ids against the reference arm's, block by block. required: a difference is an error."""

    arm: str
    runs: int
    tokens: int
    differing_runs: int
    first: Difference | None
    required: bool


@dataclass(frozen=True)
class Outcome:
    """control: the A/A ratio; band: what noise can fake. problems: arms whose counters do not prove them.

    told: by arm, what it had to say when its last run was done.
    """

    experiment: Experiment
    trials: Trials
    stages: Trials
    spreads: dict[str, Spread]
    control: Ratio
    band: float
    judged: tuple[Judged, ...]
    equality: tuple[Equality, ...]
    problems: tuple[str, ...]
    told: dict[str, tuple[str, ...]]

    def rate(self, arm: str) -> float:
        """Tokens per second of an arm's median run: the experiment's `tokens`, which every run works through."""
        return self.experiment.tokens / self.spreads[arm].median

    @property
    def failed(self) -> bool:
        """Whether something that was promised did not hold."""
        unequal = any(e.required and e.differing_runs for e in self.equality)
        return unequal or bool(self.problems) or any(j.verdict is Verdict.FALLS_SHORT for j in self.judged)


def evaluate(experiment: Experiment, trials: Trials, stages: Trials, seed: int) -> Outcome:
    """Figures of finished trials. Raises ValueError when no block is whole."""
    first, second = experiment.control
    control = speed_ratio(trials.seconds(second), trials.seconds(first), seed=seed)
    band = noise_band(control)
    judged = []
    for comparison in experiment.comparisons:
        ratio = speed_ratio(trials.seconds(comparison.arm), trials.seconds(comparison.against), seed=seed)
        verdict = None if comparison.bound is None else judge(ratio, comparison.bound, band)
        judged.append(Judged(comparison, ratio, verdict))
    return Outcome(
        experiment=experiment,
        trials=trials,
        stages=stages,
        spreads={arm.name: spread(trials.seconds(arm.name)) for arm in experiment.arms},
        control=control,
        band=band,
        judged=tuple(judged),
        equality=tuple(
            _equality(experiment, trials, arm.name) for arm in experiment.arms if arm.name != experiment.equal_to
        ),
        problems=tuple(unproven(experiment.arms, trials)),
        told={arm.name: lines for arm in experiment.arms if (lines := tuple(arm.told()))},
    )


def unproven(arms: Sequence[Arm], trials: Trials) -> list[str]:
    """Where a counter that an arm must move stood still, or one that only others may move moved."""
    telling = frozenset().union(*(arm.moves for arm in arms))
    found = []
    for arm in arms:
        if arm.free:
            continue
        for trial in trials.samples(arm.name):
            moved = {name for name, count in trial.sample.counts.items() if count}
            still, foreign = sorted(arm.moves - moved), sorted((moved & telling) - arm.moves)
            if still:
                found.append(f"{arm.name}, block {trial.block}: no {', no '.join(still)}")
            if foreign:
                found.append(f"{arm.name}, block {trial.block}: has {', '.join(foreign)}")
    return found


def _equality(experiment: Experiment, trials: Trials, arm: str) -> Equality:
    pairs = list(zip(trials.samples(experiment.equal_to), trials.samples(arm), strict=True))
    differences = [first_difference(a.sample.tokens, b.sample.tokens) for a, b in pairs]
    real = [d for d in differences if d is not None]
    return Equality(
        arm=arm,
        runs=len(pairs),
        tokens=sum(len(a.sample.tokens) for a, _ in pairs),
        differing_runs=len(real),
        first=real[0] if real else None,
        required=arm in experiment.must_equal,
    )
