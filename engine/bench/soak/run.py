"""Drive random chats with one loaded pair, and replay every reply from nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import mlx.core as mx

from engine.bench.soak.chats import Evict, RandomChat, Restart, Tally, Write
from engine.engine import Engine
from engine.events import Finished, PrefillProgress, Round
from engine.exactness.probe import same_bytes
from engine.loading import Pair as LoadedPair
from engine.request import Request, Speculation
from engine.session.boundary import Boundary, Pair

NEVER = threading.Event()


def run_chat(
    pair: LoadedPair,
    chat: RandomChat,
    tally: Tally,
    kept: Path,
    restart: Callable[[Restart, Engine], Engine],
    engine: Engine,
    stop: threading.Event = NEVER,
) -> Engine:
    """Run a chat to its end, counting into `tally`.

    Args:
        kept: where the chat's boundary is kept over a restart.
        restart: called for a Restart; gives the engine to go on with, or does not return.
        engine: to begin with.
        stop: ends it between two steps.

    Returns the engine at the end.
    """
    while not stop.is_set() and (step := chat.next()) is not None:
        if isinstance(step, Evict):
            budget, engine.boundary_budget = engine.boundary_budget, int(engine.boundary_bytes * step.share)
            engine.boundary_budget = budget
        elif isinstance(step, Restart):
            kept.unlink(missing_ok=True)
            if step.saved and (told := engine.save_chat(kept)):
                raise RuntimeError(told.text)
            engine = restart(step, engine)
        else:
            done = write(engine, step)
            if done.tokens:
                tally.replies += 1
                tally.tokens += len(done.tokens)
                tally.restored += done.stats.restored_tokens
                tally.prompt += done.stats.prompt_tokens
                tally.differences += differences(pair, step, done, engine.last_boundary)
            chat.took(done)
    return engine


def restarted(pair: LoadedPair, kept: Path) -> Engine:
    """An engine as it is after a restart: it knows nothing but what was kept on disk."""
    engine = Engine(pair)
    engine.detailed_timing = False
    engine.restore_chat(kept)
    return engine


def write(engine: Engine, step: Write) -> Finished:
    """Write the reply, with Stop where the step says."""
    stop = threading.Event()
    chunks = tokens = 0
    for event in engine.generate(step.request, stop):
        chunks += isinstance(event, PrefillProgress)
        tokens += event.emitted if isinstance(event, Round) else 0
        if step.stop is not None:
            where, count = step.stop
            if (where == "prefill" and chunks > count) or (where == "decode" and tokens >= count):
                stop.set()
    if not isinstance(event, Finished):
        raise RuntimeError("a generation ended without Finished")
    return event


def differences(pair: LoadedPair, step: Write, done: Finished, end: Boundary | None) -> Iterator[str]:
    """The same reply from an engine that has kept nothing, with MTP off and with MTP on.

    Text alone would be a weak judge: a small model may say the same from damaged caches. So the bytes of every
    cache at the end of the reply are compared too. end: those of the reply, None if they were not kept.
    """
    asked = step.request
    if done.reason == "stopped":
        asked = replace(asked, max_tokens=len(done.tokens))
    for mode in (Speculation.OFF, Speculation.ALWAYS):
        again = replace(asked, speculation=mode, block_size=2 + (asked.seed + len(done.tokens)) % 4)
        cold = Engine(pair)
        cold.detailed_timing = False
        told = write(cold, Write(again, "cold"))
        parts = ("tokens", "segments", "answer", "reasoning")
        what = next((part for part in parts if getattr(told, part) != getattr(done, part)), "")
        if not what and end is not None and cold.last_boundary is not None:
            what = first_difference(end, cold.last_boundary)
        if what:
            yield f"{what} of a {step.kind} differ from a cold replay with MTP {mode}: {_describe(asked)}"


def first_difference(a: Boundary, b: Boundary) -> str:
    """Which caches of the target differ, "" when every byte is equal. The head's may: they change no text."""
    for what, mine, theirs in (("recurrent states", a.recurrent, b.recurrent), ("keys", a.attention(), b.attention())):
        for x, y in zip(_arrays(mine), _arrays(theirs), strict=True):
            if not same_bytes(x, y):
                return what
    return ""


def _arrays(pairs: Iterable[Pair]) -> list[mx.array]:
    return [a for pair in pairs for a in pair]


def _describe(request: Request) -> str:
    return f"{len(request.messages)} messages, seed {request.seed}, {request.sampler}, stop {request.stop}"
