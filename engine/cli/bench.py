"""`pacenote bench`: its options. What it does with them: `engine.bench.cli`."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.bench import BENCH_TOKENS, CHECK_TOKENS, CONTEXTS, PRESETS, SETS
from engine.cli.loading import add_model_arguments
from engine.request import MAX_BLOCK, LoadOptions

NAME = "bench"
HELP = "measure speed against classic decode or mlx_lm, and check that the tokens are equal"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    what = parser.add_argument_group("what")
    what.add_argument("--preset", choices=PRESETS, default="mtp", help="default: mtp")
    what.add_argument("--check", action="store_true", help="the resumable equality run instead of a speed measurement")
    what.add_argument("--prompts", type=Path, metavar="FILE", help="JSON list of prompts instead of the bundled ones")
    what.add_argument("--set", choices=SETS, nargs="+", help="bundled prompts of these kinds instead, three each")
    what.add_argument(
        "--tokens",
        type=int,
        nargs="+",
        metavar="N",
        help=f"per reply, each length for itself (default {BENCH_TOKENS}, {CHECK_TOKENS} with --check)",
    )
    what.add_argument(
        "--compare", type=Path, nargs=2, metavar=("A", "B"), help="two records instead: is B slower than A?"
    )
    what.add_argument(
        "--block",
        type=int,
        default=LoadOptions().max_block,
        metavar="N",
        help=f"most rows of a verify block, 2 to {MAX_BLOCK} (default %(default)s)",
    )
    what.add_argument("--seed", type=int, default=0, metavar="N", help="of sampling and of the order of runs")
    speed = parser.add_argument_group("speed")
    speed.add_argument(
        "--context", type=int, nargs="*", metavar="N", help=f"three prompts at these lengths (default {CONTEXTS})"
    )
    speed.add_argument("--pairs", type=int, default=30, metavar="N", help="interleaved blocks (default 30)")
    speed.add_argument(
        "--cooldown", type=float, default=0.0, metavar="S", help="seconds of rest before every run (default none)"
    )
    speed.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 is greedy (default)")
    speed.add_argument(
        "--out", type=Path, default=Path("docs/benchmark_results"), metavar="DIR", help="where the record goes"
    )
    speed.add_argument(
        "--anyway", action="store_true", help="measure on a busy machine, keep figures that vary; the record says so"
    )
    checking = parser.add_argument_group("with --check")
    checking.add_argument("--progress", type=Path, metavar="FILE", help="finished cells; an interrupted run continues")
    checking.add_argument(
        "--random-widths", action=argparse.BooleanOptionalAction, default=True, help="also switch widths every round"
    )
    checking.add_argument(
        "--samplings", action="store_true", help="temperatures 0, 0.7, 1.0, cuts, penalties, a bias; another seed each"
    )
    parser.set_defaults(usage_error=parser.error, default_of=parser.get_default)


def run(args: argparse.Namespace) -> int:
    from engine.bench import cli  # imports MLX; `pacenote --help` and the window do not need it

    return cli.run(args)
