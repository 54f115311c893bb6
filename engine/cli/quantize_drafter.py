"""`pacenote quantize-drafter`: a head quantized once, offline, instead of at every load."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "quantize-drafter"
HELP = "write an MTP head quantized in the scheme of the model it is for"

MIB = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SRC", help="the head, or a model that holds one: folder or cached repo id")
    parser.add_argument("--target", required=True, metavar="T", help="the quantized model: folder or cached repo id")
    parser.add_argument("folder", type=Path, metavar="DST", help="where it goes; must not exist yet")


def run(args: argparse.Namespace) -> int:
    # Imports MLX; `pacenote --help` and the window do not need it.
    from engine.checkpoint.convert import quantize_drafter
    from engine.checkpoint.folder import open_folder
    from engine.checkpoint.locate import locate

    source, target = open_folder(*locate(args.source)), open_folder(*locate(args.target))
    done = quantize_drafter(source, target, args.folder)
    print(f"scheme   {done.plan.default}, from {target.path}")
    for projection, scheme in done.plan.named.items():
        print(f"         {projection}: {scheme or 'dense'}, as in the model")
    for projection, reason in done.skipped:
        print(f"dense    {projection}: {reason}")
    ratio = done.bytes_after / done.bytes_before
    print(f"bytes    {done.bytes_before / MIB:.1f} MiB -> {done.bytes_after / MIB:.1f} MiB ({ratio:.3f})")
    print(f"written  {done.folder}")
    return 0
