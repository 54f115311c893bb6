"""Session logs for spreadsheets."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from typing import TextIO

from engine.events import ReplyStats
from engine.telemetry.reader import Generation, rounds_of
from engine.telemetry.schema import ROUND_FIELDS

ROUND_COLUMNS = ("gen", *ROUND_FIELDS, "parked")
_DERIVED = ("acceptance_rate", "mean_acceptance_length", "tokens_per_second")
REPLY_COLUMNS = (
    "gen",
    "time",
    "model",
    "reason",
    *(f.name for f in dataclasses.fields(ReplyStats) if f.name not in ("accepted_at", "drafted_at")),
    *_DERIVED,
)


def rounds_csv(generations: Sequence[Generation], out: TextIO) -> int:
    """One row per round; returns how many. Numbers in full precision. Open files with newline=""."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(ROUND_COLUMNS)
    count = 0
    for id_, round_ in rounds_of(generations):
        writer.writerow([id_, *(getattr(round_, name) for name in ROUND_FIELDS), int(round_.parked)])
        count += 1
    return count


def replies_csv(generations: Sequence[Generation], out: TextIO) -> int:
    """One row per finished reply, from the footers; returns how many."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(REPLY_COLUMNS)
    count = 0
    for generation in generations:
        if generation.stats is None or generation.footer is None:
            continue
        header = generation.header or {}
        model = header.get("model")
        name = model.get("name", "") if isinstance(model, dict) else ""
        figures = [getattr(generation.stats, column) for column in REPLY_COLUMNS[4:]]
        writer.writerow([generation.id, header.get("time", ""), name, generation.footer.get("reason", ""), *figures])
        count += 1
    return count
