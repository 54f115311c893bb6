"""`pacenote download`: a repo into the shared Hugging Face cache, resumable to the byte."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from engine.checkpoint.folder import open_folder, read_json
from engine.checkpoint.kind import MODEL_TYPES, is_head_type, what_it_is
from engine.cli.interrupt import interruptible
from engine.errors import CheckpointError, LoadCancelled
from engine.hub import errors
from engine.hub.connection import Connection
from engine.hub.download import MAIN, discard, download
from engine.hub.rate import coarse_duration
from engine.hub.types import DownloadProgress, Step

NAME = "download"
HELP = "fetch a model into the Hugging Face cache; goes on where an earlier download stopped"

_LINE_EVERY = 10  # percent, where the output is no terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repo", metavar="REPO", help="owner/name on the Hugging Face Hub")
    parser.add_argument("--revision", metavar="REV", help="branch, tag or commit (default: the main branch)")
    parser.add_argument("--discard", action="store_true", help="delete what is half there of the repo, fetch nothing")


def run(args: argparse.Namespace) -> int:
    if args.discard:
        print(f"{errors.size(discard(args.repo))} are free again. Files that were whole are still in the cache.")
        return 0
    with interruptible() as stop, _Line(sys.stderr) as line:
        try:
            done = download(Connection(stop=stop), args.repo, args.revision, progress=line.show)
        except LoadCancelled:
            line.end("Paused. What arrived is kept; the same command goes on.")
            raise
    print(f"repo      {done.repo}")
    print(f"revision  {done.revision}")
    print(f"licence   {done.licence or 'not stated'}")
    print(f"size      {errors.size(done.size)} in {done.files} files, {errors.size(done.fetched)} fetched just now")
    if done.unverified:
        print(f"verified  by size only, the server lists no hashes: {', '.join(done.unverified)}")
    print(f"folder    {done.folder}")
    # A repo's name stands for its main branch.
    print(_use(done.folder, done.repo if args.revision in (None, MAIN) else str(done.folder)))
    return 0


def _use(folder: Path, named: str) -> str:
    """What can be done with it. A repo that is nothing to this program may still be what somebody wanted."""
    try:
        kind = str(read_json(folder / "config.json").get("model_type", ""))
        if is_head_type(kind) or kind in MODEL_TYPES:
            open_folder(folder)  # headers and index: whole and as on the hub, it may still be no model
    except CheckpointError as error:
        return f"note      Pacenote cannot use it: {error.what}"
    if is_head_type(kind):
        return f"use it    pacenote chat --model MODEL --drafter {named}"
    if kind in MODEL_TYPES:
        return f"use it    pacenote chat --model {named}"
    return f"note      it is {what_it_is(kind)}; Pacenote runs the Qwen3.5 family only"


class _Line:
    """One line that is rewritten on a terminal; elsewhere one now and then."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._said = ("", -1)

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *of: object) -> None:
        if self._live:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def end(self, text: str) -> None:
        self._out.write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")

    def show(self, step: DownloadProgress) -> None:
        text = words(step)
        if self._live:
            self._out.write(f"\r\x1b[K{text}")
        else:
            key = (step.trouble or step.step, 100 * step.done // max(1, step.total) // _LINE_EVERY)
            if key == self._said:
                return
            self._said = key
            self._out.write(f"{text}\n")
        self._out.flush()


def words(step: DownloadProgress) -> str:
    """In one line."""
    if step.step is Step.LOOKING or not step.total:
        return ", ".join(part for part in (step.step.capitalize(), step.trouble) if part)
    parts = [f"{100 * step.done // step.total} %", f"{errors.size(step.done)} of {errors.size(step.total)}"]
    if step.speed is not None:
        parts.append(f"{errors.size(step.speed)}/s")
    if step.left is not None and step.done < step.total:
        parts.append(f"about {coarse_duration(step.left)} left")
    if step.step is Step.WAITING:
        parts.append(step.step)
    if step.trouble:
        parts.append(step.trouble)
    return ", ".join(parts)
