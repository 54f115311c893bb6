"""Memory over many rounds of chat: what is alive is the model and what is accounted for, and nothing else.

python -m engine.bench.kept_memory --rounds 200
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import mlx.core as mx

from engine.engine import Engine
from engine.events import Finished
from engine.loading import load_pair
from engine.request import LoadOptions, Message, Request, Sampler, Speculation

NEVER = threading.Event()
TOLERANCE = 0.02
TURNS = 20
"""Of one chat; then another one begins."""
AGAIN = 20
"""Replies at the end that make no boundary that is not there already."""
MIB = 2**20

Chat = tuple[Message, ...]


def settled() -> int:
    """Bytes of MLX arrays that are alive."""
    gc.collect()
    mx.clear_cache()
    return mx.get_active_memory()


def resident() -> int:
    """Bytes of the process, 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0


class Talk:
    """One engine and the chat that is talked in."""

    def __init__(self, engine: Engine, mode: Speculation) -> None:
        self.engine = engine
        self._mode = mode
        self.chat: Chat = ()

    def turn(self, number: int) -> None:
        """Ask, and keep the reply."""
        asked = (*self.chat, Message("user", f"Number {number}, please."))
        done = self.reply(asked, number)
        self.chat = (
            *asked,
            Message("assistant", done.answer, done.reasoning, done.segments, last_token=done.tokens[-1]),
        )

    def reply(self, chat: Chat, seed: int) -> Finished:
        request = Request(chat, Sampler(temperature=0.8), seed, 4, speculation=self._mode, ignore_eos=True)
        *_, done = self.engine.generate(request, NEVER)
        if not isinstance(done, Finished):
            raise RuntimeError("a generation ended without Finished")
        return done


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.bench.kept_memory")
    parser.add_argument("--model", help="folder; the demo pair when absent")
    parser.add_argument("--head")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--mtp", type=Speculation, choices=list(Speculation), default=Speculation.ALWAYS)
    parser.add_argument("--budget-mib", type=int, help="memory for boundaries; from the device when absent")
    asked = parser.parse_args(argv)
    pair = load_pair(LoadOptions(asked.model, asked.head), lambda _: None, NEVER)
    warm = Talk(Engine(pair), asked.mtp)
    warm.turn(0)  # what is made once (compiled functions, tables) belongs to the model
    del warm
    model = settled()
    budget = None if asked.budget_mib is None else asked.budget_mib * MIB
    talk = Talk(Engine(pair, budget), asked.mtp)
    luck = random.Random(1)
    for number in range(asked.rounds):
        if number % TURNS == 0:
            talk.chat = ()
        talk.turn(luck.randrange(100, 1000))
        if (number + 1) % max(1, asked.rounds // 5) == 0:
            say(number + 1, talk.engine, settled(), model)
    alive, accounted = settled(), talk.engine.boundary_bytes
    error = abs(alive - model - accounted) / (model + accounted)
    for seed in range(AGAIN):
        talk.reply(talk.chat[:-1], asked.rounds)
        if seed == 0:
            alive, before = settled(), talk.engine.boundary_bytes  # its one new boundary, at the reply's end
    growth = settled() - alive
    sys.stdout.write(
        f"{pair.info.name}, MTP {asked.mtp}, {asked.rounds} rounds in chats of {TURNS} turns.\n"
        f"Memory after gc is {error:.3%} off model + accounted bytes ({TOLERANCE:.0%} allowed).\n"
        f"{AGAIN - 1} further replies without a new boundary: {growth:+d} bytes alive, "
        f"{talk.engine.boundary_bytes - before:+d} accounted.\n"
    )
    return 0 if error <= TOLERANCE and growth <= TOLERANCE * MIB else 1


def say(number: int, engine: Engine, alive: int, model: int) -> None:
    sys.stdout.write(
        f"round {number}: alive {alive / MIB:.2f} MiB = model {model / MIB:.2f} + accounted "
        f"{engine.boundary_bytes / MIB:.2f} + {(alive - model - engine.boundary_bytes) / MIB:+.3f}; process "
        f"{resident() / MIB:.0f} MiB\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
