"""The published table of a quantized drafter: the same pair with a 16-bit, a load-time quantized and a converted head.

Rows as in the published one (reference mtp.md 5): draft_block, accept hook, verify forward, acceptance, tok/s.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engine.bench.arms import Task, again, block_arm, classic_arm
from engine.bench.experiment import Comparison, Experiment, Outcome
from engine.bench.prompts import Prompt
from engine.bench.rig import CONVERTED, DENSE, QUANTIZED, Rig, usable_widths
from engine.bench.tables import classic_rate, free_drafter, staged
from engine.bench.trials import Trials
from engine.checkpoint.convert import quantize_drafter
from engine.checkpoint.folder import open_folder
from engine.checkpoint.locate import head_checkpoint
from engine.drafter import Drafter
from engine.errors import KnownError
from engine.events import ReplyStats
from engine.loading import load_drafter
from engine.request import LoadOptions
from engine.tables import table
from engine.target import Target
from engine.telemetry.stats import merge

HEADS = (DENSE, QUANTIZED, CONVERTED)
LENGTHS = (120, 300)
BLOCK = 3
_STAGES = {
    "draft_block, ms per round": "draft_ms",
    "accept hook, ms per round": "hook_ms",
    "verify forward, ms per round": "verify_ms",
}


def load_converted(target: Target, path: Path, options: LoadOptions) -> Drafter:
    """The head of a loaded pair once more, written by the offline converter and read back.

    Raises:
        KnownError: it is quantized already, or the target has no scheme to take.
    """
    checkpoint = open_folder(path)
    source = head_checkpoint(checkpoint, options)
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder) / "head"
        quantize_drafter(source, checkpoint, converted)
        drafter = load_drafter(checkpoint, target, replace(options, head=str(converted)))
    drafter.info = replace(drafter.info, source=f"{source.path}, through quantize-drafter")
    return drafter


def quantized_drafter(rig: Rig, prompts: Sequence[Prompt], task: Task) -> list[Experiment]:
    """One experiment of `task.tokens` tokens: classic decode and the three heads at the same block."""
    if missing := [name for name in HEADS if name not in rig.drafters]:
        raise KnownError(
            f"This pair has no {missing[0]} head to compare: its head is quantized in the checkpoint.",
            todo="Name the original head in 16 bit with --head.",
        )
    width = min(usable_widths(rig), key=lambda w: abs(w - BLOCK))
    classic = classic_arm(rig, task)
    dense, at_load, converted = arms = [block_arm(rig, task, head, width) for head in HEADS]
    return [
        Experiment(
            title=f"{task.tokens} tokens, block {width}",
            work=f"{task.tokens - 1} tokens after the first, from a restored boundary; the head's prefill included",
            tokens=task.tokens - 1,
            arms=[classic, again(classic), *arms],
            prompts=prompts,
            control=(classic.name, again(classic).name),
            comparisons=[
                *(Comparison(arm.name, classic.name) for arm in arms),
                Comparison(at_load.name, dense.name),
                Comparison(converted.name, at_load.name),
            ],
            equal_to=classic.name,
            must_equal=frozenset(arm.name for arm in (again(classic), *arms)),
            stages=[block_arm(rig, task, head, width, detailed=True) for head in HEADS],
        )
    ]


def published_table(outcomes: Sequence[Outcome], drafters: Mapping[str, Drafter]) -> list[str]:
    """One column a head, as published. Stages: of all lengths together, from the runs with detailed timing."""
    columns = [[arm.name for arm in outcome.experiment.stages] for outcome in outcomes]
    rows: list[tuple[str, ...]] = []
    for title, stage in _STAGES.items():
        cells = []
        for place in range(len(HEADS)):
            runs = [
                t
                for outcome, names in zip(outcomes, columns, strict=True)
                for t in outcome.stages.samples(names[place])
            ]
            found = staged(Trials(tuple(replace(t, arm=title) for t in runs), 0), title)
            cells.append(f"{found.ms[stage]:.2f}" if found is not None else "not measured")
        rows.append((title, *cells))
    for what in ("acceptance", "tok/s"):
        for outcome, names in zip(outcomes, columns, strict=True):
            figures = [_figure(outcome, name, what) for name in names]
            rows.append((f"{what}, n = {outcome.experiment.tokens + 1}", *figures))
    for outcome in outcomes:
        classic = outcome.experiment.equal_to
        rate = f"{outcome.rate(classic):.1f}"
        n = outcome.experiment.tokens + 1
        rows.append((f"classic tok/s, n = {n}", rate, rate, rate))
        names = [arm.name for arm in outcome.experiment.stages]
        ratios = {j.comparison.arm: j.ratio for j in outcome.judged if j.comparison.against == classic}
        rows.append((f"ratio to classic, n = {n}", *(f"{ratios[name].median:.2f}" for name in names)))
        bounds = (_stage_stats(outcome, name) for name in names)
        cells = [f"{free_drafter(stats, classic_rate(outcome)):.2f}" if stats.rounds else "" for stats in bounds]
        rows.append((f"ratio if drafting were free, n = {n}", *cells))
    rows.append(("bytes in memory", *(str(drafters[name].info.bytes) for name in HEADS)))
    lines = table(("", "16-bit head", "quantized at load", "pre-converted"), rows)
    if drafters[DENSE].info.bytes == drafters[QUANTIZED].info.bytes:
        lines += [
            "",
            "On this device packed weights are unpacked at load: the heads cost the same, only acceptance can differ.",
        ]
    return lines


def _stage_stats(outcome: Outcome, arm: str) -> ReplyStats:
    return merge(t.sample.stats for t in outcome.stages.samples(arm) if t.sample.stats is not None)


def _figure(outcome: Outcome, arm: str, what: str) -> str:
    if what == "tok/s":
        return f"{outcome.rate(arm):.1f}"
    stats = merge(t.sample.stats for t in outcome.trials.samples(arm) if t.sample.stats is not None)
    return f"{stats.acceptance_rate:.3f}"
