"""`pacenote chat`: the options of a chat in the terminal. What happens in it: `chat_session`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine import MAX_BLOCK, EventLog, Request, Sampler, Speculation, WhenFull
from engine.cli.chat_session import ChatSession
from engine.cli.conversation import Conversation, Seeds
from engine.cli.loading import add_model_arguments, load_engine, load_options

NAME = "chat"
HELP = "chat in this terminal"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    speculation = parser.add_argument_group("speculation")
    speculation.add_argument(
        "--mtp",
        type=Speculation,
        choices=list(Speculation),
        default=Speculation.ON,
        help="on: where it measures faster (default); always: never parked",
    )
    speculation.add_argument(
        "--block", type=int, default=5, metavar="N", help=f"most rows of a verify block, 2 to {MAX_BLOCK} (default 5)"
    )
    speculation.add_argument(
        "--no-stage-times",
        action="store_true",
        help="do not wait after each stage of a round to time it; faster on a GPU, and drafting counts as verify",
    )
    speculation.add_argument("--dense-drafter", action="store_true", help="do not quantize the MTP head")
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 is greedy (default)")
    sampling.add_argument("--top-k", type=int, default=0, metavar="K")
    sampling.add_argument("--top-p", type=float, default=1.0, metavar="P")
    sampling.add_argument("--min-p", type=float, default=0.0, metavar="P")
    sampling.add_argument("--seed", type=int, metavar="N", help="of the first reply; later ones follow from it")
    reply = parser.add_argument_group("reply")
    reply.add_argument("--max-tokens", type=int, default=1024, metavar="N")
    reply.add_argument("--system", default="", metavar="TEXT", help="system message")
    reasoning = reply.add_mutually_exclusive_group()
    reasoning.add_argument(
        "--thinking", action=argparse.BooleanOptionalAction, help="reasoning on or off, where the model has the switch"
    )
    reasoning.add_argument(
        "--effort", metavar="EFFORT", help="of reasoning, where the model has efforts: often low, medium, high"
    )
    reply.add_argument(
        "--drop-oldest",
        action="store_true",
        help="when the chat no longer fits, leave out its oldest turns and say which; default: the message is refused",
    )
    reply.add_argument("--prompt", metavar="TEXT", help="one reply, then exit; without it piped stdin is the prompt")
    reply.add_argument("--log", type=Path, metavar="FILE", help="append the session log, JSON Lines without text")
    reply.add_argument("--log-text", action="store_true", help="the log holds texts and tokens too, to be verified")
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    try:
        request = _request(args)
    except ValueError as error:
        args.usage_error(str(error))
    if args.log_text and args.log is None:
        args.usage_error("--log-text needs --log FILE")
    prompt = args.prompt
    if prompt is None and not sys.stdin.isatty():
        prompt = sys.stdin.read()
    if prompt is not None and not prompt.strip():
        args.usage_error("the prompt is empty")
    engine = load_engine(load_options(args))
    try:
        log = EventLog(args.log, content=args.log_text) if args.log else None
        engine.detailed_timing = not args.no_stage_times
        session = ChatSession(engine, request, Conversation(args.system), Seeds(args.seed), log)
        if prompt is None:
            session.talk()
        else:
            session.reply_to(prompt)
    finally:
        engine.close()
    return 0


def _request(args: argparse.Namespace) -> Request:
    """What all replies share. Raises ValueError for a bad option."""
    return Request(
        messages=(),
        sampler=Sampler(args.temperature, args.top_k, args.top_p, args.min_p),
        seed=args.seed or 0,
        max_tokens=args.max_tokens,
        speculation=args.mtp,
        block_size=args.block,
        thinking=args.thinking if args.effort is None else args.effort,
        when_full=WhenFull.DROP_OLDEST if args.drop_oldest else WhenFull.REFUSE,
    )
