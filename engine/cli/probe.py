"""`pacenote probe`: whether a verify block gives the bytes of single steps here, and on how many inputs."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from engine import ExactnessState
from engine.cli.loading import add_model_arguments, load_bare_pair, load_options

if TYPE_CHECKING:  # MLX comes with it, and takes seconds
    from engine.loading import Pair

NAME = "probe"
HELP = "check on this device that a verify block gives the bytes of single steps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "--again", action="store_true", help="measure anew; default: what an earlier load found is taken"
    )
    parser.add_argument("--explain", action="store_true", help="name the operations whose bytes depend on the width")


def run(args: argparse.Namespace) -> int:
    """Returns 0 when an exact kernel is engaged, 1 when the engine declined or there is no drafter."""
    options = replace(load_options(args), probe_again=args.again)
    pair = load_bare_pair(options)
    info, verdict = pair.info, pair.info.verdict
    print(f"model    {info.name} ({info.weights_hash})")
    print(f"device   {info.device}; {info.policy}")
    print(f"verdict  {verdict.state.value}{f', kernel {verdict.kernel}' if verdict.kernel else ''}")
    print(f"reason   {verdict.reason}")
    if verdict.cached:
        print(f"took     nothing: kept from an earlier run, which took {verdict.seconds:.1f} s; --again measures anew")
    elif verdict.inputs:
        print(f"took     {verdict.seconds:.1f} s of {info.load_seconds:.1f} s loading")
    if args.explain:
        _explain(pair, options.max_block)
    return 0 if verdict.state in (ExactnessState.EXACT_STOCK, ExactnessState.EXACT_FORCED) else 1


def _explain(pair: Pair, widest: int) -> None:
    """Operation by operation, with the engaged kernel; stock ones where the engine declined."""
    from engine.exactness.explain import explain_first

    for width in range(2, widest + 1):
        where, differences = explain_first(pair.target, width)
        if not differences:
            print(f"width {width}  every operation gives the bytes of single rows on these inputs")
        for number, difference in enumerate(differences):
            print(f"width {width}  {f'first, {where}: ' if not number else ''}{difference}")
