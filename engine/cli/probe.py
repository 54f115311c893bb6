"""`pacenote probe`: whether a verify block gives the bytes of single steps here, and on how many inputs."""

from __future__ import annotations

import argparse

from engine import ExactnessState
from engine.cli.loading import add_model_arguments, load_engine, load_options

NAME = "probe"
HELP = "check on this device that a verify block gives the bytes of single steps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Returns 0 when a kernel is engaged, 1 when the engine declined or there is no drafter."""
    engine = load_engine(load_options(args))
    verdict, info = engine.info.verdict, engine.info
    engine.close()
    print(f"model    {info.name} ({info.weights_hash})")
    print(f"device   {info.device}; {info.policy}")
    print(f"verdict  {verdict.state.value}{f', kernel {verdict.kernel}' if verdict.kernel else ''}")
    print(f"reason   {verdict.reason}")
    if verdict.cached:
        print(f"took     nothing: kept from an earlier run, which took {verdict.seconds:.1f} s")
    elif verdict.inputs:
        print(f"took     {verdict.seconds:.1f} s of {info.load_seconds:.1f} s loading")
    return 0 if verdict.state in (ExactnessState.EXACT_STOCK, ExactnessState.EXACT_FORCED) else 1
