"""`pacenote export-log`: session logs as JSON Lines, as tables for a spreadsheet, or as a record to read."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine import ExportKind, KnownError, LoggedReply, export_logs, log_files

NAME = "export-log"
HELP = "export session logs, or chosen replies of them: JSON Lines, CSV, a Markdown record"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="session logs")
    parser.add_argument(
        "--as",
        dest="kind",
        type=ExportKind,
        choices=list(ExportKind),
        default=ExportKind.RECORD,
        help="jsonl: the lines; csv: a row per reply; rounds-csv: a row per round; md: a record (default)",
    )
    parser.add_argument("--reply", action="append", metavar="ID", help="only this one, by the beginning of its id")
    parser.add_argument("--last", type=int, metavar="N", help="only the last N replies")
    parser.add_argument("--older", action="store_true", help="with the rotated files beside each log")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to; what is there is replaced")
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    if args.last is not None and args.last < 1:
        args.usage_error("--last must be at least 1")
    files = [part for file in args.files for part in (log_files(file) if args.older else [file])]
    if not files:
        raise KnownError("There is no session log.", todo="Name a file that `--log` of a chat has written.")
    exported = export_logs(files, args.kind, args.out, lambda reply: _by_id(args.reply, reply), last=args.last)
    for problem in exported.problems:
        print(problem, file=sys.stderr)
    print(f"Replies written to {args.out}: {exported.replies}.")
    return 0


def _by_id(wanted: list[str] | None, reply: LoggedReply) -> bool:
    return wanted is None or any(reply.id.startswith(beginning) for beginning in wanted)
