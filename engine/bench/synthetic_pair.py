"""The production round at a real shape: random weights, drafts forced to a stated acceptance.

    python -m engine.bench.synthetic_pair --shape 27B --acceptance 0.7

The heads do all their work and their tokens are then replaced, so stage times and the ratio to classic decode are
those of a head with this acceptance. Text and real acceptance mean nothing here, and the record says so. The
kernels are those that the ladder engages on this device, and the token ids of every arm must equal classic's.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from time import perf_counter

from engine.bench import environment
from engine.bench.forced import CLASSIC, PACED, WIDTH, Bench, Run
from engine.bench.pace_table import pace_table
from engine.bench.record import hardware
from engine.bench.statistics import Ratio, speed_ratio, spread
from engine.bench.synthetic import SHAPES
from engine.bench.tables import free_drafter
from engine.events import ReplyStats
from engine.tables import table
from engine.telemetry.stats import merge

WARM_UP = 2
STAGE_RUNS = 3
MIB = 2**20


def measure(bench: Bench, pairs: int, say: Callable[[str], object], seconds: float) -> dict[str, list[Run]]:
    """Every arm once per block, in an order drawn anew. A second classic arm is the control.

    After so many seconds no further block begins: time on a borrowed machine ends, and what was measured must not go.
    """
    deadline = perf_counter() + seconds
    arms = [CLASSIC, f"{CLASSIC} again", *bench.drafters, PACED]
    runs: dict[str, list[Run]] = {arm: [] for arm in arms}
    draw = random.Random(2)
    for block in range(pairs + WARM_UP):
        if block > WARM_UP and perf_counter() > deadline:
            say(f"out of time after {block - WARM_UP} of {pairs} blocks")
            break
        for arm in draw.sample(arms, len(arms)):
            run = bench.run(CLASSIC if arm.startswith(CLASSIC) else arm)
            if block >= WARM_UP:
                runs[arm].append(run)
        if block % 10 == 0:
            say(f"block {block} of {pairs + WARM_UP}")
    return runs


def stage_samples(bench: Bench, repeats: int) -> dict[str, list[ReplyStats]]:
    """Whole replies with a synchronisation after each stage."""
    return {arm: [bench.run(arm, detailed=True).stats for _ in range(repeats)] for arm in bench.drafters}


def published_table(
    staged: Mapping[str, Sequence[ReplyStats]], seconds: Mapping[str, Sequence[float]], tokens: int
) -> list[str]:
    """The rows of the published record of a quantized drafter (reference mtp.md 5), a column a head."""
    classic = tokens / spread(seconds[CLASSIC]).median
    stats = {arm: merge(samples) for arm, samples in staged.items()}
    rows: list[tuple[str, Callable[[str], float], str]] = [
        ("draft_block, ms per round", lambda arm: stats[arm].draft_ms / stats[arm].rounds, ".2f"),
        ("accept hook, ms per round", lambda arm: stats[arm].hook_ms / stats[arm].rounds, ".2f"),
        ("verify forward, ms per round", lambda arm: stats[arm].verify_ms / stats[arm].rounds, ".2f"),
        (f"acceptance (forced), n = {tokens + 1}", lambda arm: stats[arm].acceptance_rate, ".3f"),
        (f"tok/s, n = {tokens + 1}", lambda arm: tokens / spread(seconds[arm]).median, ".1f"),
        (f"classic tok/s, n = {tokens + 1}", lambda _: classic, ".1f"),
        ("ratio to classic", lambda arm: speed_ratio(seconds[arm], seconds[CLASSIC]).median, ".2f"),
        ("ratio if drafting were free", lambda arm: free_drafter(stats[arm], classic), ".2f"),
    ]
    return table(("", *stats), [(name, *(format(of(arm), form) for arm in stats)) for name, of, form in rows])


def stage_rows(bench: Bench, staged: Mapping[str, list[ReplyStats]]) -> list[tuple[str, ...]]:
    """Milliseconds per round and stage: medians of means over whole replies."""
    out = []
    for arm, drafter in bench.drafters.items():
        samples = staged[arm]

        def cell(of: Callable[[ReplyStats], float], samples: list[ReplyStats] = samples) -> str:
            values = spread([of(s) / s.rounds for s in samples])
            return f"{values.median:.2f} ({values.minimum:.2f} - {values.maximum:.2f})"

        stages: tuple[Callable[[ReplyStats], float], ...] = (
            lambda s: s.draft_ms, lambda s: s.verify_ms, lambda s: s.hook_ms, lambda s: s.rollback_ms,
            lambda s: s.host_ms,
        )  # fmt: skip
        accepted = sum(s.accepted for s in samples) / sum(s.drafted for s in samples)
        out.append((arm, f"{drafter.info.bytes / MIB:.1f}", *(cell(stage) for stage in stages), f"{accepted:.3f}"))
    return out


def pace_lines(bench: Bench, done: Sequence[Run]) -> list[str]:
    """What the cost model believed at load and at the end, and what it did with it."""
    stats = [run.stats for run in done]
    steps = sum(s.rounds - (s.drafted_at[0] if s.drafted_at else 0) for s in stats)
    share = steps / sum(len(run.tokens) - 1 for run in done)
    return [
        *pace_table(bench.pace_at_load, bench.pace),
        "",
        f"Of the paced tokens {share:.0%} came by classic steps.",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.bench.synthetic_pair")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="27B")
    parser.add_argument("--acceptance", type=float, default=0.7, help="chance that a draft is the target's token")
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmark_results"))
    parser.add_argument("--seconds", type=float, default=3600.0, help="no further block is begun after these")
    asked = parser.parse_args(argv)
    machine, began = environment.look(), perf_counter()

    def say(text: str) -> None:
        sys.stderr.write(f"{perf_counter() - began:.0f} s: {text}\n")
        sys.stderr.flush()

    bench = Bench(asked.shape, asked.tokens, asked.acceptance)
    verdict = bench.decision.verdict
    say(f"verdict: {verdict.state.value} {verdict.kernel}: {verdict.reason}")
    runs = measure(bench, asked.pairs, say, asked.seconds)
    different = sum(run.tokens != bench.reference for arm in runs.values() for run in arm)
    seconds = {arm: [run.seconds for run in done] for arm, done in runs.items()}
    ratios = {arm: speed_ratio(s, seconds[CLASSIC]) for arm, s in seconds.items() if arm != CLASSIC}
    staged, host = stage_samples(bench, STAGE_RUNS), bench.host(20)
    stages = stage_rows(bench, staged)
    command = f"python -m engine.bench.synthetic_pair {' '.join(argv if argv is not None else sys.argv[1:])}"
    name = bench.target.backend.name
    lines = [
        f"# The round at {asked.shape} shapes, drafts forced",
        "",
        f"On {name}, {date.today().isoformat()}. MLX {machine.environment.mlx}.",
        "",
        f"**Synthetic: random 4-bit weights in the shape of {asked.shape}. Every draft was replaced: each is the",
        f"target's token with a chance of {asked.acceptance}. Costs and equality only, no text, no real acceptance.**",
        "",
        f"Verdict: {verdict.state.value}, {verdict.kernel or 'no kernel'}. {verdict.reason}",
        "",
        *published_table(staged, seconds, asked.tokens - 1),
        "",
        "## Speed relative to classic decode",
        "",
        f"{asked.tokens - 1} tokens after the first, block {WIDTH}, {len(runs[CLASSIC])} interleaved blocks",
        f"of {asked.pairs} asked for, nothing synchronised between stages; the head's prefill of the prompt is inside.",
        "",
        *table(
            ("arm", "tokens per second: median (min - max)", "speed relative to classic"),
            [
                (arm, _rates(s, asked.tokens - 1), "" if arm == CLASSIC else _ratio(ratios[arm]))
                for arm, s in seconds.items()
            ],
        ),
        "",
        f"Token ids: {different} of {sum(map(len, runs.values()))} replies differ from classic decode.",
        "",
        "## Milliseconds per round (detailed timing: a synchronisation after each stage)",
        "",
        *table(
            ("head", "MiB", "draft_block", "verify forward", "accept hook", "rollback", "host", "acceptance"), stages
        ),
        "",
        "The accept hook of a reply's first round takes in the prompt; it is spread over all rounds.",
        "",
        "## The pace",
        "",
        *pace_lines(bench, runs[PACED]),
        "",
        "## What the host does: milliseconds of Python to build each graph, nothing evaluated meanwhile",
        "",
        *table(
            ("graph", "median (min - max)", "n"),
            [(k, f"{v.median:.2f} ({v.minimum:.2f} - {v.maximum:.2f})", str(v.n)) for k, v in host.items()],
        ),
        "",
        "## Proof that the arms differ",
        "",
        "Drafts per reply: " + ", ".join(f"{arm} {done[0].stats.drafted}" for arm, done in runs.items()) + ".",
        "The two heads are two modules with other bytes (above).",
        "",
        "## Thrown away",
        "",
        f"- {WARM_UP} blocks of {len(runs)} warm-up runs. No other sample was left out.",
        "",
        "## Not measured",
        "",
        "- Real weights, real acceptance, text. Apple GPUs. Other contexts and widths. Energy.",
        "",
        "## Repeat",
        "",
        "```sh",
        command,
        "```",
    ]  # fmt: skip
    stem = f"synthetic-pair-{asked.shape}-{hardware(name, machine.environment.cpus)}-{date.today().isoformat()}"
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / f"{stem}.md"
    text = "\n".join(lines) + "\n"
    path.write_text(text, encoding="utf-8")
    data = {
        "machine": asdict(machine), "verdict": asdict(verdict), "seconds": seconds, "differing_replies": different,
        "ratios": {arm: asdict(r) for arm, r in ratios.items()}, "host_ms": {k: asdict(v) for k, v in host.items()},
        "stage_samples": {arm: [asdict(s) for s in samples] for arm, samples in staged.items()},
    }  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps(data) + "\n", encoding="utf-8")
    sys.stdout.write(text)
    return 1 if different else 0


def _rates(seconds: Sequence[float], tokens: int) -> str:
    rates = spread([tokens / s for s in seconds])
    return f"{rates.median:.1f} ({rates.minimum:.1f} - {rates.maximum:.1f})"


def _ratio(r: Ratio) -> str:
    return f"{r.median:.3f} [{r.low:.3f}, {r.high:.3f}]"


if __name__ == "__main__":
    sys.exit(main())
