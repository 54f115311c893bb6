"""`pacenote bench --compare A B`: whether B is slower than A, by more than the spread of both explains.

Two runs share no blocks, so what is compared first is each arm's ratio to the reference arm of its own run: heat,
power and other programs hit both alike. Plain speed is compared too where the device is the same, and counts less:
an A/A control sees the noise inside a run, not the drift between two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Any

from engine.bench.statistics import LEAST_PAIRS, QUIET_BAND, Ratio, change
from engine.errors import KnownError
from engine.tables import table

Row = dict[str, Any]
VERSION = 2
"""Of the raw file; see `record`. 1 was one JSON object."""


class Change(StrEnum):
    SLOWER = "slower"
    FASTER = "faster"
    SAME = "no difference"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Run:
    """One experiment of a record. seconds, tokens: by arm, in block order; the arms share their blocks."""

    title: str
    tokens: int
    reference: str
    band: float
    prompts: tuple[tuple[str, tuple[int, ...]], ...]
    seconds: dict[str, list[float]]
    ids: dict[str, dict[tuple[int, str], tuple[int, ...]]]

    def relative(self, arm: str) -> list[float]:
        """Speed of an arm relative to the reference arm, block by block."""
        return [theirs / ours for ours, theirs in zip(self.seconds[arm], self.seconds[self.reference], strict=True)]


@dataclass(frozen=True)
class RawRecord:
    path: Path
    header: Row
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Line:
    """One arm in both records. relative: to the reference arm; None for that arm itself. plain: tokens per second.

    verdict: from `relative`, for the reference arm from `plain`.
    """

    run: str
    arm: str
    relative: Ratio | None
    plain: Ratio
    verdict: Change


@dataclass(frozen=True)
class Comparison:
    """unlike: why figures may differ for another reason than the code. missing: what only one record has.

    other_tokens: arms whose token ids differ on one device.
    """

    lines: tuple[Line, ...]
    unlike: tuple[str, ...]
    missing: tuple[str, ...]
    other_tokens: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether an arm is slower, or writes other tokens."""
        return bool(self.other_tokens) or any(line.verdict is Change.SLOWER for line in self.lines)


def read_raw(path: Path) -> RawRecord:
    """Read the raw file of a record, or of the record beside it when the Markdown page is named.

    Raises:
        KnownError: it is none, or it is not whole.
    """
    raw = path.with_suffix(".jsonl") if path.suffix == ".md" else path
    try:
        if not raw.exists() and raw.with_suffix(".json").exists():
            raise ValueError("it is of an earlier version, of which no blocks can be compared")
        rows = [json.loads(line) for line in raw.read_text(encoding="utf-8").splitlines() if line.strip()]
        header, end = rows[0], rows[-1]
        if header.get("version") != VERSION:
            raise ValueError(f"it is in version {header.get('version')!r:.20}; this program reads {VERSION}")
        if not isinstance(header["task"], dict) or not all(
            isinstance(header["model"][name], str) for name in ("device", "weights_hash")
        ):
            raise ValueError("its header does not say what was measured")
        samples = [row for row in rows if row["kind"] in ("sample", "stage sample")]
        if header["record"] != "pacenote bench" or end["kind"] != "end" or end["samples"] != len(samples):
            raise ValueError("it is no raw file of a benchmark, or lines of it are missing")
        runs = [_run(row, samples) for row in rows if row["kind"] == "experiment"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise KnownError(
            f"{raw} cannot be read as a benchmark's raw file.",
            todo="Name the .jsonl file of a record, or its .md page beside it.",
            detail=f"no {error}" if isinstance(error, KeyError) else str(error),
        ) from error
    return RawRecord(raw, header, tuple(runs))


def _run(row: Row, samples: Sequence[Row]) -> Run:
    mine = sorted(
        (s for s in samples if s["kind"] == "sample" and s["experiment"] == row["experiment"]), key=lambda s: s["block"]
    )
    seconds: dict[str, list[float]] = {arm["name"]: [] for arm in row["arms"]}
    ids: dict[str, dict[tuple[int, str], tuple[int, ...]]] = {name: {} for name in seconds}
    for sample in mine:
        took = float(sample["sample"]["seconds"])
        if not 0 < took < inf:
            raise ValueError(f"a run of {took} seconds")
        seconds[sample["arm"]].append(took)
        ids[sample["arm"]][sample["block"], sample["prompt"]] = tuple(sample["sample"]["tokens"])
    prompts = tuple((p["name"], tuple(p["tokens"])) for p in row["prompts"])
    return Run(row["title"], row["tokens"], row["equal_to"], float(row["band"]), prompts, seconds, ids)


def compare(before: RawRecord, after: RawRecord) -> Comparison:
    """Every arm that both records have, in the experiments that both have.

    Raises:
        KnownError: they have none in common, or are of different work: weights, prompts, sampler or seed.
    """
    then = {(run.title, run.tokens): run for run in before.runs}
    now = {(run.title, run.tokens): run for run in after.runs}
    both = [(then[key], now[key]) for key in then if key in now]
    if other := list(_other_work(before.header, after.header)) or [
        f"the prompts of {one.title}" for one, two in both if one.prompts != two.prompts
    ]:
        raise KnownError(
            f"The two records are of different work: {'; '.join(other)}.",
            kept="A difference in speed would say nothing about the code.",
            todo="Repeat the command of one record, and compare that.",
        )
    same_device = before.header["model"]["device"] == after.header["model"]["device"]
    lines = [line for pair in both for line in _lines(*pair, same_device=same_device)]
    if not lines:
        raise KnownError(
            "The two records have no arm in common.", todo="Compare two runs of one preset, with the same --tokens."
        )
    missing = [f"{title}, only in {r.path.name}" for title, r in _only(before, then, after, now)]
    for one, two in both:
        missing += [f"{one.title}: {arm}" for arm in sorted(one.seconds.keys() ^ two.seconds.keys())]
    unlike = list(_unlike(before.header, after.header))
    others = [name for one, two in both for name in _other_tokens(one, two)] if same_device else []
    return Comparison(tuple(lines), tuple(unlike), tuple(missing), tuple(others))


def _other_work(before: Row, after: Row) -> Iterator[str]:
    if before["model"]["weights_hash"] != after["model"]["weights_hash"]:
        yield "the weights"
    # The experiments say their lengths themselves.
    if {**before["task"], "tokens": 0} != {**after["task"], "tokens": 0}:
        yield "sampler or seed"


def _only(
    before: RawRecord, then: dict[tuple[str, int], Run], after: RawRecord, now: dict[tuple[str, int], Run]
) -> Iterator[tuple[str, RawRecord]]:
    yield from ((f"{title}, {tokens} tokens", before) for title, tokens in then.keys() - now.keys())
    yield from ((f"{title}, {tokens} tokens", after) for title, tokens in now.keys() - then.keys())


def _lines(before: Run, after: Run, *, same_device: bool) -> Iterator[Line]:
    band = before.band + after.band  # either side may be off by its own
    for arm in (name for name in before.seconds if after.seconds.get(name) and before.seconds[name]):
        plain = change([1 / s for s in before.seconds[arm]], [1 / s for s in after.seconds[arm]])
        if arm == before.reference or after.reference != before.reference:
            yield Line(before.title, arm, None, plain, judge_change(plain, band) if same_device else Change.UNDECIDED)
        else:
            relative = change(before.relative(arm), after.relative(arm))
            yield Line(before.title, arm, relative, plain, judge_change(relative, band))


def judge_change(ratio: Ratio, band: float) -> Change:
    """Slower or faster: all of the interval lies beyond what the A/A bands of both runs can fake.

    Of fewer values than LEAST_PAIRS nothing can be said. No difference: the interval lies within QUIET_BAND of 1, and
    the bands are no wider. Undecided otherwise.
    """
    if ratio.n < LEAST_PAIRS:
        return Change.UNDECIDED
    if ratio.high < 1.0 - band:
        return Change.SLOWER
    if ratio.low > 1.0 + band:
        return Change.FASTER
    narrow = ratio.low >= 1.0 - QUIET_BAND and ratio.high <= 1.0 + QUIET_BAND
    return Change.SAME if narrow and band <= QUIET_BAND else Change.UNDECIDED


def _unlike(before: Row, after: Row) -> Iterator[str]:
    def of(row: Row, *names: str) -> Any:
        for name in names:
            row = row.get(name, {}) if isinstance(row, dict) else {}
        return row

    here = ("machine", "before", "environment")
    for what, names in (
        ("feature", ("feature",)),
        ("device", ("model", "device")),
        ("policy", ("model", "policy")),
        ("verify kernel", ("model", "verdict", "kernel")),
        ("drafter", ("model", "drafter", "representation")),
        ("mlx", (*here, "mlx")),
        ("mlx-lm", (*here, "mlx_lm")),
        ("cores", (*here, "cpus")),
        ("power", ("machine", "before", "conditions", "power")),
        ("stamp", ("stamp",)),
    ):
        one, other = of(before, *names), of(after, *names)
        if one != other:
            yield f"{what}: {one or 'none'} / {other or 'none'}"


def _other_tokens(before: Run, after: Run) -> Iterator[str]:
    for arm in before.ids.keys() & after.ids.keys():
        shared = before.ids[arm].keys() & after.ids[arm].keys()
        if any(before.ids[arm][key] != after.ids[arm][key] for key in shared):
            yield f"{before.title}: {arm}"


def as_lines(before: RawRecord, after: RawRecord, found: Comparison) -> Iterator[str]:
    """The comparison as Markdown."""
    for name, record in (("A", before), ("B", after)):
        source = record.header.get("source", "unknown")
        yield f"{name}: {record.path.name}, {record.header.get('day')}, engine source {source}."
    yield ""
    header = ("experiment", "arm", "B / A, relative to the reference arm", "B / A, tokens per second", "verdict on B")
    cells = ((_ratio(e.relative) if e.relative else "is it", _ratio(e.plain)) for e in found.lines)
    yield from table(header, [(e.run, e.arm, *both, e.verdict) for e, both in zip(found.lines, cells, strict=True)])
    for title, items in (
        ("Not alike, so it may be that instead of the code", found.unlike),
        ("Not in both", found.missing),
        ("OTHER TOKEN IDS for the same weights, prompts and sampler", found.other_tokens),
    ):
        if items:
            yield from ("", f"{title}:", *(f"- {item}" for item in items))
    slower = sum(line.verdict is Change.SLOWER for line in found.lines)
    open_ = sum(line.verdict is Change.UNDECIDED for line in found.lines)
    yield ""
    yield f"{slower} of {len(found.lines)} arms are slower; {open_} are undecided: their spread hides a difference."


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
