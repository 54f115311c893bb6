"""Reads session logs as far as they are sound, and says what was not.

A log travels through crashes, rotation, editors and mail. Every line is judged on its own; lines find their
generation by id and their place by number, so torn, foreign, repeated and reordered lines cost only
themselves.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.events import Notice, PrefillProgress, ReplyStats, Round
from engine.telemetry import schema, stats
from engine.telemetry.log import rotated

MAX_PROBLEMS = 200
"""Of one file. A file that is no log at all must not fill the memory with complaints."""


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
    complete: bool = False  # every line from the header to the footer is here


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
        with file.open("rb") as lines:
            collector.read(file.name, lines)
    return collector.log()


def with_older(path: Path) -> list[Path]:
    """The rotated files beside a log, oldest first, then the log itself where it exists."""
    files = [path] if path.exists() else []
    n = 1
    while (file := rotated(path, n)).exists():
        files.insert(0, file)
        n += 1
    return files


def read_lines(lines: Iterable[bytes], name: str = "log") -> Log:
    """The same for lines from anywhere."""
    collector = _Collector()
    collector.read(name, lines)
    return collector.log()


def recompute(generation: Generation) -> ReplyStats:
    """The figures from the rows alone. Equal to the footer's, digit for digit, when nothing is missing."""
    builder = stats.StatsBuilder()
    if generation.prefill is not None:
        last, token = generation.prefill
        builder.prefill(last, token=token)
    for round_ in generation.rounds:
        builder.observe(round_)
    return builder.build()


def check(generation: Generation) -> list[str]:
    """Where the rows contradict themselves or the footer. Empty when all that can be checked agrees."""
    found = [f"round {r.index}: {text}" for r in generation.rounds for text in stats.round_problems(r)]
    if not generation.complete:
        return [*found, "lines are missing, so the footer cannot be checked"]
    computed = recompute(generation)
    if not stats.identity_holds(computed):
        found.append("tokens is not 1 + accepted + rounds - cut")
    for name in (n for n in (f.name for f in dataclasses.fields(ReplyStats)) if n not in unsaid(generation)):
        ours, theirs = getattr(computed, name), getattr(generation.stats, name)
        if ours != theirs:
            found.append(f"{name}: the footer says {theirs}, the rows say {ours}")
    return found


def unsaid(generation: Generation) -> list[str]:
    """Figures that a footer of an earlier release does not hold, so that they cannot be compared."""
    said = (generation.footer or {}).get("stats", {})
    return [name for name in schema.LATER_STATS if name not in said]


def order_problems(generation: Generation) -> list[str]:
    """Where the rounds of a complete reply do not follow each other, or are not the tokens of its footer."""
    found, rounds = [], generation.rounds
    for place, round_ in enumerate(rounds):
        if round_.index != place:
            found.append(f"round {round_.index} stands where round {place} belongs")
    for one, next_ in itertools.pairwise(rounds):
        if next_.position != one.position + one.emitted:
            found.append(f"round {next_.index} does not begin where round {one.index} ended")
    tokens = tokens_of(generation)
    written = [token for round_ in rounds for token in round_.tokens]
    if tokens is not None and list(tokens[len(tokens) - len(written) :]) != written:
        found.append("the tokens of the rounds are not the last ones of the footer")
    return found


def tokens_of(generation: Generation) -> tuple[int, ...] | None:
    """All token ids of the reply, None where they were not logged."""
    tokens = (generation.footer or {}).get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(t, int) and not isinstance(t, bool) for t in tokens):
        return None
    return tuple(tokens)


class _Collector:
    def __init__(self) -> None:
        self._rows: dict[str, dict[int, schema.Row]] = {}
        self._headers: dict[str, schema.Row] = {}
        self._problems: list[str] = []
        self._untold = 0

    def read(self, name: str, lines: Iterable[bytes]) -> None:
        said = len(self._problems)
        last: dict[str, int] = {}
        line = b"\n"
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            problem = self._line(line, last)
            if problem and not line.endswith(b"\n"):
                problem = "the last line is torn; it is left out"
            if problem and len(self._problems) - said < MAX_PROBLEMS:
                self._problems.append(f"{name}, line {number}: {problem}")
            elif problem:
                self._untold += 1

    def _line(self, line: bytes, last: dict[str, int]) -> str:
        """Takes one line in. Returns what is wrong with it, "" for nothing."""
        try:
            row = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return "no JSON; it is left out"
        if not isinstance(row, dict) or row.get("kind") not in schema.KINDS:
            return "not a line of a session log; it is left out"
        id_, n = row.get("gen"), row.get("n")
        if not isinstance(id_, str) or not isinstance(n, int) or isinstance(n, bool):
            return "it belongs to no generation; it is left out"
        if row["kind"] == "header":
            return self._header(id_, row)
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

    def _header(self, id_: str, row: schema.Row) -> str:
        version = row.get("version")
        if row.get("log") != "pacenote" or not isinstance(version, int):
            return "not the header of a session log; it is left out"
        self._rows.setdefault(id_, {})
        first = self._headers.setdefault(id_, row)
        if version > schema.VERSION:
            return f"written by a newer version of the format ({version}); unknown fields are ignored"
        return "a duplicate; it is left out" if first is not row and first.get("part") == row.get("part") else ""

    def log(self) -> Log:
        generations = tuple(self._generation(id_, rows) for id_, rows in self._rows.items())
        if self._untold:
            self._problems.append(f"{self._untold} more lines have problems")
        return Log(generations, tuple(self._problems))

    def _generation(self, id_: str, rows: dict[int, schema.Row]) -> Generation:
        generation = Generation(id_, header=self._headers.get(id_))
        sound = generation.header is not None
        for n in sorted(rows):
            try:
                _take(generation, rows[n])
            except ValueError as error:
                sound = False
                self._problems.append(f"reply {id_}, line {n}: {error}; it is left out")
        if missing := _missing(rows):
            sound = False
            self._problems.append(f"reply {id_}: {missing} lines are missing")
        if generation.header is None:
            self._problems.append(f"reply {id_}: its header is missing")
        if generation.footer is None:
            self._problems.append(f"reply {id_}: it has no footer, so it was cut off or is still being written")
        generation.complete = sound and generation.footer is not None
        return generation


def _take(generation: Generation, row: schema.Row) -> None:
    match row["kind"]:
        case "prefill":
            generation.prefill = schema.prefill_from(row)
        case "round":
            generation.rounds.append(schema.round_from(row))
        case "notice":
            generation.notices.append(schema.notice_from(row))
        case "footer":
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
