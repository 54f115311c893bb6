"""`pacenote doctor --self-test`: run the checks, print the report, write it as JSON where that was asked for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from time import perf_counter

from engine.cli.loading import load_options
from engine.errors import KnownError
from engine.selftest import child
from engine.selftest.check import Check, Result, run
from engine.selftest.launch import own_command
from engine.selftest.report import Report, closing, heading, lines_of
from engine.selftest.suite import suite

CHILD = "--self-test-child"
"""Option of the process that runs the checks: file descriptor, then the keys of checks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("self-test")
    group.add_argument("--self-test", action="store_true", help="check this installation: one report, one exit code")
    group.add_argument("--out", type=Path, metavar="FILE", help="write the report of the self-test there as JSON, too")
    group.add_argument(CHILD, nargs="+", dest="child", help=argparse.SUPPRESS)


def self_test(args: argparse.Namespace) -> int:
    """Returns 0 when no check failed, 1 otherwise."""
    checks = suite(load_options(args))
    if args.child:
        pipe, *keys = args.child
        child.serve([check for check in checks if check.key in keys], int(pipe))
        return 0
    started, clock = datetime.now().astimezone(), perf_counter()
    keys = [check.key for check in checks]
    if not args.json:
        print(heading(started), flush=True)
    results, apart = [], Apart(checks, _model_arguments(args))
    for result in apart.results():
        results.append(result)
        if not args.json:
            print("\n".join(lines_of(result, keys)), flush=True)
    report = Report(tuple(results), started, perf_counter() - clock, apart.why_not)
    told = json.dumps(report.to_json(), indent=1, ensure_ascii=False, default=str)
    print(told if args.json else "\n".join(closing(report)), flush=True)
    if args.out is not None:
        _write(args.out, told)
    return 0 if report.passed else 1


class Apart:
    """Runs checks in a process of their own; those for which none can be started, in this one. why_not: the reason."""

    def __init__(self, checks: Sequence[Check], arguments: Sequence[str]) -> None:
        self.why_not = ""
        self._checks = checks
        self._arguments = arguments

    def results(self) -> Iterator[Result]:
        left = list(self._checks)
        try:
            for result in child.run_apart(self._checks, self._command):
                left.pop(0)
                yield result
        except child.NoChild as reason:
            self.why_not = f"{reason}."
            yield from map(run, left)

    def _command(self, pipe: int, keys: Sequence[str]) -> list[str]:
        return own_command(["doctor", *self._arguments, CHILD, str(pipe), *keys])


def _model_arguments(args: argparse.Namespace) -> list[str]:
    """The options of `add_model_arguments` as they were given."""
    named = [
        word for option in ("model", "head") if (value := getattr(args, option)) for word in (f"--{option}", value)
    ]
    return [*named, "--load-anyway"] if args.load_anyway else named


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise KnownError(
            f"The report cannot be written to {file}: {error.strerror}.",
            kept="It is printed above.",
            todo="Name a file in a folder that you may write to.",
        ) from error
    print(f"Written to {file}", file=sys.stderr)
