"""A record of logged replies to read: conditions, figures of every reply and of all, decisions, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine.events import ReplyStats
from engine.tables import table
from engine.telemetry.check import check, contradictions, tokens_of, unjudged
from engine.telemetry.reader import Generation, Log
from engine.telemetry.stats import STAGES, merge, stage_shares
from engine.telemetry.why import speed_reason


def as_markdown(log: Log) -> Iterator[str]:
    """Lines of a page. Figures are rounded as the window rounds them; the log has them in full."""
    done = [g for g in log.generations if g.stats is not None]
    yield "# Session record"
    yield ""
    count = len(log.generations)
    yield f"{count} {'reply' if count == 1 else 'replies'}, {len(done)} finished."
    for header, generations in _by_conditions(log.generations):
        yield from ("", "## Conditions", "")
        yield from table(("what", "value"), list(_conditions(header)))
        finished = [(g, g.stats) for g in generations if g.stats is not None]
        if finished:
            yield from ("", "### Replies", "")
            yield from table(_REPLY_HEADER, [_reply(g, stats) for g, stats in finished])
            yield from ("", "### Milliseconds per round (share)", "")
            stages = [(g.id, *_stages(stats)) for g, stats in finished]
            together = merge(stats for _, stats in finished)
            names = [stage.removesuffix("_ms") for stage in STAGES]
            yield from table(("reply", "rounds", *names, "parked rounds"), [*stages, ("all", *_stages(together))])
            yield from ("", "### Why this speed", "")
            classic = _number(_dict(header, "model").get("classic_ms"))
            yield from (f"- {g.id}: {speed_reason(stats, classic)}" for g, stats in finished)
        if told := [f"- {g.id}: {' '.join(n.text.split())}" for g in generations for n in g.notices]:
            yield from ("", "### Decisions", "", *told)
    yield from ("", "## What can be checked", "")
    yield from (f"- {g.id}: {_checked(g)}" for g in log.generations)
    if log.problems:
        yield from ("", "## What is wrong with the log", "", *(f"- {problem}" for problem in log.problems))


_REPLY_HEADER = (
    "reply", "time", "load", "ended by", "tokens", "prompt", "restored", "prefill s", "tok/s", "acceptance",
    "mean acceptance length", "per position",
)  # fmt: skip


def _reply(generation: Generation, stats: ReplyStats) -> tuple[str, ...]:
    header, footer = generation.header or {}, generation.footer or {}
    load = _dict(header, "conditions").get("load")
    drafted = stats.drafted > 0
    return (
        generation.id,
        str(header.get("time", "")),
        " ".join(map(str, load)) if isinstance(load, list) else "",
        str(footer.get("reason", "")),
        str(stats.tokens),
        str(stats.prompt_tokens),
        str(stats.restored_tokens),
        f"{stats.prefill_seconds:.2f}",
        f"{stats.tokens_per_second:.1f}" if stats.tokens > 1 else "",
        f"{stats.acceptance_rate * 100:.0f} %" if drafted else "",
        f"{stats.mean_acceptance_length:.2f}" if drafted else "",
        " / ".join(f"{rate * 100:.0f} %" for rate in stats.per_position),
    )


def _stages(stats: ReplyStats) -> list[str]:
    shares = stage_shares(stats)
    cells = [f"{ms:.1f} ({share * 100:.0f} %)" for ms, share in (shares[stage] for stage in STAGES)]
    return [str(stats.rounds), *cells, str(stats.parked_rounds)]


def _by_conditions(generations: Sequence[Generation]) -> list[tuple[dict[str, Any], list[Generation]]]:
    """Replies that were written under the same conditions, in order. Time, load and seed may differ."""
    groups: dict[str, tuple[dict[str, Any], list[Generation]]] = {}
    for generation in generations:
        header = generation.header or {}
        key = repr(list(_conditions(header)))
        groups.setdefault(key, (header, []))[1].append(generation)
    return list(groups.values())


def _conditions(header: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if not header:
        yield ("unknown", "the header is missing")
        return
    here, model, asked = (_dict(header, name) for name in ("environment", "model", "request"))
    verdict, drafter = _dict(model, "verdict"), _dict(model, "drafter")
    versions = ("pacenote", "mlx", "mlx_lm", "pyside6", "python")
    yield ("versions", ", ".join(f"{name} {here.get(name) or 'absent'}" for name in versions))
    yield ("system", f"{here.get('os')}, {here.get('machine')}, {here.get('cpus')} cores, {here.get('memory')} bytes")
    yield ("device", f"{model.get('device')}; {model.get('policy')}")
    yield ("power", str(_dict(header, "conditions").get("power", "unknown")))
    yield ("model", f"{model.get('name')} {model.get('revision') or ''}, {model.get('quantization')}")
    yield ("weights", str(model.get("weights_hash")))
    form = f"{drafter.get('representation')}, {drafter.get('bytes')} bytes, by {drafter.get('decided_by')}"
    yield ("drafter", form if drafter else f"none: {model.get('drafter_reason')}")
    yield ("exactness", f"{verdict.get('state')}: {verdict.get('reason')} {verdict.get('inputs')} inputs")
    widths = f"at most {asked.get('block_size')}, of {verdict.get('widths')}"
    yield ("speculation, widths", f"{asked.get('speculation')}, {widths}")
    yield ("sampler", ", ".join(f"{name} {value}" for name, value in _dict(asked, "sampler").items()))
    yield ("timing", str(header.get("timing")))


def _checked(generation: Generation) -> str:
    if reason := unjudged(generation):
        return f"{reason}, so nothing of it can be checked."
    found = [*check(generation), *contradictions(generation)]
    figures = "DOES NOT AGREE: " + "; ".join(found) if found else "the footer follows from the rows"
    texts = "tokens can be replayed" if tokens_of(generation) is not None else "tokens cannot: texts were not logged"
    return f"{figures}; {texts}."


def _dict(row: dict[str, Any], name: str) -> dict[str, Any]:
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float:
    """0 for what is none: the log may come from anywhere."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e12:
        return 0.0
    return float(value)
