"""What each exactness candidate gives and costs on this device: probe, verify forward against stock, culprits.

pacenote bench --preset forced-qmv                    a real pair: what a Mac runs
python -m engine.bench.candidates --synthetic 4B      random weights of a real shape
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from time import perf_counter

import mlx.core as mx

from engine import backend as backends
from engine.arrays import token_array
from engine.bench import environment
from engine.bench.record import hardware, unused
from engine.bench.statistics import Ratio, Spread, speed_ratio, spread
from engine.bench.synthetic import SHAPES, random_target
from engine.exactness import ladder
from engine.exactness.explain import Difference, explain_first
from engine.exactness.probe import probe
from engine.tables import table
from engine.target import Target

WIDTHS = (3, 4)
PROBED = (2, 3, 4, 5)
CONTEXT = 64
"""Tokens before the timed block."""
NOT_ONE_OPERATION = "no single operation, given equal inputs: the difference lies in what the caches hold"


@dataclass(frozen=True)
class Measured:
    """One candidate at one width. calls: products that ran through its kernel in one forward (proof)."""

    name: str
    width: int
    ms: Spread
    speed: Ratio  # relative to stock with block attention, pair by pair
    calls: int


@dataclass(frozen=True)
class Report:
    model: str
    device: str
    verdict: str
    probes: tuple[tuple[str, tuple[int, ...], str, int], ...]  # name, widths passed, first failure, inputs
    differences: tuple[tuple[str, int, str, tuple[str, ...]], ...]  # name, width, context, operations in order
    step_ms: Spread
    measured: tuple[Measured, ...]
    control: tuple[Ratio, ...]  # stock against stock, per width
    chunk: int


def run(
    target: Target, name: str, rounds: int, context_length: int = 4096, say: Callable[[str], object] = lambda _: None
) -> Report:
    """Probe and time every candidate of the ladder on a target.

    context_length: caps the probe's contexts; below 1,000 none of them is synthetic.
    say: told each result as it comes, so that an interrupted run on a lent machine is not lost.
    """
    candidates = list(ladder.candidates(target))
    probes, differences, broken = [], [], set()
    for candidate in candidates:
        ladder.try_on(target, candidate)
        result = probe(target, PROBED, context_length)
        failure = f"width {result.failures[0][0]}: {result.failures[0][1]}" if result.failures else ""
        probes.append((candidate.name, result.passed, failure, result.inputs))
        say(f"probed {candidate.name}: widths {result.passed or 'none'} in {result.seconds:.1f} s {failure}")
        if "Error: " in failure:  # it cannot run here at all, so there is nothing to time
            broken.add(candidate.name)
        elif failure:
            where, found = explain_first(target, result.failures[0][0], context_length)
            lines = tuple(_shortest(found)) or (NOT_ONE_OPERATION,)
            differences.append((candidate.name, result.failures[0][0], where, lines))
            say("\n".join([f"width-dependent {where}:", *lines]))
    timed = [c for c in candidates if c.name not in broken]
    measured, controls = [], []
    for width in WIDTHS:
        times = _interleaved(target, timed, width, rounds)
        say(f"timed {width} rows: " + ", ".join(f"{n} {spread(ms).median:.2f} ms" for n, ms in times.items()))
        stock = times[candidates[0].name]
        controls.append(speed_ratio(times["stock again"], stock))
        for candidate in timed:
            ladder.try_on(target, candidate)
            calls = _calls(target, width)
            ms = times[candidate.name]
            measured.append(Measured(candidate.name, width, spread(ms), speed_ratio(ms, stock), calls))
    steps = _steps(target, rounds)
    decision = ladder.decide(target, PROBED, context_length)
    chunk = decision.engaged.chunk if decision.engaged else 0
    verdict = f"{decision.verdict.state.value}: {decision.verdict.kernel or 'no kernel'}. {decision.verdict.reason}"
    return Report(
        name, target.backend.name, verdict, tuple(probes), tuple(differences), spread(steps),
        tuple(measured), tuple(controls), chunk,
    )  # fmt: skip


def _shortest(found: Sequence[Difference]) -> Iterator[str]:
    """The first occurrence of each operation, in order."""
    seen = set()
    for difference in found:
        if difference.operation not in seen:
            seen.add(difference.operation)
            yield str(difference)


def _interleaved(
    target: Target, candidates: Sequence[ladder.Candidate], width: int, rounds: int
) -> dict[str, list[float]]:
    """Milliseconds per verify forward, every candidate once per round in an order drawn anew."""
    state = target.new_state()
    mx.eval(target.hidden(token_array(range(CONTEXT)), state), state.arrays())
    block = token_array(range(1, width + 1))
    mark = state.mark()
    named = [(c.name, c) for c in candidates] + [("stock again", candidates[0])]
    times: dict[str, list[float]] = {name: [] for name, _ in named}
    draw = random.Random(width)
    for round_ in range(rounds + 2):
        for name, candidate in draw.sample(named, len(named)):
            ladder.try_on(target, candidate)
            started = perf_counter()
            mx.eval(target.verify(block, state).logits)
            elapsed = (perf_counter() - started) * 1e3
            target.rollback(state, width, width)
            state.rewind(mark)
            if round_ >= 2:  # two warm-up rounds
                times[name].append(elapsed)
    return times


def _calls(target: Target, width: int) -> int:
    state = target.new_state()
    mx.eval(target.hidden(token_array(range(4)), state))
    before = target.scope.calls
    mx.eval(target.verify(token_array([1] * width), state).logits)
    return target.scope.calls - before


def _steps(target: Target, rounds: int) -> list[float]:
    state = target.new_state()
    mx.eval(target.hidden(token_array(range(CONTEXT)), state), state.arrays())
    mark, times = state.mark(), []
    for round_ in range(rounds + 2):
        started = perf_counter()
        mx.eval(target.step(token_array([1]), state).logits)
        if round_ >= 2:
            times.append((perf_counter() - started) * 1e3)
        state.rewind(mark)
    return times


def as_markdown(
    report: Report, machine: environment.Machine, synthetic: str, command: str, raw: str, stamp: str
) -> Iterator[str]:
    yield f"# Exactness candidates: {report.model}"
    yield ""
    yield f"On {report.device}, {date.today().isoformat()}. MLX {machine.environment.mlx}. Raw: `{raw}`."
    if stamp:
        yield from ("", f"**{stamp}**")
    if synthetic:
        yield ""
        yield f"**Synthetic: random 4-bit weights in the shape of {synthetic}. Costs and bytes only, no text.**"
    yield from ("", "## Verdict", "", report.verdict)
    yield from ("", f"## Probe, widths {', '.join(map(str, PROBED))}", "")
    yield from table(
        ("candidate", "widths passed", "first difference", "inputs"),
        [(n, ", ".join(map(str, w)) or "none", f or "-", str(i)) for n, w, f, i in report.probes],
    )
    yield from ("", "## Operations whose bytes depend on the width", "")
    yield "Each operation gets the inputs of single steps, as a block and row by row; its first occurrence is named."
    for candidate_name, width, where, lines in report.differences:
        yield from ("", f"{candidate_name}, {width} rows{f', {where}' if where else ''}:", "")
        yield from [f"- {line}" for line in lines]
    if not report.differences:
        yield from ("", "None.")
    yield from ("", "## Verify forward, milliseconds", "")
    yield f"One classic step: {_spread(report.step_ms)}. Context of {CONTEXT} tokens. forced_qmv chunk: {report.chunk}."
    yield ""
    yield from table(
        ("rows", "candidate", "median (min - max)", "n", "speed relative to stock", "kernel calls"),
        [(str(m.width), m.name, _spread(m.ms), str(m.ms.n), _ratio(m.speed), str(m.calls)) for m in report.measured],
    )
    yield ""
    for width, control in zip(WIDTHS, report.control, strict=True):
        yield f"- A/A at {width} rows, stock against stock: {_ratio(control)}."
    yield from ("", "## Not measured", "")
    yield "- Text: see `pacenote bench --check`. Other contexts, other devices, energy."
    yield "- A probe is evidence on its inputs, not a proof."
    yield from ("", "## Repeat", "", "```sh", command, "```")


def _spread(s: Spread) -> str:
    return f"{s.median:.3f} ({s.minimum:.3f} - {s.maximum:.3f})"


def _ratio(r: Ratio) -> str:
    return f"{r.median:.3f} [{r.low:.3f}, {r.high:.3f}]"


def measure(
    target: Target,
    name: str,
    synthetic: str,
    rounds: int,
    out: Path,
    command: str,
    stamp: str,
    context_length: int = 4096,
) -> Path:
    """Run and write the record (Markdown, JSON). Returns the Markdown file."""
    machine = environment.look()
    report = run(target, name, rounds, context_length, lambda line: print(line, file=sys.stderr, flush=True))
    device = hardware(report.device, machine.environment.cpus)
    stem = f"exactness-candidates-{synthetic or Path(name).name}-{device}-{date.today().isoformat()}"
    out.mkdir(parents=True, exist_ok=True)
    path = unused(out, stem)
    raw = path.with_suffix(".json")
    raw.write_text(json.dumps({"report": asdict(report), "machine": asdict(machine)}) + "\n", encoding="utf-8")
    lines = as_markdown(report, machine, synthetic, command, raw.name, stamp)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """For machines without a checkpoint; a real pair is measured by `pacenote bench --preset forced-qmv`."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench.candidates")
    parser.add_argument("--synthetic", choices=sorted(SHAPES), required=True)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--context", type=int, default=4096, help="longest context that is probed")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmark_results"))
    asked = parser.parse_args(argv)
    backend = backends.detect()
    backends.prepare(backend)
    target = random_target(asked.synthetic, backend)
    command = f"python -m engine.bench.candidates {' '.join(argv if argv is not None else sys.argv[1:])}"
    path = measure(
        target, f"random {asked.synthetic}", asked.synthetic, asked.rounds, asked.out, command, "", asked.context
    )
    sys.stdout.write(path.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
