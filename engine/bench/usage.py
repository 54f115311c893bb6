"""Which options of `pacenote bench` go together. One that would do nothing is refused: it would look as if it had."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from engine.bench import FORCED_QMV
from engine.request import MAX_BLOCK

MOST_COOLDOWN = 3600.0
_SPEED = ("preset", "context", "pairs", "cooldown", "temperature", "out", "anyway")
_CHECK = ("progress", "random_widths", "samplings")
_TEXTS = ("prompts", "set", "tokens")
_OF_ANY = ("model", "head", "load_anyway", "seed", "check", "block")


def require_sense(args: argparse.Namespace, default: Callable[[str], Any]) -> None:
    """End the program in words (`usage_error`) when options contradict each other or cannot be.

    default: the value of an option that was not given.
    """
    if args.compare:
        _unused(
            args, default, (*_SPEED, *_CHECK, *_TEXTS, *_OF_ANY), "--compare reads two records and measures nothing"
        )
    elif args.check:
        _unused(args, default, _SPEED, "--check measures no speed; it has ways to sample of its own")
    else:
        _unused(args, default, _CHECK, "without --check")
        if args.preset == FORCED_QMV:
            kernels = (*_TEXTS, "context", "cooldown", "temperature", "seed", "block")
            _unused(args, default, kernels, f"--preset {FORCED_QMV} times forwards and writes no text")
    lengths, contexts = args.tokens or [2], args.context or [1]
    for holds, text in (
        (min(lengths) >= 2, "--tokens must be at least 2"),
        (min(contexts) >= 1, "--context must be at least 1"),
        (2 <= args.block <= MAX_BLOCK, f"--block must be between 2 and {MAX_BLOCK}"),
        (args.pairs >= 1, "--pairs must be at least 1"),
        (_within(args.cooldown, 0, MOST_COOLDOWN), f"--cooldown must be between 0 and {MOST_COOLDOWN:.0f} seconds"),
        (0 <= args.seed < 2**32, "--seed must be between 0 and 2**32 - 1"),
        (not args.check or len(lengths) == 1, "--check takes one number of --tokens"),
        (len(set(lengths)) == len(lengths), "--tokens names a length twice"),
        (len(set(contexts)) == len(contexts), "--context names a length twice"),
        (not (args.prompts and args.set), "name --prompts or --set, not both"),
    ):
        if not holds:
            args.usage_error(text)


def _unused(args: argparse.Namespace, default: Callable[[str], Any], names: tuple[str, ...], why: str) -> None:
    given = [name for name in names if getattr(args, name, None) != default(name)]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        args.usage_error(f"{options} would do nothing: {why}")


def _within(value: float, low: float, high: float) -> bool:
    return math.isfinite(value) and low <= value <= high
