"""What an arm is, and the arms of decode that run the engine's own loops.

The clock of a decode arm starts with the boundary restored and the first token chosen, and stops when the
last token is on the host, so prefill does not blur it. The head's own prefill (catch-up) falls inside: it is
accept-hook time of the first round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx

from engine.bench.clock import measured
from engine.bench.pace_table import pace_table
from engine.bench.prompts import Prompt
from engine.bench.rig import Rig
from engine.bench.sample import Sample
from engine.bench.tally import drafts, forwards, products
from engine.bench.widths import FixedWidth, PacedWidths, RandomWidths, Widths
from engine.decode import Line, loops
from engine.decode.prefill import Interrupted
from engine.drafter import HeadState
from engine.events import EndReason, PrefillProgress, ReplyStats, Round
from engine.exactness.kernels import MatmulKernel
from engine.exactness.ladder import Candidate, try_on
from engine.request import Sampler, Speculation
from engine.sampling import Chooser
from engine.target import Rows, TargetState
from engine.telemetry.stats import StatsBuilder

Run = Callable[[Prompt, threading.Event], Sample]
"""Raises Interrupted when the event was set before the run was complete."""


@dataclass(frozen=True)
class Arm:
    """One thing that is measured.

    moves: counters (see `tally`) that must move in this arm, and may not in an arm that does not list them.
    free: what it does is its own choice (the pace), so its counters prove nothing.
    told: what it has to say once all its runs are done, in lines for the record.
    """

    name: str
    run: Run
    moves: frozenset[str]
    free: bool = False
    told: Callable[[], Sequence[str]] = tuple


def again(arm: Arm) -> Arm:
    """The same arm under a second name: the A/A control. Whatever differs between the two is noise."""
    return replace(arm, name=f"{arm.name} again")


@dataclass(frozen=True, slots=True)
class Task:
    """What every decode arm writes: `tokens` tokens (2 or more), on past any end of reply."""

    tokens: int
    sampler: Sampler
    seed: int = 0


def classic_arm(rig: Rig, task: Task) -> Arm:
    """Classic decode with no head following: what a chat does with MTP off."""
    return _decode_arm(rig, task, "classic", None, lambda *_: FixedWidth(1), {forwards(1)})


def block_arm(rig: Rig, task: Task, drafter: str, width: int, *, detailed: bool = False) -> Arm:
    """MTP with a fixed verify block, never parked.

    drafter: its name in the rig.
    detailed: synchronise between stages; for stage times, not for ratios.
    """
    name = f"block {width}, {drafter} head"
    return _decode_arm(
        rig, task, name, drafter, lambda *_: FixedWidth(width), {forwards(width), drafts(drafter)}, detailed
    )


def kernel_arm(rig: Rig, task: Task, drafter: str, width: int, candidate: Candidate) -> Arm:
    """A fixed verify block on one exactness candidate's kernel, whatever the ladder engaged; only while it runs."""
    arm = block_arm(rig, task, drafter, width)
    counter = products(candidate.name)

    def run(prompt: Prompt, stop: threading.Event) -> Sample:
        scope = rig.target.scope
        engaged = scope.kernel, scope.block_limit
        rig.boundary(prompt, stop)  # no part of it: prefill runs on the stock kernels
        try_on(rig.target, replace(candidate, kernel=_Counted(candidate.kernel, rig, counter)))
        try:
            return arm.run(prompt, stop)
        finally:
            scope.kernel, scope.block_limit = engaged

    return Arm(f"block {width}, {candidate.name}", run, arm.moves | {counter})


class _Counted:
    """A verify kernel that leaves its trace in the tally: what proves which one ran."""

    def __init__(self, kernel: MatmulKernel, rig: Rig, counter: str) -> None:
        self.name, self.cost_note = kernel.name, kernel.cost_note
        self._kernel, self._counts, self._counter = kernel, rig.tally.counts, counter

    def linear(self, module: Any, x: mx.array) -> mx.array:
        self._counts[self._counter] += 1
        return self._kernel.linear(module, x)

    def experts(self, module: Any, x: mx.array, indices: mx.array) -> mx.array:
        self._counts[self._counter] += 1
        return self._kernel.experts(module, x, indices)


def pace_arm(rig: Rig, task: Task, drafter: str, limit: int) -> Arm:
    """What a chat does with MTP on: widths up to `limit` by measured cost and acceptance, parked where none pays.

    One pace lives over all runs of the arm, as it does over the replies of a loaded pair. Unlike a chat's it has no
    history of the pair, and the stages of its rounds are not timed.
    """
    if rig.pair.measured is None:
        raise ValueError("a pair without usable speculation has no pace")
    measured = rig.pair.measured
    pace = measured.pace(rig.pair.info.verdict.widths)
    at_load = pace.table()

    def begin_reply(prompt: Prompt, line: Line) -> Widths:
        pace.begin(Speculation.ON, limit, task.tokens - 1, line.waiting)
        return PacedWidths(pace, line)

    def told() -> list[str]:
        seen = f"At load {measured.accepted:.0f} of {measured.judged:.0f} drafts were accepted."
        return [*pace_table(at_load, pace), "", f"{seen} Mean acceptance at the end: {pace.acceptance.mean:.2f}."]

    arm = _decode_arm(rig, task, f"pace, {drafter} head", drafter, begin_reply, set())
    return replace(arm, free=True, told=told)


def random_widths_arm(rig: Rig, task: Task, drafter: str, widths: tuple[int, ...]) -> Arm:
    """MTP with another width every round, 1 (classic) among them: the hardest arm for equality."""

    def draw(prompt: Prompt, _: Line) -> Widths:
        return RandomWidths((1, *widths), f"{task.seed} {prompt.name}")

    # Which widths a short run draws, even whether it drafts, is chance: nothing must move.
    return _decode_arm(rig, task, f"random widths, {drafter} head", drafter, draw, set())


def _decode_arm(
    rig: Rig,
    task: Task,
    name: str,
    drafter: str | None,
    widths: Callable[[Prompt, Line], Widths],
    moves: set[str],
    detailed: bool = False,
) -> Arm:
    def run(prompt: Prompt, stop: threading.Event) -> Sample:
        line = begin(rig, task, prompt, stop, follow=drafter is not None)
        first, chosen_widths = line.last, widths(prompt, line)
        with measured(rig) as clock:
            rounds = _decode(rig, line, drafter, chosen_widths, stop, detailed)
            clock.stop()
        if line.ended is None:
            raise Interrupted
        tokens = (first, *(token for round_ in rounds for token in round_.tokens))
        first_hook = rounds[0].hook_ms if rounds else 0.0
        return Sample(clock.seconds, tokens, clock.counts, _figures(prompt, rounds), detailed, first_hook)

    return Arm(name, run, frozenset(moves))


def begin(rig: Rig, task: Task, prompt: Prompt, stop: threading.Event, *, follow: bool) -> Line:
    """A reply whose first token is chosen, on the restored boundary of its prompt.

    follow: a head follows. What it was told in the prefill waits in it.
    """
    state, told, rows = rig.restored(rig.boundary(prompt, stop))
    chooser = Chooser(task.sampler, task.seed, rig.target.vocab_size, prompt.tokens)
    return first_chosen(state, HeadState.restored(told) if follow else None, rows, chooser, task.tokens)


def first_chosen(state: TargetState, head: HeadState | None, rows: Rows, chooser: Chooser, tokens: int) -> Line:
    """A reply of `tokens` tokens, on past any end, whose first one is chosen from `rows`, the prompt's last."""
    return Line.begin(state, head, rows, chooser, _budget(tokens - 1))


def _budget(tokens: int) -> Callable[[int], EndReason | None]:
    left = tokens

    def ends(_: int) -> EndReason | None:
        nonlocal left
        left -= 1
        return EndReason.BUDGET if left <= 0 else None

    return ends


def _decode(
    rig: Rig, line: Line, drafter: str | None, widths: Widths, stop: threading.Event, detailed: bool
) -> list[Round]:
    """Every round of a reply, at the widths asked for."""
    rounds: list[Round] = []
    head = rig.drafters[drafter] if drafter is not None else None
    for loop in loops(rig.target, head, line, stop, lambda: widths.now, detailed):
        for round_ in loop:
            rounds.append(round_)
            widths.advance(round_)
    return rounds


def _figures(prompt: Prompt, rounds: list[Round]) -> ReplyStats:
    builder = StatsBuilder()
    length = len(prompt.tokens)
    builder.prefill(PrefillProgress(length, length, restored=length, seconds=0.0))
    for round_ in rounds:
        builder.observe(round_)
    return builder.build()
