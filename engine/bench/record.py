"""The record of a benchmark: docs/benchmark_results/<feature>-<hardware>-<date>.md, its raw samples as JSON Lines."""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from engine.bench import page
from engine.bench.arms import Task
from engine.bench.check import source_digest
from engine.bench.compare import VERSION
from engine.bench.environment import Machine
from engine.bench.experiment import Outcome
from engine.errors import KnownError
from engine.events import DrafterInfo, EngineInfo
from engine.telemetry.schema import without_home


@dataclass(frozen=True)
class Record:
    """Everything a record says. before / after: the machine at the start and the end.

    stamp: why the numbers deserve less trust, "" when nothing is known against them.
    summary: a table over all outcomes. ends: token ids that end a reply.
    """

    feature: str
    title: str
    info: EngineInfo
    drafters: Mapping[str, DrafterInfo]
    before: Machine
    after: Machine
    stamp: str
    task: Task
    pairs: int
    day: date
    command: Sequence[str]
    not_measured: Sequence[str]
    outcomes: Sequence[Outcome]
    summary: Sequence[str] = ()
    ends: frozenset[int] = frozenset()


def write(record: Record, folder: Path) -> tuple[Path, Path]:
    """Write the Markdown record and the raw file beside it; an earlier record of the same day is kept.

    Raises:
        KnownError: the disk refuses.
    """
    name = f"{record.feature}-{hardware(record.info.device, record.before.environment.cpus)}-{record.day.isoformat()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = unused(folder, name)
        raw = path.with_suffix(".jsonl")
        with raw.open("w", encoding="utf-8") as out:
            for row in as_rows(record):
                out.write(json.dumps(row, separators=(",", ":")) + "\n")
        path.write_text("\n".join(page.as_markdown(record, raw.name)) + "\n", encoding="utf-8")
    except OSError as error:
        raise KnownError(
            f"The record cannot be written to {folder}: {error.strerror}.",
            kept="The figures were printed above.",
            todo="Name another folder with --out.",
        ) from error
    return path, raw


def unused(folder: Path, name: str) -> Path:
    """A Markdown file of this name that is not there yet, numbered where one is."""
    number = 1
    while (path := folder / f"{name}{f'-{number}' if number > 1 else ''}.md").exists():
        number += 1
    return path


def require_folder(folder: Path) -> None:
    """Make the folder of a record, and try whether it can be written to.

    Raises:
        KnownError: it cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise KnownError(
            f"No record can be written to {folder}: {error.strerror}.",
            kept="Nothing was measured.",
            todo="Name another folder with --out.",
        ) from error


def hardware(device: str, cores: int) -> str:
    """A device's name for a file name, e.g. "apple-m3-max-16-cores"."""
    plain = re.sub(r"\((r|tm|c)\)|\b(cpu|processor)\b|@.*?hz", " ", device.lower())
    return re.sub(r"[^a-z0-9]+", "-", f"{plain} {cores} cores").strip("-")


def as_rows(record: Record) -> Iterator[dict[str, Any]]:
    """Raw samples and what is needed to compute every figure of the record again: one line each, `kind` first."""
    yield {
        "kind": "header",
        "record": "pacenote bench",
        "version": VERSION,
        "feature": record.feature,
        "day": record.day.isoformat(),
        "command": list(record.command),
        "source": source_digest()[:16],
        "model": without_home(dataclasses.asdict(record.info)),
        "drafters": {name: without_home(dataclasses.asdict(info)) for name, info in record.drafters.items()},
        "machine": {"before": dataclasses.asdict(record.before), "after": dataclasses.asdict(record.after)},
        "stamp": record.stamp,
        "task": dataclasses.asdict(record.task),
        "pairs": record.pairs,
    }
    count = 0
    for place, outcome in enumerate(record.outcomes):
        yield {"kind": "experiment", "experiment": place, **_experiment(outcome)}
        for kind, trials in (("sample", outcome.trials), ("stage sample", outcome.stages)):
            for trial in trials.kept:
                count += 1
                yield {"kind": kind, "experiment": place, **dataclasses.asdict(trial)}
    yield {"kind": "end", "samples": count}


def _experiment(outcome: Outcome) -> dict[str, Any]:
    experiment = outcome.experiment
    return {
        "title": experiment.title,
        "work": experiment.work,
        "prompts": [{"name": p.name, "text": p.text, "tokens": p.tokens} for p in experiment.prompts],
        "arms": [{"name": arm.name, "moves": sorted(arm.moves)} for arm in experiment.arms],
        "tokens": experiment.tokens,
        "equal_to": experiment.equal_to,
        "warm_up": outcome.trials.warm_up,
        "cooldown": outcome.trials.cooldown,
        "cut": outcome.trials.cut,
        "control": dataclasses.asdict(outcome.control),
        "band": outcome.band,
        "judged": [dataclasses.asdict(judged) for judged in outcome.judged],
        "equality": [dataclasses.asdict(equality) for equality in outcome.equality],
        "problems": list(outcome.problems),
        "told": outcome.told,
    }
