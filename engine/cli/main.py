"""`pacenote`: without a command it opens the window, with one it works in the terminal.

Exit codes: 0 done; 1 a known error, or a check that found a difference; 2 wrong usage, or no window can be
opened; 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from urllib.parse import urlsplit

from engine.cli import (
    bench,
    chat,
    doctor,
    download,
    export_log,
    extract_drafter,
    models,
    probe,
    quantize_drafter,
    verify_log,
    window,
)
from engine.errors import KnownError, LoadCancelled
from engine.hub.errors import no_endpoint

INTERRUPTED = 130
"""What a shell reports for a program that SIGINT ended: 128 + 2."""


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(
        prog="pacenote",
        description="Chat with Qwen3.5-family models, sped up by their MTP head without changing one byte of the text.",
        epilog="Without a command: opens the window. --self-test alone: the same as doctor --self-test.",
    )
    root.add_argument("--version", action="version", version=f"pacenote {metadata.version('pacenote')}")
    root.set_defaults(run=window.run)
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    for module in (
        chat, models, download, bench, probe, quantize_drafter, extract_drafter, verify_log, export_log, doctor,
    ):  # fmt: skip
        command = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return root


def _check_endpoint() -> None:
    """`huggingface_hub`, which mlx-lm imports too, takes it apart when it is imported. Raises KnownError."""
    endpoint = os.environ.get("HF_ENDPOINT", "")
    try:
        urlsplit(endpoint)
    except ValueError as error:
        raise no_endpoint(endpoint) from error


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code; a bug propagates with its traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--self-test"]:  # a bundled application has no commands in its menu, but takes an option
        words.insert(0, doctor.NAME)
    args = parser().parse_args(words)
    args.argv = words  # a benchmark record names the command that repeats it
    try:
        _check_endpoint()
        code: int = args.run(args)
    except KnownError as error:
        for sentence in (error.what, error.kept, error.todo):
            if sentence:
                print(sentence, file=sys.stderr)
        if error.detail:
            print(f"  ({error.detail})", file=sys.stderr)
        return 1
    except (LoadCancelled, KeyboardInterrupt):
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe went away (`pacenote chat ... | head`). Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print("The output cannot be written: the disk is full.", file=sys.stderr)
        return 1
    return code
