"""What a draft step costs with a dense and with a quantized head, at real shapes and random weights.

python -m engine.bench.drafter_cost --shape 27B --out docs/benchmark_results
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from time import perf_counter

import mlx.core as mx
from mlx.utils import tree_flatten

from engine import backend as backends
from engine.arrays import token_array
from engine.bench import environment
from engine.bench.record import hardware
from engine.bench.statistics import Ratio, Spread, speed_ratio, spread
from engine.bench.synthetic import SHAPES, random_head, random_target
from engine.drafter import Drafter, HeadState
from engine.events import DrafterInfo
from engine.request import Sampler
from engine.sampling import Chooser
from engine.tables import table
from engine.target import Target

HISTORY = 64
"""Entries in the head's cache before the timed work."""
MIB = 2**20


def _drafter(shape: str, target: Target, *, quantized: bool) -> Drafter:
    head = random_head(shape, target, quantized=quantized)
    size = sum(p.nbytes for _, p in tree_flatten(head.parameters()))
    words = "4-bit group 64" if quantized else "dense bfloat16"
    return Drafter(head, target, DrafterInfo("random", words, "benchmark", size, 0))


def _work(target: Target, drafter: Drafter) -> dict[str, Callable[[], None]]:
    """The timed pieces. Each leaves the head's cache as it found it."""
    chooser = Chooser(Sampler(), 0, target.vocab_size, ())
    state = HeadState()
    hidden = mx.random.normal((HISTORY, target.hidden_size)).astype(target.dtype)
    state.tell(token_array(range(HISTORY)), hidden)
    out = drafter.accept_hook(state)
    mx.eval(out)
    seed = token_array([1])

    def head_alone() -> None:
        mx.eval(drafter.head(target.embed(seed), out, state.cache))
        state.drop_after(HISTORY)

    def draft_step() -> None:
        mx.eval(drafter.draft_block(seed, out, 2, chooser, 100, state))
        state.drop_after(HISTORY)

    def accept_hook() -> None:
        state.tell(token_array([1, 2]), hidden[:2])
        mx.eval(drafter.choose(drafter.accept_hook(state), chooser, 100, []))
        state.drop_after(HISTORY)

    def lm_head() -> None:
        mx.eval(target.logits(out))

    return {
        "head forward, 1 row": head_alone,
        "draft step (head + LM head + argmax)": draft_step,
        "accept hook, 2 rows": accept_hook,
        "LM head alone": lm_head,
    }


def run(shape: str, rounds: int) -> tuple[dict[str, dict[str, Spread]], dict[str, Ratio], Ratio, dict[str, int]]:
    """(spreads by work and head, speed of quantized over dense by work, A/A control, bytes by head)."""
    target = random_target(shape, backends.detect(), layers=4)
    heads = {
        "dense": _drafter(shape, target, quantized=False),
        "quantized": _drafter(shape, target, quantized=True),
    }
    heads["dense again"] = heads["dense"]
    works = {name: _work(target, drafter) for name, drafter in heads.items()}
    pieces = list(works["dense"])
    times: dict[str, dict[str, list[float]]] = {piece: {name: [] for name in heads} for piece in pieces}
    draw = random.Random(0)
    for round_ in range(rounds + 3):
        for piece in pieces:
            for name in draw.sample(list(heads), len(heads)):
                started = perf_counter()
                works[name][piece]()
                if round_ >= 3:
                    times[piece][name].append((perf_counter() - started) * 1e3)
    spreads = {p: {n: spread(t) for n, t in by.items()} for p, by in times.items()}
    ratios = {p: speed_ratio(by["quantized"], by["dense"]) for p, by in times.items()}
    main = times["draft step (head + LM head + argmax)"]
    return spreads, ratios, speed_ratio(main["dense again"], main["dense"]), {n: d.info.bytes for n, d in heads.items()}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.bench.drafter_cost")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="27B")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmark_results"))
    asked = parser.parse_args(argv)
    machine, backend = environment.look(), backends.detect()
    backends.prepare(backend)
    spreads, ratios, control, sizes = run(asked.shape, asked.rounds)
    stem = f"drafter-cost-{asked.shape}-{hardware(backend.name, machine.environment.cpus)}-{date.today().isoformat()}"
    asked.out.mkdir(parents=True, exist_ok=True)
    raw = asked.out / f"{stem}.json"
    data = {
        "machine": asdict(machine),
        "spreads_ms": {p: {n: asdict(s) for n, s in by.items()} for p, by in spreads.items()},
        "speed": {p: asdict(r) for p, r in ratios.items()},
        "control": asdict(control),
        "bytes": sizes,
    }
    raw.write_text(json.dumps(data) + "\n", encoding="utf-8")
    rows = [
        (piece, *(_spread(by[n]) for n in ("dense", "quantized")), _ratio(ratios[piece]))
        for piece, by in spreads.items()
    ]
    lines = [
        f"# Drafter cost, {asked.shape} head shapes",
        "",
        f"On {backend.name}, {date.today().isoformat()}. MLX {machine.environment.mlx}. Raw: `{raw.name}`.",
        "",
        "**Synthetic: random weights; the target has the real width and vocabulary but 4 layers. Costs only.**",
        "",
        f"Head bytes: dense {sizes['dense'] / MIB:.1f} MiB, quantized {sizes['quantized'] / MIB:.1f} MiB.",
        "",
        *table(("work, ms: median (min - max)", "dense bfloat16", "4-bit group 64", "speed of quantized"), rows),
        "",
        f"n = {asked.rounds} each, random order. A/A of the draft step, dense against dense: {_ratio(control)}.",
        "The two heads are two modules with other bytes (above), so the arms differ.",
        "",
        "## Not measured",
        "",
        "- Acceptance and text: the weights are random. Apple GPUs. Other contexts than "
        f"{HISTORY} entries. The verify forward.",
        "",
        "## Repeat",
        "",
        "```sh",
        f"python -m engine.bench.drafter_cost {' '.join(argv if argv is not None else sys.argv[1:])}",
        "```",
    ]
    text = "\n".join(lines) + "\n"
    raw.with_suffix(".md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


def _spread(s: Spread) -> str:
    return f"{s.median:.3f} ({s.minimum:.3f} - {s.maximum:.3f})"


def _ratio(r: Ratio) -> str:
    return f"{r.median:.2f} [{r.low:.2f}, {r.high:.2f}]"


if __name__ == "__main__":
    sys.exit(main())
