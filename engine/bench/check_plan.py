"""What the equality run compares: prompts, ways to sample, and arms."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.bench.arms import Arm, Task, block_arm, classic_arm, random_widths_arm
from engine.bench.prompts import Prompt
from engine.bench.rig import Rig, usable_widths
from engine.request import Sampler

TEMPERATURES = (0.0, 0.8)

SAMPLINGS: dict[str, Sampler] = {
    "greedy": Sampler(),
    "temperature 0.7": Sampler(0.7),
    "temperature 1.0": Sampler(1.0),
    "greedy, penalties": Sampler(repetition_penalty=1.1, presence_penalty=0.5),
    "temperature 0.7, top-k 40, top-p 0.9, penalties": Sampler(
        0.7, top_k=40, top_p=0.9, repetition_penalty=1.1, presence_penalty=0.3
    ),
    "temperature 1.0, min-p 0.02, bias, repetition penalty": Sampler(
        1.0, min_p=0.02, repetition_penalty=1.05, logit_bias=((11, 1.5), (13, -1.5))
    ),
}
"""Every processor, alone and together. The biased ids are arbitrary; any vocabulary has them."""
PER_PROMPT = 3
"""Samplings that each prompt is written with, in turn, so that a run over all of them stays affordable."""


@dataclass(frozen=True)
class Case:
    """One prompt, one way to sample, one seed. arms: the reference first."""

    prompt: Prompt
    sampling: str
    seed: int
    arms: tuple[Arm, ...]

    def cell(self, arm: Arm) -> str:
        """The name of one run. The prompt's tokens are in it: another prompt of the same name is another cell."""
        tokens = hashlib.sha256(repr(self.prompt.tokens).encode()).hexdigest()[:8]
        return f"{self.prompt.name} ({tokens}), {self.sampling}, seed {self.seed}, {arm.name}"


@dataclass(frozen=True)
class Plan:
    """What is to be compared. missing: what cannot be run here, and why."""

    cases: Sequence[Case]
    missing: tuple[str, ...] = ()

    def cells(self) -> Iterator[tuple[str, Case, Arm]]:
        """Every run; all of one prompt together, so that its boundary is read once."""
        for case in self.cases:
            for arm in case.arms:
                yield case.cell(arm), case, arm

    @property
    def size(self) -> int:
        return sum(len(case.arms) for case in self.cases)

    @property
    def samplings(self) -> list[str]:
        return list(dict.fromkeys(case.sampling for case in self.cases))


def plan_check(rig: Rig, prompts: Sequence[Prompt], tokens: int, seed: int, *, random_widths: bool) -> Plan:
    """Classic against every block size that may be used here, with every head that can be had.

    Raises:
        KnownError: there is no MTP here.
    """
    allowed, missing = _available(rig)
    tasks = {f"temperature {t}": Task(tokens, Sampler(t), seed) for t in TEMPERATURES}
    by_sampling = {name: _arms(rig, task, list(rig.drafters), allowed, random_widths) for name, task in tasks.items()}
    cases = [Case(prompt, name, seed, arms) for prompt in prompts for name, arms in by_sampling.items()]
    return Plan(cases, missing)


def plan_samplings(rig: Rig, prompts: Sequence[Prompt], tokens: int, seed: int, *, random_widths: bool) -> Plan:
    """Classic against every width over all of SAMPLINGS, with another seed for every prompt, the heads in turn.

    Raises:
        KnownError: there is no MTP here.
    """
    allowed, missing = _available(rig)
    heads, names, cases = list(rig.drafters), list(SAMPLINGS), []
    for n, prompt in enumerate(prompts):
        for k in range(n, n + PER_PROMPT):
            name = names[k % len(names)]
            task = Task(tokens, SAMPLINGS[name], seed + n)
            head = heads[(n // len(names) + k) % len(heads)]
            cases.append(Case(prompt, name, task.seed, _arms(rig, task, [head], allowed, random_widths)))
    return Plan(cases, missing)


def _available(rig: Rig) -> tuple[tuple[int, ...], tuple[str, ...]]:
    allowed = usable_widths(rig)
    missing = [f"block {w}: it did not pass the exactness probe" for w in rig.widths if w not in allowed]
    if len(rig.drafters) < 2:
        missing.append("the dense head: the checkpoint holds it quantized only")
    return allowed, tuple(missing)


def _arms(rig: Rig, task: Task, heads: Sequence[str], widths: tuple[int, ...], random_widths: bool) -> tuple[Arm, ...]:
    arms = [classic_arm(rig, task)]
    for head in heads:
        arms += [block_arm(rig, task, head, width) for width in widths]
        if random_widths:
            arms.append(random_widths_arm(rig, task, head, widths))
    return tuple(arms)
