"""`pacenote models`: what is on this computer, what could be fetched, and whether it fits."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress

from engine.cli.interrupt import interruptible

NAME = "models"
HELP = "models on this computer and in the catalogue, with the memory they need"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place", nargs="?", metavar="PLACE", help="only this: a folder, a cached repo, or one on the hub"
    )
    parser.add_argument(
        "--context", type=_tokens, metavar="N", help="tokens of context to count memory for (default: 8192)"
    )
    parser.add_argument("--check", action="store_true", help="compare every entry of the catalogue with the hub")


def _tokens(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of tokens")
    return count


def run(args: argparse.Namespace) -> int:
    if args.check:
        return _check()
    if args.place:
        print(f"{args.place}: {_fit_of(args.place, args.context)}")
        return 0
    for line in _listing(args.context):
        print(line)
    return 0


def _listing(context: int | None) -> Iterator[str]:
    # Here, not above: they import MLX, and `pacenote --help` should not.
    from engine.errors import KnownError
    from engine.hub.catalogue import catalogue
    from engine.hub.errors import size
    from engine.hub.fit import fit_of
    from engine.hub.local import find_local
    from engine.request import LoadOptions

    unread: KnownError | None = None
    try:
        pairs = catalogue()
    except KnownError as error:
        unread, pairs = error, ()
    found = find_local(pairs)
    yield "On this computer"
    yield f"  demo pair: {fit_of(LoadOptions(), context)}"
    for model in found.models:
        head = f"head {model.head}" if model.head else "head inside" if model.has_head else "no head: classic speed"
        yield f"  {model.place}: {size(model.bytes)}, {model.quantization}, {head}"
        try:
            yield f"    {fit_of(LoadOptions(target=model.place, head=model.head or None), context)}"
        except KnownError as error:  # of one model; the list goes on
            yield f"    cannot be used: {error.what}"
    for broken in found.unusable:
        yield f"  {broken.place} cannot be used: {broken.reason}"
    for begun in found.begun:
        yield f"  {begun.repo}: not whole, {size(begun.kept)} of unfinished files; to go on:"
        yield f"    pacenote download {begun.repo}"
    if unread is not None:
        raise unread
    yield ""
    yield "Catalogue"
    for pair in pairs:
        facts = [f"about {size(pair.bytes)}" if pair.bytes else "size not known", pair.quantization]
        if pair.acceptance:
            facts.append(f"acceptance about {100 * pair.acceptance:.0f} % at block {pair.acceptance_block}")
        facts.append(f"licence {pair.licence or 'not known'}")
        facts.append(f"checked {pair.checked}" if pair.checked else "never compared with the hub")
        yield f"  {pair.name}: {', '.join(facts)}"
        yield f"    pacenote download {pair.target}"
        yield f"    pacenote download {pair.head}" if pair.head else f"    pacenote extract-drafter {pair.original}"


def _fit_of(place: str, context: int | None) -> str:
    from engine.checkpoint.locate import locate
    from engine.errors import CheckpointError, KnownError
    from engine.hub.catalogue import catalogue
    from engine.hub.connection import Connection
    from engine.hub.fit import fit_of
    from engine.hub.remote import fit_remote
    from engine.request import LoadOptions

    try:
        locate(place)
    except CheckpointError:
        if place.count("/") != 1:
            raise
        pair = None
        with suppress(KnownError):  # a broken catalogue: the repo was named, so it is not needed
            pair = next((pair for pair in catalogue() if pair.target == place), None)
        head, original = (pair.head, pair.original) if pair is not None else ("", "")
        with interruptible() as stop:
            found = fit_remote(Connection(stop=stop), place, head, original, context)
        none = f"; no head is counted: {found.head_reason}" if found.head_reason else ""
        return f"{found} (from its headers on the hub{none})"
    return str(fit_of(LoadOptions(target=place), context))


def _check() -> int:
    from engine.hub.catalogue import catalogue
    from engine.hub.check import check
    from engine.hub.connection import Connection

    wrong = 0
    with interruptible() as stop:
        for pair in catalogue():
            found = check(Connection(stop=stop), pair)
            wrong += bool(found.problems)
            print(f"{pair.name}: {'differs' if found.problems else 'as the hub says'}")
            for problem in found.problems:
                print(f"  {problem}")
    print(f"{wrong} of {len(catalogue())} entries differ.")
    return 1 if wrong else 0
