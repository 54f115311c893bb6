"""Session logs for others: the lines themselves, tables for a spreadsheet, a record to read."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from engine.errors import KnownError
from engine.events import ReplyStats
from engine.telemetry.markdown import as_markdown
from engine.telemetry.reader import Generation, Log, lines_of, read_files, rounds_of
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


class ExportKind(StrEnum):
    """What an export is. The value names it on a command line."""

    LINES = "jsonl"
    REPLIES = "csv"
    ROUNDS = "rounds-csv"
    RECORD = "md"

    @property
    def suffix(self) -> str:
        return ".csv" if self is ExportKind.ROUNDS else f".{self.value}"


@dataclass(frozen=True, slots=True)
class Exported:
    """replies: how many are in the export. problems: what was found wrong with the logs; see `Log`."""

    replies: int
    problems: tuple[str, ...]


def export_logs(
    files: Sequence[Path],
    kind: ExportKind,
    target: Path,
    chosen: Callable[[Generation], bool] = lambda _: True,
    *,
    last: int | None = None,
) -> Exported:
    """Write an export of some log files to `target`, in one piece: it is there whole or not at all.

    Args:
        files: in the order in which they were written.
        chosen: which replies. last: of these only so many, the newest.

    Raises:
        KnownError: the logs cannot be read, hold no such reply, or the disk refuses.
    """
    try:
        log = read_files(files)
    except OSError as error:
        raise KnownError(
            "A session log cannot be read.", kept="Nothing was changed.", todo="Name another file.", detail=str(error)
        ) from error
    wanted = tuple(g for g in log.generations if chosen(g))
    log = dataclasses.replace(log, generations=wanted if last is None else wanted[-last:])
    if not log.generations:
        raise KnownError(
            "There is no such reply in the session log.", kept="Nothing was written.", todo="Choose other replies."
        )
    if any(_same(target, file) for file in files):
        raise KnownError(
            "The export would replace the session log itself.", kept="Nothing was written.", todo="Choose another name."
        )
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_text(_text(files, log, kind), encoding="utf-8", errors="backslashreplace", newline="")
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise KnownError(
            "The session log could not be exported.",
            kept="The log itself is unchanged.",
            todo="Choose another folder, or free some space.",
            detail=f"{target}: {error}",
        ) from error
    return Exported(len(log.generations), log.problems)


def _text(files: Iterable[Path], log: Log, kind: ExportKind) -> str:
    out = io.StringIO()
    if kind is ExportKind.LINES:
        copy_lines(files, {g.id for g in log.generations}, out)
    elif kind is ExportKind.RECORD:
        out.writelines(f"{line}\n" for line in as_markdown(log))
    else:
        (replies_csv if kind is ExportKind.REPLIES else rounds_csv)(log.generations, out)
    return out.getvalue()


def _same(target: Path, file: Path) -> bool:
    return target.exists() and file.exists() and target.samefile(file)


def copy_lines(files: Iterable[Path], ids: set[str], out: TextIO) -> None:
    """The lines of these replies as they are. What belongs to no reply is left out."""
    for file in files:
        with file.open("rb") as data:
            for line in lines_of(data):
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                id_ = row.get("gen") if isinstance(row, dict) else None
                if isinstance(id_, str) and id_ in ids:
                    out.write(line.decode("utf-8", errors="backslashreplace").rstrip("\r\n") + "\n")


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
        said = (header.get("time", ""), name, generation.footer.get("reason", ""))
        writer.writerow([generation.id, *map(_no_formula, said), *figures])
        count += 1
    return count


def _no_formula(value: object) -> str:
    """A spreadsheet must not compute what a stranger's log says."""
    text = str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
