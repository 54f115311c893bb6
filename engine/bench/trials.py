"""Run an experiment: warm up, then interleaved blocks, until done or stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.bench.arms import Arm
from engine.bench.design import blocks
from engine.bench.prompts import Prompt
from engine.bench.sample import Sample
from engine.decode.prefill import Interrupted


@dataclass(frozen=True, slots=True)
class Trial:
    """One run in its place: block and order within it count from 0."""

    block: int
    order: int
    arm: str
    prompt: str
    sample: Sample


@dataclass(frozen=True, slots=True)
class Trials:
    """kept: whole blocks only. warm_up: runs thrown away before them. cut: runs of a block that Stop cut off.

    cooldown: seconds of rest before every run.
    """

    kept: tuple[Trial, ...]
    warm_up: int
    cut: int = 0
    cooldown: float = 0.0

    def seconds(self, arm: str) -> list[float]:
        """Of one arm, in block order."""
        return [trial.sample.seconds for trial in self.samples(arm)]

    def samples(self, arm: str) -> list[Trial]:
        """Of one arm, in block order."""
        return sorted((t for t in self.kept if t.arm == arm), key=lambda t: t.block)


def run_trials(
    arms: Sequence[Arm],
    prompts: Sequence[Prompt],
    count: int,
    seed: int,
    stop: threading.Event,
    report: Callable[[int], None] = lambda block: None,
    cooldown: float = 0.0,
) -> Trials:
    """`count` blocks; block n uses prompt n modulo their number. Every arm is warmed up once before them.

    When `stop` is set the unfinished block is dropped; whole blocks are kept.

    report: called with the number of the block that starts, -1 for warm-up.
    cooldown: seconds of rest before every run, so that none starts on a device that the one before has heated.
    """

    def run(arm: Arm, prompt: Prompt) -> Sample:
        if stop.wait(cooldown):
            raise Interrupted
        return arm.run(prompt, stop)

    kept: list[Trial] = []
    warm_up = 0
    try:
        report(-1)
        for arm in arms:
            run(arm, prompts[0])
            warm_up += 1
    except Interrupted:
        return Trials((), warm_up, cooldown=cooldown)
    for number, order in enumerate(blocks(arms, count, seed)):
        prompt = prompts[number % len(prompts)]
        block: list[Trial] = []
        report(number)
        try:
            for place, arm in enumerate(order):
                block.append(Trial(number, place, arm.name, prompt.name, run(arm, prompt)))
        except Interrupted:
            return Trials(tuple(kept), warm_up, cut=len(block), cooldown=cooldown)
        kept += block
    return Trials(tuple(kept), warm_up, cooldown=cooldown)
