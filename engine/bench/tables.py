"""Outcomes as Markdown tables, for the record and the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.bench.check import ArmResult
from engine.bench.experiment import Equality, Judged, Outcome
from engine.bench.statistics import LEAST_PAIRS, QUIET_BAND, Ratio, Verdict
from engine.bench.trials import Trials
from engine.events import ReplyStats
from engine.tables import table
from engine.telemetry.stats import STAGES, merge


def times(outcome: Outcome) -> list[str]:
    rows = []
    for arm in outcome.experiment.arms:
        s = outcome.spreads[arm.name]
        stats = _merged(outcome, arm.name)
        rows.append(
            (
                arm.name,
                f"{s.median:.4f}",
                f"{s.minimum:.4f} - {s.maximum:.4f}",
                str(s.n),
                f"{outcome.rate(arm.name):.1f}",
                f"{stats.acceptance_rate:.3f}" if stats and stats.drafted else "",
                f"{stats.mean_acceptance_length:.2f}" if stats and stats.drafted else "",
                " / ".join(f"{rate:.2f}" for rate in stats.per_position) if stats else "",
            )
        )
    header = ("arm", "median s", "min - max s", "n", "tok/s", "acceptance", "mean acceptance length", "per position")
    return table(header, rows)


def ratios(outcome: Outcome) -> list[str]:
    """Medians of pairs, and beside them whole times: a median does not see what few runs pay for."""
    first, second = outcome.experiment.control

    def whole(arm: str, against: str) -> str:
        return f"{sum(outcome.trials.seconds(against)) / sum(outcome.trials.seconds(arm)):.3f}"

    band = f"band {outcome.band:.4f}"
    rows = [(f"{second} / {first} (A/A)", *_ratio(outcome.control), whole(second, first), band)]
    for judged in outcome.judged:
        arm, against = judged.comparison.arm, judged.comparison.against
        rows.append((f"{arm} / {against}", *_ratio(judged.ratio), whole(arm, against), verdict(judged, outcome.band)))
    return table(("speed of ... relative to ...", "median", "95 % interval", "pairs", "whole time", "verdict"), rows)


def verdict(judged: Judged, band: float) -> str:
    if judged.verdict is None:
        return ""
    bound, ratio = judged.comparison.bound, judged.ratio
    if judged.verdict is Verdict.HOLDS and band > QUIET_BAND:
        return f"{judged.verdict.value}: lower end {ratio.low:.4f} against {bound} + {band:.4f}"
    return f"{judged.verdict.value}: upper end {ratio.high:.4f} against {bound} - {band:.4f}"


def equality(outcome: Outcome) -> list[str]:
    rows = [(e.arm, str(e.runs), str(e.tokens), _equal(e)) for e in outcome.equality]
    return table((f"against {outcome.experiment.equal_to}", "runs", "token ids", "result"), rows)


@dataclass(frozen=True, slots=True)
class Staged:
    """One arm's runs for the table of stages, together.

    ms: per round and stage. The first round of a run also reads the prompt for the head, so that its hook is kept
    apart: first_hook_ms, of a run.
    """

    runs: int
    stats: ReplyStats
    ms: Mapping[str, float]
    first_hook_ms: float


def staged(trials: Trials, arm: str) -> Staged | None:
    """None when the arm has no such runs, or none with rounds."""
    samples = [t.sample for t in trials.samples(arm) if t.sample.stats is not None]
    stats = merge(sample.stats for sample in samples if sample.stats is not None)
    if not stats.rounds:
        return None
    first, later = sum(sample.first_hook_ms for sample in samples), stats.rounds - len(samples)
    ms = {stage: getattr(stats, stage) / stats.rounds for stage in STAGES}
    ms["hook_ms"] = (stats.hook_ms - first) / later if later > 0 else 0.0
    return Staged(len(samples), stats, ms, first / len(samples))


def classic_rate(outcome: Outcome) -> float:
    """Tokens per second of the reference arm in the runs for the table of stages; of all blocks where it has none."""
    reference = outcome.experiment.equal_to
    seconds = outcome.stages.seconds(reference)
    return outcome.experiment.tokens * len(seconds) / sum(seconds) if seconds else outcome.rate(reference)


def stages(outcome: Outcome) -> list[str]:
    """Milliseconds per round and shares, from the runs with detailed timing. Empty without such runs."""
    rate = classic_rate(outcome) if outcome.stages.kept else 0.0
    rows = []
    for name in (outcome.experiment.equal_to, *(arm.name for arm in outcome.experiment.stages)):
        found = staged(outcome.stages, name)
        if found is None:
            continue
        total = sum(found.ms.values())
        cells = [f"{found.ms[stage]:.2f} ({found.ms[stage] / total:.0%})" for stage in STAGES]
        free = f"{free_drafter(found.stats, rate):.2f}" if found.stats.drafted else ""
        first = f"{found.first_hook_ms:.2f}" if found.stats.drafted else ""
        rows.append((name, str(found.runs), str(found.stats.rounds), *cells, first, free))
    if not rows:
        return []
    names = [stage.removesuffix("_ms") for stage in STAGES]
    header = ("ms per round (share)", "runs", "rounds", *names, "first hook", "ratio to classic if drafting were free")
    return table(header, rows)


def proof(outcome: Outcome) -> list[str]:
    """What moved in each arm, per run. A counter that an arm must not move is empty there."""
    counters = sorted({name for trial in outcome.trials.kept for name in trial.sample.counts})
    rows = []
    for name in counters:
        cells = []
        for arm in outcome.experiment.arms:
            samples = outcome.trials.samples(arm.name)
            mean = sum(t.sample.counts.get(name, 0) for t in samples) / len(samples)
            cells.append(f"{mean:.1f}" if mean else "")
        rows.append((name, *cells))
    return table(("counted per run (mean)", *(arm.name for arm in outcome.experiment.arms)), rows)


def check_table(results: Sequence[ArmResult]) -> list[str]:
    """The equality run, arm by arm, then the first difference of every cell that differs."""
    rows = [
        (
            r.name,
            str(r.cells),
            str(r.tokens),
            str(r.differing),
            "" if r.acceptance is None else f"{r.acceptance:.3f}",
            f"{r.mean_acceptance_length:.2f}",
        )
        for r in results
    ]
    header = ("against classic", "cells", "token ids", "differing", "acceptance", "mean acceptance length")
    return [*table(header, rows), *(f"DIFFERS: {cell}: {d}" for r in results for cell, d in r.differences)]


def _ratio(ratio: Ratio) -> tuple[str, str, str]:
    interval = f"{ratio.low:.4f} - {ratio.high:.4f}" if ratio.n >= LEAST_PAIRS else "none, too few pairs"
    return f"{ratio.median:.4f}", interval, str(ratio.n)


def _equal(equality: Equality) -> str:
    if not equality.differing_runs:
        return "equal"
    word = "DIFFERENT" if equality.required else "different (not promised)"
    return f"{word} in {equality.differing_runs} runs; first: {equality.first}"


def _merged(outcome: Outcome, arm: str) -> ReplyStats | None:
    stats = [t.sample.stats for t in outcome.trials.samples(arm) if t.sample.stats is not None]
    return merge(stats) if stats else None


def free_drafter(stats: ReplyStats, classic: float) -> float:
    """Speed relative to classic decode if draft and accept hook took no time: a bound for any better drafter.

    Args:
        stats: of runs with detailed timing. classic: tokens per second of the reference arm.
    """
    ms = stats.verify_ms + stats.rollback_ms + stats.host_ms
    return stats.decoded / ms * 1e3 / classic
