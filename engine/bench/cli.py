"""`pacenote bench`: runs what the options ask for and prints it. The only module of the benchmark that prints."""

from __future__ import annotations

import argparse
import shlex
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from engine.backend import wired
from engine.bench import BENCH_TOKENS, CHECK_TOKENS, CONTEXTS, FORCED_QMV, candidates, check, check_plan, environment
from engine.bench.arms import Arm, Task
from engine.bench.compare import as_lines, compare, read_raw
from engine.bench.drafter_preset import LENGTHS, load_converted
from engine.bench.experiment import Experiment, Outcome, evaluate
from engine.bench.presets import PRESETS
from engine.bench.progress import Progress
from engine.bench.prompts import BENCH, CHECK, Prompt, in_contexts, read_prompts, read_sets, require_room
from engine.bench.record import Record, require_folder, write
from engine.bench.rig import CONVERTED, Rig, load_rig
from engine.bench.tables import check_table, equality, ratios, stages, times
from engine.bench.trials import Trials, run_trials
from engine.bench.usage import require_sense
from engine.cli.interrupt import interruptible
from engine.cli.loading import ProgressLine, load_options
from engine.decode.prefill import Interrupted
from engine.errors import KnownError
from engine.events import LoadProgress
from engine.exactness import cache
from engine.request import LoadOptions, Sampler

STAGE_RUNS = 3
"""Runs per arm with detailed timing, for the table of stages."""
INTERRUPTED = 130


def run(args: argparse.Namespace) -> int:
    """Returns 0 when all that was promised held, 1 when not, 130 when interrupted."""
    require_sense(args, args.default_of)
    if args.compare:
        return _compare(*args.compare)
    lengths = args.tokens or [CHECK_TOKENS if args.check else BENCH_TOKENS]
    try:
        task = Task(max(lengths), Sampler(args.temperature), args.seed)
    except ValueError as error:
        args.usage_error(str(error))
    with interruptible() as stop:
        if args.check:
            return _check(args, task, stop)
        return _candidates(args, stop) if args.preset == FORCED_QMV else _bench(args, task, stop)


def _load(args: argparse.Namespace, stop: threading.Event, *, both_heads: bool) -> Rig:
    with ProgressLine(sys.stderr) as line:
        return load_rig(_options(args), line.show, stop, both_heads=both_heads)


def _options(args: argparse.Namespace) -> LoadOptions:
    return replace(load_options(args), max_block=args.block)  # a narrower one too: what is probed is what is measured


def _prompts(args: argparse.Namespace, bundled: Path, rig: Rig, task: Task) -> list[Prompt]:
    tokenizer = rig.pair.tokenizer
    prompts = read_sets(args.set, tokenizer) if args.set else read_prompts(args.prompts or bundled, tokenizer)
    require_room(prompts, task.tokens, rig.pair.info.context_length)
    return prompts


# -- equality ---------------------------------------------------------------------------------------------


def _check(args: argparse.Namespace, task: Task, stop: threading.Event) -> int:
    rig = _load(args, stop, both_heads=True)
    prompts = _prompts(args, CHECK, rig, task)
    make = check_plan.plan_samplings if args.samplings else check_plan.plan_check
    plan = make(rig, prompts, task.tokens, task.seed, random_widths=args.random_widths)
    path = args.progress or cache.folder() / "check.jsonl"
    progress = Progress(path, check.run_key(rig, task.tokens, task.seed))
    if progress.damaged:
        print(f"{progress.damaged} damaged lines in {path} are left out; their cells run again.", file=sys.stderr)
    finished = False
    try:
        with wired(rig.target.backend), ProgressLine(sys.stderr) as line:
            finished = check.run_check(
                plan, progress, stop, lambda n, prompt: line.show(LoadProgress(f"Checking: {prompt}", n, plan.size))
            )
    except Interrupted:
        pass  # reported below: what is finished is kept
    results = check.judge(plan, progress)
    print(f"{rig.pair.info.name} ({rig.pair.info.weights_hash}) on {rig.pair.info.device}; {rig.pair.info.policy}")
    print(f"{len(prompts)} prompts x {task.tokens} tokens, {'; '.join(plan.samplings)}; seed {task.seed}")
    print("\n".join(check_table(results)))
    if args.samplings:
        print("\n".join(check_table(check.judge(plan, progress, lambda case, _: case.sampling))))
    for missing in plan.missing:
        print(f"not compared: {missing}")
    if not finished:
        done = sum(cell in progress.rows for cell, _, _ in plan.cells())
        print(f"Interrupted: {done} of {plan.size} cells are finished and kept in {path}. Run it again to continue.")
        return INTERRUPTED
    differing = sum(result.differing for result in results)
    tokens = sum(result.tokens for result in results)
    print(f"{differing} differing token ids in {tokens} compared.")
    return 1 if differing or not tokens else 0


# -- verify kernels ---------------------------------------------------------------------------------------


def _candidates(args: argparse.Namespace, stop: threading.Event) -> int:
    stamp = environment.admit(environment.look(), anyway=args.anyway)
    require_folder(args.out)  # not after an hour of measuring
    rig = _load(args, stop, both_heads=False)
    name, command = args.model or rig.pair.info.name, shlex.join(["pacenote", *args.argv])
    path = candidates.measure(rig.target, name, "", args.pairs, args.out, command, stamp)
    print(path.read_text(encoding="utf-8"))
    print(f"written: {path}")
    return 0


# -- speed ------------------------------------------------------------------------------------------------


def _bench(args: argparse.Namespace, task: Task, stop: threading.Event) -> int:
    preset = PRESETS[args.preset]
    machine = environment.look()
    stamp = environment.admit(machine, anyway=args.anyway)
    require_folder(args.out)
    rig = _load(args, stop, both_heads=preset.both_heads)
    if preset.converted and rig.drafters and CONVERTED not in rig.drafters:
        rig.add(CONVERTED, load_converted(rig.target, Path(rig.pair.info.path), _options(args)))
    lengths = tuple(args.tokens or preset.lengths or (task.tokens,))
    prompts, not_measured = _prompts(args, BENCH, rig, replace(task, tokens=max(lengths))), preset.not_measured
    if args.context is not None:
        room = rig.pair.info.context_length - max(lengths)
        prompts, left_out = in_contexts(prompts, args.context or CONTEXTS, room)
        not_measured += tuple(f"Context {n}: this model has room for {room} tokens of prompt." for n in left_out)
        if not prompts:
            raise KnownError("No context fits.", kept="Nothing was measured.", todo=f"Name lengths up to {room}.")
    if preset.drafts and (other := [n for n in LENGTHS if n not in lengths]):
        asked = " ".join(map(str, other))
        not_measured += (f"Acceptance over {' and '.join(map(str, other))} tokens: --tokens {asked} measures it.",)
    outcomes: list[Outcome] = []
    for experiment in (e for n in lengths for e in preset.build(rig, prompts, replace(task, tokens=n))):
        length = f"{experiment.tokens + 1} tokens"
        if len(lengths) > 1 and not experiment.title.startswith(length):
            experiment = replace(experiment, title=f"{experiment.title}, {length}")
        outcome = _measure(args, rig, experiment, stop)
        if outcome is None:
            break
        outcomes.append(outcome)
        for lines in (times(outcome), ratios(outcome), equality(outcome), stages(outcome)):
            print("\n".join([*lines, ""]))
        for problem in outcome.problems:
            print(f"NOT PROVEN: {problem}")
    if not outcomes:
        raise KnownError("Stopped before a block was whole.", kept="No record was written.", todo="Run it again.")
    summary = preset.summary(outcomes, rig.drafters) if preset.summary is not None else []
    after = environment.look()
    if summary:
        print("\n".join([*summary, ""]))
    fewest = min(outcome.control.n for outcome in outcomes)
    unsettled, is_record = environment.settled(max(o.band for o in outcomes), fewest, anyway=args.anyway)
    stopped = "Stopped before all blocks were done." if stop.is_set() else ""
    record = Record(
        feature=_feature(preset.feature, args),
        title=preset.title,
        info=rig.pair.info,
        drafters={name: drafter.info for name, drafter in rig.drafters.items()},
        before=machine,
        after=after,
        stamp=" ".join(filter(None, (stamp, environment.crowded(after), unsettled, stopped))),
        task=task,
        pairs=args.pairs,
        day=date.today(),
        command=["pacenote", *args.argv],
        not_measured=not_measured,
        outcomes=outcomes,
        ends=frozenset(rig.pair.tokenizer.eos_ids),
        summary=summary,
    )
    paths = write(record, args.out if is_record else cache.folder() / "refused")
    if not is_record:
        raise KnownError(
            unsettled,
            kept=f"This is no record. The figures are above and in {paths[0]}.",
            todo="Close other programs, ask for more --pairs or a --cooldown, or keep it with --anyway.",
        )
    for path in paths:
        print(f"written: {path}")
    if stop.is_set():
        return INTERRUPTED
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def _feature(name: str, args: argparse.Namespace) -> str:
    """First part of the record's name: the preset, and what makes this run another measurement of it."""
    contexts = "contexts" if args.context is not None else ""
    sampled = f"temperature-{args.temperature:g}" if args.temperature else ""
    block = f"block-{args.block}" if args.block != LoadOptions().max_block else ""
    return "-".join(filter(None, (name, contexts, sampled, block)))


def _measure(args: argparse.Namespace, rig: Rig, experiment: Experiment, stop: threading.Event) -> Outcome | None:
    """None when it was stopped before a block was whole."""
    with wired(rig.target.backend), ProgressLine(sys.stderr) as line:

        def report(block: int) -> None:
            line.show(LoadProgress(f"Block {block + 1} of {args.pairs}" if block >= 0 else "Warm-up"))

        def trials(arms: Sequence[Arm], count: int) -> Trials:
            return run_trials(arms, experiment.prompts, count, args.seed, stop, report, args.cooldown)

        kept, extra = trials(experiment.arms, args.pairs), Trials((), 0)
        if kept.kept and experiment.stages and not stop.is_set():
            # With the reference among them: the bound of a free drafter is a ratio, and so of equal work and time.
            (reference,) = (arm for arm in experiment.arms if arm.name == experiment.equal_to)
            extra = trials([reference, *experiment.stages], STAGE_RUNS)
    return evaluate(experiment, kept, extra, args.seed) if kept.kept else None


# -- regressions ------------------------------------------------------------------------------------------


def _compare(before: Path, after: Path) -> int:
    """Returns 1 when B is slower in some arm, or writes other tokens."""
    a, b = read_raw(before), read_raw(after)
    found = compare(a, b)
    print("\n".join(as_lines(a, b, found)))
    return 1 if found.failed else 0
