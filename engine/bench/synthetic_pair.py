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
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from time import perf_counter

import mlx.core as mx
from mlx.utils import tree_flatten

from engine import backend as backends
from engine.arrays import token, token_array
from engine.bench import environment
from engine.bench.record import hardware
from engine.bench.statistics import Ratio, Spread, speed_ratio, spread
from engine.bench.synthetic import SHAPES, random_head, random_target
from engine.bench.tables import free_drafter
from engine.calibrate import measure_costs
from engine.decode import Line, classic, paced, prefill, speculative
from engine.drafter import Drafter, HeadState
from engine.events import DrafterInfo, EndReason, Notice, ReplyStats, Round
from engine.exactness import ladder
from engine.pace import Pace
from engine.request import Sampler, Speculation
from engine.sampling import Chooser
from engine.tables import table
from engine.target import Rows
from engine.telemetry.stats import StatsBuilder, merge

PROMPT = 64
"""Random prompt tokens."""
WIDTH = 3
WARM_UP = 2
STAGE_RUNS = 3
NEVER = threading.Event()
CLASSIC = "classic"
PACED = "quantized head, paced"
MIB = 2**20


class ForcedDrafter(Drafter):
    """Drafts as the head does, then proposes `planned[position]`. The replacement depends on the head's own token."""

    planned: dict[int, int]

    def choose(self, hidden: mx.array, chooser: Chooser, position: int, drafted: list[mx.array]) -> mx.array:
        own = super().choose(hidden, chooser, position, drafted)
        return own - own + self.planned.get(position, 0)


@dataclass(frozen=True)
class Run:
    """seconds: from the restored boundary to the last token."""

    seconds: float
    tokens: tuple[int, ...]
    stats: ReplyStats


class Bench:
    """Everything on one target of random weights."""

    def __init__(self, shape: str, tokens: int, acceptance: float) -> None:
        backend = backends.detect()
        backends.prepare(backend)
        self.target = random_target(shape, backend)
        self.decision = ladder.decide(self.target, (2, WIDTH), 512)
        self.drafters = {
            "dense head": self._drafter(shape, quantized=False),
            "quantized head": self._drafter(shape, quantized=True),
        }
        self.tokens = tokens
        state, head = self.target.new_state(), HeadState()
        prompt = [int(t) for t in random.Random(0).choices(range(self.target.vocab_size), k=PROMPT)]
        rows = [part for part in prefill(self.target, prompt, state, head, NEVER) if isinstance(part, Rows)][-1]
        self._boundary, self._told, self._rows = state.snapshot(), head.snapshot(), rows
        draw, true = random.Random(1), self.run(CLASSIC).tokens
        self.reference = true
        wrong = self.target.vocab_size
        for drafter in self.drafters.values():
            drafter.planned = {}
        for n, emitted in enumerate(true):
            planned = emitted if draw.random() < acceptance else (emitted + 1) % wrong
            for drafter in self.drafters.values():
                drafter.planned[PROMPT + n] = planned
        self.pace = Pace(measure_costs(self.target, self.drafters["quantized head"], (2, WIDTH)), (2, WIDTH))
        self.costs_at_load = dict(self.pace.table())

    def _drafter(self, shape: str, *, quantized: bool) -> ForcedDrafter:
        head = random_head(shape, self.target, quantized=quantized)
        size = sum(value.nbytes for _, value in tree_flatten(head.parameters()))
        words = "4-bit group 64" if quantized else "dense bfloat16"
        return ForcedDrafter(head, self.target, DrafterInfo("random", words, "benchmark", size, 0))

    def line(self, *, follow: bool) -> Line:
        state = self.target.new_state()
        state.restore(self._boundary)
        head = HeadState.restored(self._told) if follow else None
        chooser = Chooser(Sampler(), 0, self.target.vocab_size, ())
        chosen = chooser.row(self._rows.logits[0], state.length)
        chooser.emit(chosen)
        if head is not None:
            head.tell(chosen, self._rows.hidden)
        left = self.tokens - 1

        def ends(_: int) -> EndReason | None:
            nonlocal left
            left -= 1
            return EndReason.BUDGET if left <= 0 else None

        return Line(state, head, chooser, ends, token(chosen))

    def run(self, arm: str, *, detailed: bool = False) -> Run:
        line = self.line(follow=arm != CLASSIC)
        tokens, stats = [line.last], StatsBuilder()
        mx.synchronize()
        started = perf_counter()
        rounds: Iterator[Round | Notice]
        if arm == CLASSIC:
            rounds = classic(self.target, line, NEVER, lambda: False)
        elif arm == PACED:
            self.pace.begin(Speculation.ON, WIDTH)
            rounds = paced(self.target, self.drafters["quantized head"], line, NEVER, self.pace, detailed)
        else:
            rounds = speculative(self.target, self.drafters[arm], line, NEVER, lambda: WIDTH, detailed)
        for round_ in rounds:
            if isinstance(round_, Round):
                tokens.extend(round_.tokens)
                stats.observe(round_)
        seconds = perf_counter() - started
        mx.synchronize()
        return Run(seconds, tuple(tokens), stats.build())

    def host(self, repeats: int) -> dict[str, Spread]:
        """Milliseconds of Python per round: what it takes to build each graph, nothing evaluated meanwhile."""
        times: dict[str, list[float]] = {}
        for _ in range(repeats):
            for name, milliseconds in self._build_round():
                times.setdefault(name, []).append(milliseconds)
        return {name: spread(values) for name, values in times.items()}

    def _build_round(self) -> Iterator[tuple[str, float]]:
        """The graphs of one round, each built and then evaluated before the next is begun."""
        drafter, line = self.drafters["quantized head"], self.line(follow=True)
        head, state, chooser = line.head, line.state, line.chooser
        assert head is not None
        hidden = drafter.accept_hook(head)
        mx.eval(hidden)
        entries = head.cache.offset

        started = perf_counter()
        drafts = drafter.draft_block(token_array([1]), hidden, 2, chooser, state.length + 1, head)
        yield "draft step", (perf_counter() - started) * 1e3
        mx.eval(drafts)

        started = perf_counter()
        rows = self.target.verify(token_array([1] * WIDTH), state)
        yield "verify forward", (perf_counter() - started) * 1e3
        mx.eval(rows)

        started = perf_counter()
        self.target.rollback(state, WIDTH, 2)
        yield "rollback", (perf_counter() - started) * 1e3
        mx.eval(state.arrays())

        head.drop_after(entries)
        head.tell(token_array([1, 2]), rows.hidden[:2])
        started = perf_counter()
        seed = drafter.choose(drafter.accept_hook(head), chooser, state.length + 1, [])
        yield "accept hook", (perf_counter() - started) * 1e3
        mx.eval(seed)


def measure(bench: Bench, pairs: int, say: Callable[[str], object]) -> dict[str, list[Run]]:
    """Every arm once per block, in an order drawn anew. A second classic arm is the control."""
    arms = [CLASSIC, f"{CLASSIC} again", *bench.drafters, PACED]
    runs: dict[str, list[Run]] = {arm: [] for arm in arms}
    draw = random.Random(2)
    for block in range(pairs + WARM_UP):
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
    now = bench.pace.table()
    rows = [
        ("1 (classic)" if width == 1 else str(width), f"{bench.costs_at_load[width][1]:.1f}", f"{spent:.1f}",
         f"{tokens:.2f}", f"{tokens / spent * now[1][1]:.2f}")
        for width, (tokens, spent) in now.items()
    ]  # fmt: skip
    stats = [run.stats for run in done]
    steps = sum(s.rounds - (s.drafted_at[0] if s.drafted_at else 0) for s in stats)
    share = steps / sum(len(run.tokens) - 1 for run in done)
    return [
        *table(("rows", "ms a round, at load", "ms a round, at the end", "tokens expected", "speed expected"), rows),
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
    asked = parser.parse_args(argv)
    machine = environment.look()

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    bench = Bench(asked.shape, asked.tokens, asked.acceptance)
    verdict = bench.decision.verdict
    say(f"verdict: {verdict.state.value} {verdict.kernel}: {verdict.reason}")
    runs = measure(bench, asked.pairs, say)
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
        f"{asked.tokens - 1} tokens after the first, block {WIDTH}, {asked.pairs} interleaved blocks, nothing",
        "synchronised between stages; the head's prefill of the prompt is inside.",
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
