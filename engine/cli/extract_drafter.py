"""`pacenote extract-drafter`: only the MTP head of a model on the Hugging Face Hub."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine import LoadCancelled, LoadProgress
from engine.cli.interrupt import interruptible
from engine.cli.loading import ProgressLine

NAME = "extract-drafter"
HELP = "fetch only the MTP head of a model on the Hugging Face Hub, a few percent of its bytes"

MIB = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repo", metavar="REPO", help="owner/name of the original model; most conversions have no head")
    parser.add_argument("--to", type=Path, metavar="DIR", help="where it goes (default: NAME-mtp in this folder)")
    parser.add_argument("--discard", action="store_true", help="delete what is half there of the head, fetch nothing")
    parser.add_argument("--revision", metavar="REV", help="branch, tag or commit (default: the main branch)")


def run(args: argparse.Namespace) -> int:
    # Imports MLX and the hub's client; `pacenote --help` and the window do not need them.
    from engine.hub.cache import disk_errors
    from engine.hub.connection import Connection
    from engine.hub.errors import size
    from engine.hub.extract import extract_drafter
    from engine.hub.headpart import discard_part

    folder = args.to or Path(f"{args.repo.rsplit('/', 1)[-1]}-mtp")
    if args.discard:
        with disk_errors(folder.absolute().parent):
            freed = discard_part(folder)
        print(f"{size(freed)} are free again.")
        return 0
    try:
        with interruptible() as stop, ProgressLine(sys.stderr) as line:
            done = extract_drafter(
                Connection(stop=stop),
                args.repo,
                folder,
                args.revision,
                lambda now, total: line.show(LoadProgress("Fetching the head", now, total)),
            )
    except LoadCancelled:
        print("Paused. What arrived is kept; the same command goes on.", file=sys.stderr)
        raise
    print(f"repo      {done.repo}")
    print(f"revision  {done.revision}")
    for shard in done.shards:
        print(f"shard     {shard.name}, {shard.size} bytes, {shard.etag}")
    for name, digest in done.tensors.items():
        print(f"sha256    {digest}  {name}")
    print(f"fetched   {done.fetched / MIB:.1f} MiB for a head of {done.head_bytes / MIB:.1f} MiB")
    print(f"written   {done.folder}, sha256 of the weights {done.sha256}")
    print(f"use it    pacenote chat --model MODEL --drafter {done.folder}")
    return 0
