"""A target of random weights, heads whose drafts are forced to a stated acceptance, and one reply at a time on them."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import mlx.core as mx
from mlx.utils import tree_flatten

from engine import backend as backends
from engine.arrays import token_array
from engine.bench.arms import first_chosen
from engine.bench.statistics import Spread, spread
from engine.bench.synthetic import random_head, random_target
from engine.calibrate import Sample, measure
from engine.decode import Line, classic, paced, prefill, speculative
from engine.drafter import Drafter, HeadState
from engine.events import DrafterInfo, Notice, ReplyStats, Round
from engine.exactness import ladder
from engine.request import Sampler, Speculation
from engine.sampling import Chooser
from engine.target import Rows
from engine.telemetry.stats import StatsBuilder

PROMPT = 64
"""Random prompt tokens."""
WIDTH = 3
NEVER = threading.Event()
CLASSIC = "classic"
PACED = "quantized head, paced"


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
        sample = Sample(tuple(prompt), frozenset())
        self.pace = measure(self.target, self.drafters["quantized head"], (2, WIDTH), sample).pace((2, WIDTH))
        self.pace_at_load = self.pace.table()

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
        return first_chosen(state, head, self._rows, chooser, self.tokens)

    def run(self, arm: str, *, detailed: bool = False) -> Run:
        line = self.line(follow=arm != CLASSIC)
        tokens, stats = [line.last], StatsBuilder()
        mx.synchronize()
        started = perf_counter()
        rounds: Iterator[Round | Notice]
        if arm == CLASSIC:
            rounds = classic(self.target, line, NEVER, lambda: False)
        elif arm == PACED:
            self.pace.begin(Speculation.ON, WIDTH, self.tokens - 1, line.waiting)
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
