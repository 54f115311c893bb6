"""What every command that loads a pair shares: its options, and progress on stderr."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from engine import LoadOptions, LoadProgress, load
from engine.cli.interrupt import interruptible

if TYPE_CHECKING:  # MLX comes with it, and takes seconds
    from engine import Engine
    from engine.loading import Pair


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="PLACE", help="folder or cached repo id; the bundled demo pair when absent")
    group.add_argument("--head", "--drafter", metavar="PLACE", help="folder or repo of the MTP head, if apart")
    group.add_argument("--load-anyway", action="store_true", help="load what needs more memory than is free, too")


def load_options(args: argparse.Namespace) -> LoadOptions:
    """Of a command that has at least the model arguments."""
    options = LoadOptions(target=args.model, head=args.head, load_anyway=getattr(args, "load_anyway", False))
    if getattr(args, "dense_drafter", False):
        options = replace(options, quantize_drafter=False)
    # A wider block than is probed by default must be probed, or it may not be used.
    return replace(options, max_block=max(options.max_block, getattr(args, "block", 0)))


def load_engine(options: LoadOptions) -> Engine:
    """Load with progress on stderr; Ctrl-C cancels.

    Raises:
        KnownError, LoadCancelled: as `engine.load`.
    """
    with interruptible() as cancel, ProgressLine(sys.stderr) as line:
        return load(options, line.show, cancel)


def load_bare_pair(options: LoadOptions) -> Pair:
    """The same, for commands that look inside: target and drafter without the engine around them."""
    from engine.loading import load_pair

    with interruptible() as cancel, ProgressLine(sys.stderr) as line:
        return load_pair(options, line.show, cancel)


class ProgressLine:
    """One line that is rewritten on a terminal; elsewhere one line per stage."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._stage = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def show(self, step: LoadProgress) -> None:
        if self._live:
            share = f" {100 * step.done // step.total} %" if step.total else ""
            self._out.write(f"\r\x1b[K{step.stage}{share}")
        elif step.stage != self._stage:
            self._out.write(f"{step.stage}\n")
        self._stage = step.stage
        self._out.flush()
