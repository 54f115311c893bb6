"""The report: aligned text for people, JSON for programs (docs/self_test.md). Home folders are written `~`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from engine.selftest.check import Outcome, Result
from engine.telemetry.environment import conditions, environment
from engine.telemetry.schema import without_home

VERSION = 1
"""Of the JSON. Rises when a field changes its meaning or goes away."""
WIDTH = 120
_WORDS = {Outcome.OK: "ok", Outcome.SKIPPED: "skipped", Outcome.FAILED: "FAILED"}


@dataclass(frozen=True, slots=True)
class Report:
    """apart: why checks had to run in the process of the report, "" when none had to."""

    results: tuple[Result, ...]
    started: datetime
    seconds: float
    apart: str = ""

    @property
    def passed(self) -> bool:
        return all(result.outcome is not Outcome.FAILED for result in self.results)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Report:
        """What `to_json` has written.

        Raises:
            ValueError: it is something else.
        """
        try:
            started, results = datetime.fromisoformat(told["time"]), map(Result.from_json, told["checks"])
            return cls(tuple(results), started, float(told["seconds"]), str(told["in_one_process"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no report of a self-test: {error!r}") from error

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = without_home(
            {
                "kind": "pacenote self-test",
                "version": VERSION,
                "time": self.started.isoformat(timespec="seconds"),
                "seconds": round(self.seconds, 3),
                "passed": self.passed,
                "in_one_process": self.apart,
                "environment": asdict(environment()),
                "conditions": asdict(conditions()),
                "checks": [asdict(result) for result in self.results],
            }
        )
        return told


def text_of(report: Report) -> str:
    """The whole report for people."""
    keys = [result.key for result in report.results]
    checks = [line for result in report.results for line in lines_of(result, keys)]
    return "\n".join([heading(report.started), *checks, *closing(report)])


def heading(started: datetime) -> str:
    return f"Pacenote self-test, {started:%Y-%m-%d %H:%M %Z}".rstrip()


def lines_of(result: Result, keys: Iterable[str]) -> list[str]:
    """One check in a report. keys: of all checks, for the width of the column."""
    column = max(map(len, keys))
    head = f"{_WORDS[result.outcome]:<8}{result.key:<{column}}  "
    margin = " " * len(head)
    told = _wrapped(head, margin, result.text)
    for line in result.lines:
        # A table or a line of a traceback stays as it is.
        kept = line.startswith(("|", " ")) or len(line) <= WIDTH - len(margin)
        told += [margin + line] if kept else _wrapped(margin, margin + "  ", line)
    if result.todo:
        told += _wrapped(f"{margin}What to do: ", margin, result.todo)
    return [str(without_home(line)) for line in told]


def closing(report: Report) -> list[str]:
    counts = Counter(result.outcome for result in report.results)
    failed = [result.key for result in report.results if result.outcome is Outcome.FAILED]
    told = [f"{counts[o]} {_WORDS[o]}" for o in (Outcome.OK, Outcome.SKIPPED)]
    told.append(": ".join(part for part in (f"{len(failed)} FAILED", ", ".join(failed)) if part))
    lines = [f"{len(report.results)} checks in {report.seconds:.0f} s: {', '.join(told)}"]
    return lines if not report.apart else [*lines, f"Not every check ran in a process of its own: {report.apart}"]


def _wrapped(first: str, rest: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
