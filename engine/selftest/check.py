"""What a check is, what it may find, and how one is run so that nothing escapes from it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from typing import Any

from engine.errors import KnownError

REPORT = "Report this as a bug, with the whole report."


class Outcome(StrEnum):
    OK = "ok"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check that passed has seen.

    text: one sentence. lines: what does not fit in it, such as a table. facts: the same for programs, JSON values.
    """

    text: str
    lines: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class Skip(Exception):
    """Raised by a check that does not apply here. The reason is a sentence."""


class Failed(KnownError):
    """Raised by a check that found something wrong, with what it has seen. Any other KnownError will do as well."""

    def __init__(
        self, what: str, *, todo: str, lines: tuple[str, ...] = (), facts: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(what, todo=todo)
        self.lines = lines
        self.facts = facts or {}


@dataclass(frozen=True, slots=True)
class Check:
    """key: its name in the report. limit: seconds after which it counts as hung."""

    key: str
    run: Callable[[], Finding]
    limit: float = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """Of one check. todo: what the user can do, "" unless it failed. seconds: what it took."""

    key: str
    outcome: Outcome
    text: str
    todo: str = ""
    lines: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Result:
        return cls(**{**told, "outcome": Outcome(told["outcome"]), "lines": tuple(told["lines"])})


def run(check: Check) -> Result:
    """Run one check. Whatever it raises is its own result, Ctrl-C excepted."""
    started = perf_counter()

    def result(outcome: Outcome, text: str, **more: Any) -> Result:
        return Result(check.key, outcome, text, seconds=perf_counter() - started, **more)

    try:
        found = check.run()
    except Skip as reason:
        return result(Outcome.SKIPPED, str(reason))
    except KnownError as error:
        lines = getattr(error, "lines", ()) or tuple(error.detail.splitlines())
        text = f"{error.what} {error.kept}".strip()
        return result(Outcome.FAILED, text, todo=error.todo, lines=lines, facts=getattr(error, "facts", {}))
    except Exception as error:  # noqa: BLE001 - this is the place where a check's own mistakes end
        lines = tuple("".join(traceback.format_exception(error)).splitlines()[-12:])
        return result(Outcome.FAILED, f"{type(error).__name__}: {error}", todo=REPORT, lines=lines)
    return result(Outcome.OK, found.text, lines=found.lines, facts=found.facts)
