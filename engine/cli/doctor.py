"""`pacenote doctor`: what is installed here, what the device is, and whether a pair loads.

With `--self-test` it checks all of the installation, with `--check-updates` it asks for the newest release.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from engine import EngineInfo, KnownError, conditions, environment
from engine.cli import selftest, updates
from engine.cli.figures import drafter_line
from engine.cli.loading import add_model_arguments, load_bare_pair, load_options

if TYPE_CHECKING:  # MLX comes with it, and takes seconds
    from engine.loading import Pair

NAME = "doctor"
HELP = "versions, device, policy, exactness verdict; loads the demo pair or --model; checks the whole installation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("--json", action="store_true", help="for a bug report or a program")
    parser.add_argument("--gpu", metavar="ARCH", help="show the routing of another Apple GPU, e.g. applegpu_g16s")
    parser.add_argument("--check-updates", action="store_true", help="ask over the network for the newest release")
    selftest.add_arguments(parser)
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Returns 0 when the pair loads, 1 when it does not; the rest is printed either way. See the others for theirs."""
    if args.self_test and args.check_updates:
        args.usage_error("--self-test and --check-updates are two commands")
    if args.self_test and args.gpu:
        args.usage_error("--gpu is not part of the self-test")
    if args.out is not None and not args.self_test:
        args.usage_error("--out needs --self-test")
    if args.self_test or args.child:
        return selftest.self_test(args)
    if args.check_updates:
        return updates.check()
    pair: Pair | None = None
    problem = ""
    try:
        pair = load_bare_pair(load_options(args))
    except KnownError as error:
        problem = f"{error} {error.detail}".strip()
    info = pair.info if pair else None
    if args.json:
        print(json.dumps(_report(info, problem), indent=1))
    else:
        for name, text in _lines(info, problem):
            print(f"{name:<11}{text}")
        if pair is not None:
            from engine.selftest.kernels import dispatch

            print("\n".join(dispatch(args.gpu or pair.target.backend.architecture, pair.target)))
    return 0 if pair is not None else 1


def _report(info: EngineInfo | None, problem: str) -> dict[str, Any]:
    return {
        "environment": dataclasses.asdict(environment()),
        "conditions": dataclasses.asdict(conditions()),
        "model": dataclasses.asdict(info) if info else None,
        "problem": problem,
    }


def _lines(info: EngineInfo | None, problem: str) -> list[tuple[str, str]]:
    here, now = environment(), conditions()
    lines = [
        ("pacenote", here.pacenote),
        ("versions", f"mlx {here.mlx}, mlx-lm {here.mlx_lm}, PySide6 {here.pyside6 or 'absent'}, Python {here.python}"),
        ("system", f"{here.os}, {here.machine}, {here.cpus} cores, {here.memory / 2**30:.1f} GiB"),
        ("load", f"{', '.join(map(str, now.load)) or 'unknown'}; power: {now.power}"),
    ]
    if info is None:
        return [*lines, ("model", f"cannot be loaded. {problem}")]
    return [
        *lines,
        ("device", info.device),
        ("policy", info.policy),
        ("model", f"{info.name}: {info.parameters / 1e6:.1f} M parameters, {info.quantization}, {info.weights_hash}"),
        ("drafter", drafter_line(info) + (f"; from {info.drafter.source}" if info.drafter else "")),
        ("exactness", f"{info.verdict.state.value}. {info.verdict.reason}"),
        ("load time", f"{info.load_seconds:.1f} s, {_probe_time(info)}"),
    ]


def _probe_time(info: EngineInfo) -> str:
    if info.verdict.cached:
        return "the exactness verdict is kept from an earlier run"
    return f"{info.verdict.seconds:.1f} s of it the exactness probe"
