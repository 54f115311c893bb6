"""Measure what each kind of round costs here, at load, within a small budget of time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import chain
from statistics import median
from time import monotonic, perf_counter
from typing import NamedTuple

import mlx.core as mx

from engine import power
from engine.arrays import token_array
from engine.chat.prompt import plan
from engine.chat.tokenizer import Tokenizer
from engine.decode import Line, classic, prefill, speculative
from engine.drafter import Drafter, HeadState
from engine.events import Notice, Round
from engine.pace import Acceptance, Costs, Pace
from engine.request import Message, Sampler
from engine.sampling import Chooser
from engine.target import Rows, Target

BUDGET = 2.0
"""Seconds, all widths together. A device on which two rounds of each kind take longer takes longer."""
QUESTION = "Tell a short story about a lighthouse."
"""What is answered meanwhile: costs hardly depend on the text, acceptance does."""
TURNS, ROUNDS = 2, 3
"""Rounds of each kind, at most, in each of two turns: a machine that warms up meanwhile does so for all kinds. The
first round of a loop comes on top; it fills the pipeline and does not count."""
READ_ROWS, READ_TILES, READS = 16, 4, 2
"""Catch-ups of so many rows of the prompt, and of this many times as many, each read so often; the quickest counts."""

ASK_EVERY, MEASURE_EVERY = 30.0, 120.0
"""Seconds between two questions about power and heat, some 20 ms each, and between two measurements."""


class Sample(NamedTuple):
    """A prompt to decode from while measuring, and the tokens that end a reply."""

    prompt: tuple[int, ...]
    ends: frozenset[int]


def sample(tokenizer: Tokenizer) -> Sample:
    """`QUESTION` as a chat would ask it.

    Raises:
        CheckpointError: the chat template refuses it.
    """
    return Sample(plan(tokenizer, (Message("user", QUESTION),), None).fresh, tokenizer.eos_ids)


class Measured(NamedTuple):
    """judged, accepted: drafts that were compared with the target's own choice on the way, and those that were right.
    Few, of one text, and greedy; but of this pair, where nothing else may be known of it."""

    costs: Costs
    judged: float
    accepted: float

    def pace(self, widths: tuple[int, ...], judged: float = 0.0, accepted: float = 0.0) -> Pace:
        """A pace that begins with this, and with a history of drafts. Each has costs of its own."""
        seen = Acceptance(self.judged + judged, self.accepted + accepted)
        return Pace(deepcopy(self.costs), widths, seen)


def measure(target: Target, drafter: Drafter, widths: Sequence[int], sample: Sample) -> Measured:
    """Milliseconds of a classic step and of a round at each width, on a short context.

    The decode loops themselves run: on a GPU classic decode builds the next step while this one runs, so a step
    that is waited for costs more than a step of a reply, and speculation would look better than it is.
    """
    started = perf_counter()
    # A tokenizer may write tokens that the model does not have. A reply says so; here it must only not crash.
    prompt = [token % target.vocab_size for token in sample.prompt]
    line = _begin(target, prompt)
    # Whole rounds as replies have them, and once more, of the widest, with a synchronisation after each stage: what
    # the head's share is. The synchronisations themselves must not count.
    kinds = [(1, False), *((width, False) for width in widths), (max(widths), True)]
    runs: list[list[list[Round]]] = [[] for _ in kinds]
    slots = TURNS * len(kinds)
    for slot in range(slots):
        if slot >= len(kinds) and perf_counter() > started + BUDGET:
            break
        n = slot % len(kinds)
        runs[n].append(_few(target, drafter, line, *kinds[n], started + BUDGET * (slot + 1) / slots))
    *whole, staged = ([round_ for run in of_kind for round_ in run[1:]] for of_kind in runs)
    drafting = [r.draft_ms / (r.width - 2) for r in staged if r.width > 2]
    costs = Costs(
        {width: median(r.total_ms for r in rounds) for (width, _), rounds in zip(kinds[:-1], whole, strict=True)},
        draft=median(drafting) if drafting else 0.0,
        hook=min(r.hook_ms for r in staged),
        read=_read_ms(target, drafter, prompt),
    )
    in_order = sorted(chain.from_iterable(chain.from_iterable(runs)), key=lambda round_: round_.index)
    seen = _accepted(in_order, sample.ends)
    return Measured(costs, seen.judged, seen.accepted)


def _begin(target: Target, prompt: Sequence[int]) -> Line:
    """A greedy reply that never ends, its first token chosen."""
    state, head = target.new_state(), HeadState()
    *_, rows = prefill(target, prompt, state, head, threading.Event())
    assert isinstance(rows, Rows)
    return Line.begin(state, head, rows, Chooser(Sampler(), 0, target.vocab_size, prompt), lambda _: None)


def _accepted(rounds: Sequence[Round], ends: frozenset[int]) -> Acceptance:
    """What the rounds tell of the head. Behind the end of a reply there is no text."""
    seen = Acceptance()
    for round_ in rounds:
        if not ends.isdisjoint(round_.tokens):
            break
        seen.observe(round_)
    return seen


def _read_ms(target: Target, drafter: Drafter, prompt: Sequence[int]) -> float:
    """Milliseconds of one more row that the head catches up with."""
    ids = token_array(prompt[:READ_ROWS])
    hidden = target.hidden(ids, target.new_state())

    def spent(ids: mx.array, hidden: mx.array) -> float:
        head = HeadState()
        head.tell(ids, hidden)
        started = perf_counter()
        mx.eval(drafter.accept_hook(head))
        return (perf_counter() - started) * 1e3

    many = mx.tile(ids, READ_TILES), mx.tile(hidden, (READ_TILES, 1))
    mx.eval(hidden, many)
    least, most = min(spent(ids, hidden) for _ in range(READS)), min(spent(*many) for _ in range(READS))
    return max(0.0, most - least) / (many[0].shape[0] - ids.shape[0])


def _few(target: Target, drafter: Drafter, line: Line, width: int, detailed: bool, deadline: float) -> list[Round]:
    """A loop's first round, which does not count, and up to `ROUNDS` more of one width; at least one."""
    never, rounds = threading.Event(), list[Round]()

    def enough() -> bool:
        return len(rounds) > ROUNDS or (len(rounds) > 1 and perf_counter() > deadline)

    loop: Iterator[Round]
    if width == 1:
        loop = classic(target, line, never, enough)
    else:
        loop = speculative(target, drafter, line, never, lambda: 1 if enough() else width, detailed)
    for round_ in loop:  # not extend: `enough` looks at them on the way
        rounds.append(round_)
    return rounds


class CostWatch:
    """Measures the costs afresh when power or heat are not as they were at the last measurement.

    clock: seconds, for tests.
    """

    def __init__(
        self,
        target: Target,
        drafter: Drafter,
        widths: Sequence[int],
        sample: Sample,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._target, self._drafter, self._widths, self._sample = target, drafter, tuple(widths), sample
        self._clock = clock
        self._state = power.state()
        self._looked = self._measured = clock()

    def look(self) -> tuple[Costs, Notice] | None:
        """Before a reply's second token. None: nothing has changed, or it is too soon to ask or to measure again.

        Otherwise new costs, which take `BUDGET` seconds: a machine that is at the limit of its heat all the time must
        not measure all the time.
        """
        if (clock := self._clock()) < self._looked + ASK_EVERY:
            return None
        self._looked = clock
        now = power.state()
        if now == self._state or clock < self._measured + MEASURE_EVERY:
            return None
        self._measured = clock
        before, self._state = self._state, now
        text = f"Power is now {now}, was {before}: costs are measured afresh."
        return measure(self._target, self._drafter, self._widths, self._sample).costs, Notice("pace", text)
