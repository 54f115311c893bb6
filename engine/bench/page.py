"""The Markdown page of a benchmark's record: figures, what they are of, and how to read them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.bench import tables
from engine.bench.check import source_digest
from engine.bench.experiment import Outcome
from engine.bench.statistics import CONFIDENCE, QUIET_BAND, RESAMPLES
from engine.tables import table
from engine.telemetry.schema import without_home

if TYPE_CHECKING:
    from engine.bench.record import Record


def as_markdown(record: Record, raw: str) -> Iterator[str]:
    yield f"# {record.title}"
    yield ""
    yield f"{record.info.name} on {record.info.device}, {record.day.isoformat()}. Raw samples: `{raw}`."
    if record.stamp:
        yield ""
        yield f"**{record.stamp}**"
    if record.summary:
        yield ""
        yield from record.summary
    for outcome in record.outcomes:
        yield from _section(outcome, record.ends)
    yield from ("", "## Environment", "")
    yield from table(("what", "value"), _environment(record))
    yield from ("", "## How to read this", "")
    yield from _notes(record)
    yield from ("", "## Thrown away", "")
    for outcome in record.outcomes:
        kept, warm_up = outcome.trials, outcome.trials.warm_up + outcome.stages.warm_up
        cut = f", {kept.cut} runs of a block that was stopped" if kept.cut else ""
        rest = f" {kept.cooldown} s of rest before every run." if kept.cooldown else ""
        yield f"- {outcome.experiment.title}: {warm_up} warm-up runs{cut}. No other sample was left out.{rest}"
    yield from ("", "## Not measured", "")
    for text in record.not_measured:
        yield f"- {text}"
    yield from ("", "## Repeat", "", "```sh", shlex.join(record.command), "```")


def _section(outcome: Outcome, ends: frozenset[int]) -> Iterator[str]:
    experiment = outcome.experiment
    reference = outcome.trials.samples(experiment.equal_to)
    turns = Counter(trial.prompt for trial in reference)
    used = [p for p in experiment.prompts if turns[p.name]]
    prompts = ", ".join(f"{p.name} ({len(p.tokens)} tokens, {_count(turns[p.name], 'block')})" for p in used)
    yield from (
        "",
        f"## {experiment.title}",
        "",
        f"Work of every run: {experiment.work}. {_count(len(reference), 'block')}, prompts in turn: {prompts}.",
    )
    if missed := [p.name for p in experiment.prompts if not turns[p.name]]:
        yield f"Too few blocks for these prompts, which were not run: {', '.join(missed)}."
    replies = {(trial.prompt, trial.sample.tokens) for trial in reference if len(trial.sample.tokens) > 1}
    if replies:
        wrote = _count(len(replies), "different reply", "different replies")
        yield f"The reference arm wrote {wrote}; runs of one prompt and seed repeat one, so acceptance is of these."
        yield _behind(replies, ends)
    extra = ", ".join(dict.fromkeys(trial.prompt for trial in outcome.stages.kept))
    for title, lines in (
        ("", tables.times(outcome)),
        ("Ratios, pair by pair", tables.ratios(outcome)),
        ("Token ids", tables.equality(outcome)),
        (f"Stages of a round, from extra runs with detailed timing ({extra})", tables.stages(outcome)),
        ("Proof that the arms differ", tables.proof(outcome)),
    ):
        if lines:
            yield from ("", f"### {title}", "") if title else ("",)
            yield from lines
    for arm, told in outcome.told.items():
        yield from ("", f"### What it believed: {arm}", "", *told)
    for problem in outcome.problems:
        yield f"- **Not proven:** {problem}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _behind(replies: Collection[tuple[str, Sequence[int]]], ends: frozenset[int]) -> str:
    """How much of the replies lies behind an end that a chat would have stopped at."""
    firsts = [next((n for n, token in enumerate(tokens) if token in ends), None) for _, tokens in replies]
    total = sum(len(tokens) for _, tokens in replies)
    behind = sum(len(tokens) - n - 1 for (_, tokens), n in zip(replies, firsts, strict=True) if n is not None)
    if not behind:
        return "None of them runs past an end of reply (EOS)."
    past = sum(n is not None for n in firsts)
    return f"{past} of them run past an end of reply (EOS); {behind / total:.0%} of their tokens lie behind one."


def _environment(record: Record) -> list[tuple[str, str]]:
    here, info = record.before.environment, replace(record.info, path=without_home(record.info.path))
    loads = [" ".join(map(str, m.conditions.load)) or "unknown" for m in (record.before, record.after)]
    return [
        ("Pacenote", f"{here.pacenote}, engine source {source_digest()[:16]}"),
        ("versions", f"mlx {here.mlx}, mlx-lm {here.mlx_lm}, Python {here.python}"),
        ("system", f"{here.os}, {here.machine}"),
        ("device", info.device),
        ("cores, memory", f"{here.cpus}, {here.memory / 2**30:.1f} GiB"),
        ("begun / ended", f"{record.before.time} / {record.after.time}"),
        ("environment variables", ", ".join(f"{n}={v}" for n, v in record.before.variables) or "none that count"),
        ("governor, power", f"{record.before.governor}, {record.before.conditions.power}"),
        ("load before / after", " / ".join(loads)),
        ("policy", info.policy),
        ("model", f"{info.path}, {info.parameters} parameters, {info.quantization}, weights {info.weights_hash}"),
        *(
            (f"{name} head", without_home(f"{d.representation}, by {d.decided_by}, {d.bytes} bytes, from {d.source}"))
            for name, d in record.drafters.items()
        ),
        ("exactness", f"{info.verdict.state.value}: {info.verdict.reason}"),
        ("sampler, seed", f"temperature {record.task.sampler.temperature}, {record.task.seed}"),
    ]


def _notes(record: Record) -> Iterator[str]:
    yield "- One process and one loaded model. Every block runs every arm once, in an order drawn anew."
    yield f"- Ratios are medians over blocks; intervals are {CONFIDENCE:.0%} bootstrap percentiles of {RESAMPLES}."
    yield "- A/A: an arm against itself. The band is how far its interval reaches from 1."
    yield "- A line falls short when the upper end of its interval is under the bound less the band. Otherwise it"
    yield f"  holds; but when the band is above {QUIET_BAND} a loss of that size could not be seen, and it is undecided"
    yield "  unless the lower end is above the bound by the band."
    yield "- Whole time: all seconds of the one over all of the other, stalls included. A median does not see what few"
    yield "  runs pay for, such as the pace's looks at what it does not do."
    yield "- Replies run on past EOS, so that all have one length."
    yield "- The head's prefill is counted in the MTP arms' time, as accept-hook time of the first round. In the table"
    yield '  of stages the first round\'s hook stands apart, in milliseconds of a run; "hook" is of the other rounds.'
    yield "- The table of stages has few runs and no intervals. A verify forward of one block size is the same work"
    yield "  whatever the head: what differs there between heads is noise, and the other columns have as much of it."
    yield "- Classic decode looks one step ahead: it counts one forward more than it writes tokens, outside its clock."
    yield "- Ratios come from plain timing. With detailed timing every stage is synchronised, which costs speed."
    yield "- If drafting were free: tokens over the time of verify, rollback and host with detailed timing, relative to"
    yield "  classic decode in the same extra runs. No drafter of this acceptance can give more."
