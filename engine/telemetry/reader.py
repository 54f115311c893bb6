"""Reads session logs as far as they are sound, and says what was not.

A log travels through crashes, rotation, editors and mail. Every line is judged on its own; lines find their
generation by id and their place by number, so torn, foreign, repeated and reordered lines cost only
themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from engine.events import Notice, PrefillProgress, ReplyStats, Round
from engine.telemetry import schema
from engine.telemetry.log import rotated

MAX_PROBLEMS = 200
"""Of one file. A file that is no log at all must not fill the memory with complaints."""
MAX_LINE = 64 * 2**20
"""Bytes. Far above any header with texts; a file without line ends must not fill the memory either."""

_ID = re.compile("[0-9a-f]{12}")
_NO_JSON = "no JSON; it is left out"
_TORN = "the last line is torn; it is left out"


@dataclass(slots=True)
class Generation:
    """The log of one reply. header, prefill and footer are None where their lines are missing or unsound."""

    id: str
    header: schema.Row | None = None
    prefill: tuple[PrefillProgress, bool] | None = None
    rounds: list[Round] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    footer: schema.Row | None = None
    stats: ReplyStats | None = None  # the footer's
    complete: bool = False  # every line from the header to the footer is here, once, and the footer is the last

    @property
    def newer(self) -> int:
        """The version of the format where it is newer than this program's, else 0."""
        version = (self.header or {}).get("version")
        return version if isinstance(version, int) and version > schema.VERSION else 0


@dataclass(frozen=True, slots=True)
class Log:
    """generations: in the order in which they first appear. problems: one sentence each, with its place."""

    generations: tuple[Generation, ...]
    problems: tuple[str, ...]


def read(path: Path, *, older: bool = False) -> Log:
    """Reads a log file. older: with the rotated files beside it, oldest first. Raises OSError."""
    return read_files(with_older(path) if older else [path])


def read_files(files: Iterable[Path]) -> Log:
    """Reads several files as one log. Raises OSError."""
    collector = _Collector()
    for file in files:
        with file.open("rb") as data:
            collector.read(file.name, lines_of(data))
    return collector.log()


def with_older(path: Path) -> list[Path]:
    """The rotated files beside a log, oldest first, then the log itself where it exists."""
    files = [path] if path.exists() else []
    n = 1
    while (file := rotated(path, n)).exists():
        files.insert(0, file)
        n += 1
    return files


def lines_of(data: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. One that is longer than MAX_LINE comes as its beginning, which is no line of a log."""
    while line := data.readline(MAX_LINE):
        yield line
        while len(line) == MAX_LINE and not line.endswith(b"\n"):
            line = data.readline(MAX_LINE)


def read_lines(lines: Iterable[bytes], name: str = "log") -> Log:
    """The same for lines from anywhere."""
    collector = _Collector()
    collector.read(name, lines)
    return collector.log()


class _Collector:
    def __init__(self) -> None:
        self._rows: dict[str, dict[int, schema.Row]] = {}
        self._headers: dict[str, schema.Row] = {}
        self._problems: list[str] = []
        self._unsound: set[str] = set()
        self._untold = 0

    def read(self, name: str, lines: Iterable[bytes]) -> None:
        said = len(self._problems)
        last: dict[str, int] = {}
        line = b"\n"
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            problem = self._line(line, last)
            if problem == _NO_JSON and not line.endswith(b"\n"):
                long = len(line) >= MAX_LINE
                problem = f"longer than {MAX_LINE} bytes; it is left out" if long else _TORN
            if problem and len(self._problems) - said < MAX_PROBLEMS:
                self._problems.append(f"{name}, line {number}: {problem}")
            elif problem:
                self._untold += 1

    def _line(self, line: bytes, last: dict[str, int]) -> str:
        """Takes one line in. Returns what is wrong with it, "" for nothing."""
        try:
            row = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return _NO_JSON
        if not isinstance(row, dict) or row.get("kind") not in schema.KINDS:
            return "not a line of a session log; it is left out"
        id_, n = row.get("gen"), row.get("n")
        if not isinstance(id_, str) or not _ID.fullmatch(id_) or not isinstance(n, int) or isinstance(n, bool):
            return "it belongs to no generation; it is left out"
        if row["kind"] == "header":
            return self._header(id_, row, late=last.get(id_, 0) > 0)
        if n < 1:
            return "its number is not above 0; it is left out"
        known = self._rows.setdefault(id_, {})
        if n in known:
            same = known[n] == row
            return "a duplicate; it is left out" if same else f"another line {n} of this reply; the first one counts"
        known[n] = row
        early = n < last.get(id_, 0)
        last[id_] = max(n, last.get(id_, 0))
        return "out of order; it is put in its place" if early else ""

    def _header(self, id_: str, row: schema.Row, *, late: bool) -> str:
        version = row.get("version")
        if row.get("log") != "pacenote" or row["n"] != 0:
            return "not the header of a session log; it is left out"
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            return f"a header in version {version!r:.20} of the format, which there is not; it is left out"
        self._rows.setdefault(id_, {})
        first = self._headers.setdefault(id_, row)
        if first is not row:
            if any(first.get(name) != row.get(name) for name in (first.keys() | row.keys()) - {"part"}):
                self._unsound.add(id_)
                return "another header of this reply; the first one counts"
            return "a duplicate; it is left out" if first.get("part") == row.get("part") else ""
        if version > schema.VERSION:
            return f"written in version {version} of the format, which is newer: its figures cannot be judged"
        return "out of order; it is put in its place" if late and not row.get("part") else ""

    def log(self) -> Log:
        generations = tuple(self._generation(id_, rows) for id_, rows in self._rows.items())
        if self._untold:
            self._problems.append(f"{self._untold} more lines have problems")
        return Log(generations, tuple(self._problems))

    def _generation(self, id_: str, rows: dict[int, schema.Row]) -> Generation:
        generation = Generation(id_, header=self._headers.get(id_))
        problems = []
        for n in sorted(rows):
            try:
                _take(generation, rows[n])
            except ValueError as error:
                problems.append(f"line {n}: {error}; it is left out")
        if missing := _missing(rows):
            problems.append("1 line is missing" if missing == 1 else f"{missing} lines are missing")
        if generation.header is None:
            problems.append("its header is missing")
        elif missing and generation.header.get("part"):
            problems.append("it begins in an older file (--older reads it, too)")
        if generation.footer is None:
            problems.append("it has no footer, so it was cut off or is still being written")
        elif generation.footer["n"] != max(rows):
            problems.append("there are lines behind its footer")
        self._problems += [f"reply {id_}: {problem}" for problem in problems]
        generation.complete = not problems and id_ not in self._unsound
        return generation


def _take(generation: Generation, row: schema.Row) -> None:
    match row["kind"]:
        case "prefill":
            if generation.prefill is not None:
                raise ValueError("a second prefill")
            generation.prefill = schema.prefill_from(row)
        case "round":
            generation.rounds.append(schema.round_from(row))
        case "notice":
            generation.notices.append(schema.notice_from(row))
        case "footer":
            if generation.footer is not None:
                raise ValueError("a second footer")
            generation.stats = schema.stats_from(row)
            generation.footer = row


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _missing(rows: dict[int, schema.Row]) -> int:
    """Lines are numbered 0 (the header), 1, 2, ...; the header is kept elsewhere."""
    return max(rows, default=0) - len(rows)


def rounds_of(generations: Sequence[Generation]) -> Iterable[tuple[str, Round]]:
    """(generation id, round) of all of them, in order."""
    for generation in generations:
        for round_ in generation.rounds:
            yield generation.id, round_
