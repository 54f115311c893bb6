"""What `pacenote bench` can measure: named sets of experiments on one rig."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.bench.arms import Arm, Task, again, block_arm, classic_arm, kernel_arm, pace_arm
from engine.bench.drafter_preset import BLOCK, LENGTHS, published_table, quantized_drafter
from engine.bench.experiment import Comparison, Experiment, Outcome
from engine.bench.mlx_lm_arms import DEFAULT_CHUNK, mlx_lm_arm, mlx_lm_prefill_arm
from engine.bench.prefill_arm import prefill_arm
from engine.bench.prompts import Prompt, of_length
from engine.bench.rig import Rig, usable_widths
from engine.bench.shortlist_preset import shortlist
from engine.drafter import Drafter
from engine.errors import KnownError
from engine.exactness.ladder import candidates

PREFILL_TOKENS = 500
NEVER_SLOWER = 0.98
CLOSE_TO_BEST = 0.95


@dataclass(frozen=True)
class Preset:
    """feature: first part of the record's name. build: (rig, prompts, task) -> experiments.

    both_heads: the head is loaded dense and quantized. converted: and once more from the offline converter.
    lengths: tokens per reply, one set of experiments each, where the user asks for none.
    summary: a table over all outcomes, at the top of the record.
    not_measured: beyond what the experiments say themselves. drafts: whether its replies are drafted.
    """

    feature: str
    title: str
    build: Callable[[Rig, Sequence[Prompt], Task], list[Experiment]]
    both_heads: bool
    not_measured: tuple[str, ...]
    converted: bool = False
    lengths: tuple[int, ...] = ()
    summary: Callable[[Sequence[Outcome], Mapping[str, Drafter]], list[str]] | None = None
    drafts: bool = True


def _mtp(rig: Rig, prompts: Sequence[Prompt], task: Task) -> list[Experiment]:
    classic = classic_arm(rig, task)
    chosen = _heads_and_widths(rig)
    blocks = [block_arm(rig, task, drafter, width) for drafter, width in chosen]
    return [
        Experiment(
            title="Classic decode and MTP",
            work=f"{task.tokens - 1} tokens after the first, from a restored boundary; the head's prefill included",
            tokens=task.tokens - 1,
            arms=[classic, again(classic), *blocks],
            prompts=prompts,
            control=(classic.name, again(classic).name),
            comparisons=[Comparison(arm.name, classic.name) for arm in blocks],
            equal_to=classic.name,
            must_equal=frozenset(arm.name for arm in (again(classic), *blocks)),
            stages=[block_arm(rig, task, drafter, width, detailed=True) for drafter, width in chosen],
        )
    ]


def _heads_and_widths(rig: Rig) -> list[tuple[str, int]]:
    """The head as a chat loads it at every width; its other representation at one, which is enough to compare them."""
    allowed = usable_widths(rig)
    usual, *others = rig.drafters
    middle = min(allowed, key=lambda width: abs(width - 3))
    return [*((usual, width) for width in allowed), *((other, middle) for other in others)]


def _kernels(rig: Rig, prompts: Sequence[Prompt], task: Task) -> list[Experiment]:
    """Every exactness candidate at one block. Only the engaged one must give classic decode's ids."""
    usual = next(iter(rig.drafters))
    width = min(usable_widths(rig), key=lambda w: abs(w - BLOCK))
    classic = classic_arm(rig, task)
    tried = list(candidates(rig.target, (width,)))
    engaged = {c.name for c in tried} & {rig.pair.info.verdict.kernel}
    arms = {c.name: kernel_arm(rig, task, usual, width, c) for c in tried}
    return [
        Experiment(
            title=f"Verify kernels at block {width}",
            work=f"{task.tokens - 1} tokens after the first, from a restored boundary; the head's prefill included",
            tokens=task.tokens - 1,
            arms=[classic, again(classic), *arms.values()],
            prompts=prompts,
            control=(classic.name, again(classic).name),
            comparisons=[
                *(Comparison(arm.name, classic.name) for arm in arms.values()),
                *(Comparison(arm.name, arms["stock"].name) for name, arm in arms.items() if name != "stock"),
            ],
            equal_to=classic.name,
            must_equal=frozenset({again(classic).name, *(arms[name].name for name in engaged)}),
        )
    ]


def _pace(rig: Rig, prompts: Sequence[Prompt], task: Task) -> list[Experiment]:
    """Every width over all prompts, then the pace against classic decode on each prompt alone."""
    allowed = usable_widths(rig)
    usual = next(iter(rig.drafters))
    classic, paced = classic_arm(rig, task), pace_arm(rig, task, usual, max(allowed))
    blocks = [block_arm(rig, task, usual, width) for width in allowed]
    work = f"{task.tokens - 1} tokens after the first, from a restored boundary; the head's prefill included"
    overall = Experiment(
        title="Fixed widths and the pace, all prompts",
        work=work,
        tokens=task.tokens - 1,
        arms=[classic, again(classic), paced, *blocks],
        prompts=prompts,
        control=(classic.name, again(classic).name),
        comparisons=[
            Comparison(paced.name, classic.name, bound=NEVER_SLOWER),
            *(Comparison(arm.name, classic.name) for arm in blocks),
            *(Comparison(paced.name, arm.name, bound=CLOSE_TO_BEST) for arm in blocks),
        ],
        equal_to=classic.name,
        must_equal=frozenset(arm.name for arm in (again(classic), paced, *blocks)),
        stages=[block_arm(rig, task, usual, width, detailed=True) for width in allowed],
    )
    alone = [
        Experiment(
            title=f"The pace on {prompt.name} ({len(prompt.tokens)} tokens)",
            work=work,
            tokens=task.tokens - 1,
            arms=[classic, again(classic), paced],
            prompts=[prompt],
            control=(classic.name, again(classic).name),
            comparisons=[Comparison(paced.name, classic.name, bound=NEVER_SLOWER)],
            equal_to=classic.name,
            must_equal=frozenset({again(classic).name, paced.name}),
        )
        for prompt in prompts
    ]
    return [overall, *alone]


def _pace_alone(rig: Rig, prompts: Sequence[Prompt], task: Task) -> list[Experiment]:
    """Without the fixed widths: behind a long prompt each of their runs lets the head read all of it first."""
    return _pace(rig, prompts, task)[1:]


def _classic_vs_mlx_lm(rig: Rig, prompts: Sequence[Prompt], task: Task) -> list[Experiment]:
    if task.sampler.temperature:
        raise KnownError("mlx_lm draws other noise than Pacenote.", todo="Compare with mlx_lm at temperature 0.")
    classic, peer = classic_arm(rig, task), mlx_lm_arm(rig, task)
    decode = Experiment(
        title="Decode against mlx_lm",
        work=f"{task.tokens - 1} tokens after the first, from a restored boundary",
        tokens=task.tokens - 1,
        arms=[classic, again(classic), peer],
        prompts=prompts,
        control=(classic.name, again(classic).name),
        comparisons=[Comparison(classic.name, peer.name, bound=1.0)],
        equal_to=classic.name,
        must_equal=frozenset({again(classic).name}),
    )
    ours, following = prefill_arm(rig, head=False), prefill_arm(rig, head=True)
    chunks = sorted({DEFAULT_CHUNK, rig.target.backend.prefill_chunk})
    peers = [mlx_lm_prefill_arm(rig, chunk, PREFILL_TOKENS) for chunk in chunks]
    prefill_arms: list[Arm] = [ours, again(ours), following, *peers]
    prefill = Experiment(
        title=f"Prefill of {PREFILL_TOKENS} tokens against mlx_lm",
        work="from an empty cache to the first token on the host",
        tokens=PREFILL_TOKENS,
        arms=prefill_arms,
        prompts=[of_length(prompts, PREFILL_TOKENS)],
        control=(ours.name, again(ours).name),
        comparisons=[Comparison(arm.name, peer.name, bound=1.0) for arm in (ours, following) for peer in peers],
        equal_to=ours.name,
        must_equal=frozenset({again(ours).name, following.name}),
    )
    return [decode, prefill]


_ALWAYS = (
    "Any other machine, power state or temperature of the device than the ones above.",
    "Contexts longer than these prompts and replies.",
    "Memory and energy.",
    "The chat around the engine: template, detokenizer, window, session log.",
)

_PAST_EOS = "Acceptance within replies alone: they run on past EOS, and what follows it is no usual text."

PRESETS = {
    "mtp": Preset(
        "mtp",
        "MTP against classic decode",
        _mtp,
        both_heads=True,
        not_measured=(*_ALWAYS, _PAST_EOS, "The pace: every MTP arm has a fixed width and is never parked."),
    ),
    "quantized-drafter": Preset(
        "quantized-drafter",
        "A 16-bit, a load-time quantized and a pre-converted drafter",
        quantized_drafter,
        both_heads=True,
        not_measured=(
            *_ALWAYS,
            _PAST_EOS,
            "The pace: every MTP arm has a fixed width and is never parked.",
        ),
        converted=True,
        lengths=LENGTHS,
        summary=published_table,
    ),
    "kernels": Preset(
        "kernels",
        "Replies with every exactness candidate's verify kernel",
        _kernels,
        both_heads=False,
        not_measured=(
            *_ALWAYS,
            _PAST_EOS,
            "The pace: every MTP arm has a fixed width and is never parked.",
            "Exactness of the kernels that are not engaged: equal ids on these prompts are no probe.",
        ),
    ),
    "pace": Preset(
        "pace",
        "The pace against classic decode and fixed widths",
        _pace,
        both_heads=False,
        not_measured=(*_ALWAYS, _PAST_EOS),
    ),
    "pace-alone": Preset(
        "pace-alone",
        "The pace against classic decode",
        _pace_alone,
        both_heads=False,
        not_measured=(*_ALWAYS, _PAST_EOS, "Fixed widths: `--preset pace` has them."),
    ),
    "shortlist": Preset(
        "shortlist",
        "A drafter with a shorter vocabulary",
        shortlist,
        both_heads=False,
        not_measured=(
            *_ALWAYS,
            _PAST_EOS,
            "The pace: every MTP arm has a fixed width and is never parked.",
            "Other choices of tokens than the first ones by id.",
        ),
    ),
    "classic-vs-mlx-lm": Preset(
        "classic-vs-mlx-lm",
        "Classic decode and prefill against mlx_lm",
        _classic_vs_mlx_lm,
        both_heads=False,
        not_measured=(*_ALWAYS, "mlx_lm's own loading: it runs on the weights as Pacenote's policy holds them."),
        drafts=False,
    ),
}
