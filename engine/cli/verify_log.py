"""`pacenote verify-log`: whether a session log is sound, its figures follow from its rows, and its text is repeatable.

The text is repeated by classic decode with the same weights, from the prompt that the log holds, and compared
token id by token id. That needs a log with texts (`--log-text`); the figures are checked in any.
A log may come from anybody: whatever stands in it ends at most the check of one reply, in words.
"""

from __future__ import annotations

import argparse
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import EndReason, KnownError, Receipt
from engine.cli.interrupt import interruptible
from engine.cli.loading import add_model_arguments, load_engine, load_options
from engine.telemetry import check, reader, schema

if TYPE_CHECKING:  # MLX comes with it, and takes seconds
    from engine import Engine
    from engine.telemetry.reader import Generation

NAME = "verify-log"
HELP = "check a session log: every figure from its rows, every token by classic decode with the same weights"
_INTERRUPTED = 130
_NEVER = (
    "Never checked, because nobody can repeat it: times; notices; what the header says of machine, versions, "
    "conditions, drafter and verdict. Equal tokens are those of the log's sampler and seed; where the model is sure, "
    "others give the same."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="a session log")
    parser.add_argument("--older", action="store_true", help="with the rotated files beside it")
    parser.add_argument("--no-replay", action="store_true", help="the figures only; no model is loaded")


def run(args: argparse.Namespace) -> int:
    """Returns 0 when nothing that could be checked differs and something could, 1 otherwise."""
    try:
        log = reader.read(args.file, older=args.older)
    except OSError as error:
        raise KnownError(
            f"{args.file} cannot be read: {error.strerror}.", todo="Name a file that `--log` of a chat has written."
        ) from error
    for problem in log.problems:
        print(problem)
    told: Counter[str] = Counter()
    for generation in log.generations:
        _print(told, generation, "figures", *_figures(generation))
    todo = []
    for generation in log.generations:
        if reason := _cannot_replay(args, generation):
            _print(told, generation, "tokens", "not checked", reason)
        else:
            todo.append(generation)
    stopped = bool(todo) and _replay(args, todo, told)
    if log.generations:
        print(_NEVER)
    counts = ", ".join(f"{what}: {n}" for what, n in sorted(told.items()))
    print(
        f"Replies: {len(log.generations)}; {counts}."
        if counts
        else f"There is no reply of a session log in {args.file}."
    )
    if stopped:
        return _INTERRUPTED
    differing = sum(n for outcome, n in told.items() if outcome.endswith(" differ"))
    return 1 if differing or not told["figures equal"] else 0


def _print(told: Counter[str], generation: Generation, what: str, outcome: str, detail: str) -> None:
    told[f"{what} {outcome}"] += 1
    said = f" ({detail})" if detail else ""
    print(f"{generation.id}  {what} {outcome}{_printable(said)}")


def _printable(text: str) -> str:
    """Without what a terminal would obey, and not endless: the words may be a stranger's."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:4000])


def _figures(generation: Generation) -> tuple[str, str]:
    """(outcome, detail) of computing the footer again from the rows."""
    if reason := check.unjudged(generation):
        return "not checked", reason
    if found := [*check.check(generation), *check.contradictions(generation)]:
        return "differ", "; ".join(found)
    missing = check.unsaid(generation)
    return "equal", f"without {', '.join(missing)}, which this footer does not hold" if missing else ""


# -- tokens -----------------------------------------------------------------------------------------------


def _cannot_replay(args: argparse.Namespace, generation: Generation) -> str:
    """Why the tokens cannot be checked, "" when they can as far as the log tells."""
    if args.no_replay:
        return "--no-replay"
    if generation.header is None or generation.footer is None:
        return "its header or footer is missing"
    if generation.newer:
        return check.unjudged(generation)
    tokens = check.tokens_of(generation)
    if tokens is None:
        return "its texts were not logged"
    if not tokens:
        return "it has none: it was stopped while the prompt was read"
    try:
        schema.request_from(generation.header)
    except ValueError as error:
        return str(error)
    return ""


def _replay(args: argparse.Namespace, todo: list[Generation], told: Counter[str]) -> bool:
    """Returns whether it was interrupted."""
    engine = load_engine(load_options(args))
    try:
        info = engine.info
        print(f"replayed with {info.name} ({info.weights_hash}) on {info.device}; {info.policy}")
        for place, generation in enumerate(todo):
            assert generation.header is not None
            model = generation.header.get("model")
            logged = model if isinstance(model, dict) else {}
            if logged.get("weights_hash") != info.weights_hash:
                reason = f"written by {logged.get('name')} ({logged.get('weights_hash')}); name it with --model"
                _print(told, generation, "tokens", "not checked", f"other weights: {reason}")
                continue
            try:
                with interruptible() as stop:
                    receipt = _receipt(engine, generation, stop)
                words = _words(engine, generation)
            except (KnownError, ValueError) as error:  # of the request in the log
                _print(told, generation, "tokens", "not checked", str(error))
                continue
            if receipt is None or not receipt.complete:
                print(f"Interrupted: the tokens of {len(todo) - place} replies were not compared to their end.")
                return True
            outcome = "equal" if receipt.identical else "differ"
            _print(told, generation, "tokens", outcome, str(receipt) + _elsewhere(engine, logged, receipt))
            _print(told, generation, "words", "differ" if words else "equal", words)
    finally:
        engine.close()
    return False


def _receipt(engine: Engine, generation: Generation, stop: threading.Event) -> Receipt | None:
    header, tokens = generation.header, check.tokens_of(generation)
    assert header is not None
    assert tokens is not None
    receipt = None
    for event in engine.verify(schema.request_from(header), tokens, stop):
        if isinstance(event, Receipt):
            receipt = event
    return receipt


def _words(engine: Engine, generation: Generation) -> str:
    """Where the footer's texts, or why the reply ended, are not what its tokens say; "" where they are."""
    header, footer, tokens = generation.header, generation.footer, check.tokens_of(generation)
    assert header is not None
    assert footer is not None
    assert tokens is not None
    try:
        answer, reasoning, reason = engine.retell(schema.request_from(header), tokens)
    except ValueError as error:
        return str(error)
    found = [
        f"the {name} is not that of its tokens"
        for name, text in (("answer", answer), ("reasoning", reasoning))
        if footer.get(name) != text
    ]
    outside = (EndReason.BUDGET, EndReason.CONTEXT, EndReason.STOPPED)
    said = footer.get("reason")
    if said not in outside if reason is None else said != reason:
        found.append(f"it says that it was ended by {said!r}, its tokens say {str(reason or 'something else')!r}")
    return "; ".join(found)


def _elsewhere(engine: Engine, logged: dict[str, Any], receipt: Receipt) -> str:
    """What else may be behind a difference than a wrong log."""
    info = engine.info
    if receipt.identical or (logged.get("device"), logged.get("policy")) == (info.device, info.policy):
        return ""
    return f". It was written on {logged.get('device')}; {logged.get('policy')}: other arithmetic can part texts"
