"""What it gains to start the device while Python still builds a verify forward, at a real shape.

    python -m engine.bench.early_start --shape 27B

Random weights and forced drafts, as in `synthetic_pair`. First the verify forward alone, started after every so many
layers; then whole replies with neither, one, or both of: layers started early, drafts started before the forward.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import mlx.core as mx

from engine.arrays import token_array
from engine.bench.forced import WIDTH, Bench
from engine.bench.statistics import speed_ratio, spread
from engine.bench.synthetic import SHAPES
from engine.tables import table

CONTEXT = 64
WARM_UP = 3
EVERY: dict[str, int] = {"nothing early": 0, "2": 2, "4": 4, "8": 8, "16": 16, "32": 32, "nothing early again": 0}
"""Layers after which the device is started, by row of the table. The first and last are the A/A control."""


def verify_rows(bench: Bench, rounds: int) -> list[tuple[str, ...]]:
    """(every, milliseconds, of which Python builds, speed relative to nothing early) of a verify forward."""
    target, plain = bench.target, bench.target.backend
    whole: dict[str, list[float]] = {name: [] for name in EVERY}
    build: dict[str, list[float]] = {name: [] for name in EVERY}
    block = token_array(range(1, WIDTH + 1))
    draw = random.Random(3)
    states = {}
    for name, every in EVERY.items():
        target.backend = replace(plain, start_every=every)
        states[name] = state = target.new_state()
        mx.eval(target.hidden(token_array(range(CONTEXT)), state), state.arrays())
    target.backend = plain
    marks = {name: state.mark() for name, state in states.items()}
    for round_ in range(rounds + WARM_UP):
        for name in draw.sample(list(EVERY), len(EVERY)):
            mx.synchronize()
            started = perf_counter()
            rows = target.verify(block, states[name])
            built = perf_counter()
            mx.eval(rows)
            ended = perf_counter()
            target.rollback(states[name], WIDTH, WIDTH)
            states[name].rewind(marks[name])
            if round_ >= WARM_UP:
                whole[name].append((ended - started) * 1e3)
                build[name].append((built - started) * 1e3)
    return [
        (
            name,
            f"{spread(whole[name]).median:.1f} ({min(whole[name]):.1f} - {max(whole[name]):.1f})",
            f"{spread(build[name]).median:.1f}",
            _ratio(whole[name], whole["nothing early"]),
        )
        for name in EVERY
    ]


def reply_rows(bench: Bench, rounds: int, arm: str = "quantized head") -> list[tuple[str, ...]]:
    """(setting, seconds, speed relative to nothing early, replies that differ from classic) of whole replies."""
    plain = bench.target.backend
    settings = {"nothing early": 0, "drafts only": 10**6, "both, layers every 8": 8, "nothing early again": 0}
    seconds: dict[str, list[float]] = {name: [] for name in settings}
    different = dict.fromkeys(settings, 0)
    draw = random.Random(4)
    try:
        for round_ in range(rounds + WARM_UP):
            for name in draw.sample(list(settings), len(settings)):
                bench.target.backend = replace(plain, start_every=settings[name])
                run = bench.run(arm)
                different[name] += run.tokens != bench.reference
                if round_ >= WARM_UP:
                    seconds[name].append(run.seconds)
    finally:
        bench.target.backend = plain
    return [
        (
            name, f"{spread(s).median:.3f} ({min(s):.3f} - {max(s):.3f})", _ratio(s, seconds["nothing early"]),
            str(different[name]),
        )
        for name, s in seconds.items()
    ]  # fmt: skip


def _ratio(mine: Sequence[float], against: Sequence[float]) -> str:
    ratio = speed_ratio(mine, against)
    return f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.bench.early_start")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="27B")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=30)
    asked = parser.parse_args(argv)
    bench = Bench(asked.shape, asked.tokens, acceptance=0.7)

    def say(*part: str) -> None:
        sys.stdout.write("\n".join(part) + "\n")
        sys.stdout.flush()

    # Told as it comes: on a borrowed machine time may end before the last table does.
    say(
        f"Random weights in the shape of {asked.shape} on {bench.target.backend.name}; {asked.rounds} rounds.",
        "",
        f"A verify forward of {WIDTH} rows:",
        "",
    )
    columns = ("layers between starts", "ms: median (min - max)", "Python builds", "speed")
    say(*table(columns, verify_rows(bench, asked.rounds)))
    say("", f"Replies of {asked.tokens} tokens, block {WIDTH}:", "")
    columns = ("started early", "seconds: median (min - max)", "speed", "replies that differ")
    say(*table(columns, reply_rows(bench, asked.rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
