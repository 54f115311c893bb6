"""Measure what each kind of round costs here, at load, within a small budget of time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import deepcopy
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

BUDGET, PATIENCE = 2.1, 10.0
"""Seconds of the turns that count, and of all but the first. A device on which a turn takes longer takes longer."""
QUESTION = "Tell a short story about a lighthouse."
"""What is answered meanwhile: costs hardly depend on the text, acceptance does."""
TURNS, STEPS = 24, 4
"""Turns through all kinds of rounds, as many as the budget has time for: classic steps, and a block of every size. What
is compared is thus of one time: a machine may be faster a second later."""
WARM = 1.5
"""Turns that take more than this many times the quickest do not count. A GPU compiles or prepares something at every
new number of rows, an H200 for 0.2 seconds each, and for more than the first few."""
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
    # A tokenizer may write tokens that the model does not have. A reply says so; here it must only not crash.
    prompt = [token % target.vocab_size for token in sample.prompt]
    line = _begin(target, prompt)
    rounds: list[Round] = []
    turns: list[_Turn] = []
    while not _enough(turns):
        begun = perf_counter()
        steps, blocks = _steps(target, line), _blocks(target, drafter, line, widths)
        rounds += *steps, *blocks
        # The first round of a loop fills its pipeline, or reads what the head was told.
        turns.append(_Turn(perf_counter() - begun, steps[0].total_ms, (*steps[1:], *blocks[1:])))
    turns = _warm(turns)
    counted = [round_ for turn in turns for round_ in turn.rounds]
    # As replies have them. Once more with a synchronisation after each stage: what the head's share is.
    width = min(widths, key=lambda width: abs(width - 3))
    first, *staged = _blocks(target, drafter, line, [width] * 2, detailed=True)
    usual = {n: median(round_.total_ms for round_ in counted if round_.width == n) for n in (1, *widths)}
    costs = Costs(
        usual,
        draft=min(round_.draft_ms for round_ in staged) / (width - 2) if width > 2 else 0.0,
        hook=min(round_.hook_ms for round_ in staged),
        read=_read_ms(target, drafter, prompt),
        fill=max(0.0, median(turn.first_ms for turn in turns) - usual[1]),
    )
    seen = _accepted([*rounds, first, *staged], sample.ends)
    return Measured(costs, seen.judged, seen.accepted)


def _begin(target: Target, prompt: Sequence[int]) -> Line:
    """A greedy reply that never ends, its first token chosen."""
    state, head = target.new_state(), HeadState()
    *_, rows = prefill(target, prompt, state, head, threading.Event())
    assert isinstance(rows, Rows)
    return Line.begin(state, head, rows, Chooser(Sampler(), 0, target.vocab_size, prompt), lambda _: None)


class _Turn(NamedTuple):
    """Once through all kinds of rounds. first_ms: a classic step that fills the pipeline. rounds: those that count."""

    seconds: float
    first_ms: float
    rounds: tuple[Round, ...]


def _warm(turns: Sequence[_Turn]) -> list[_Turn]:
    """Those in which little was prepared that later ones found ready."""
    quickest = min(turn.seconds for turn in turns)
    return [turn for turn in turns if turn.seconds <= WARM * quickest]


def _enough(turns: Sequence[_Turn]) -> bool:
    """Whether there is no time for more, and two turns are alike: the first one may have compiled all the time."""
    if len(turns) < 2:
        return False
    warm = _warm(turns)
    over = sum(turn.seconds for turn in warm) + warm[-1].seconds > BUDGET
    late = sum(turn.seconds for turn in turns[1:]) > PATIENCE
    return len(turns) == TURNS or late or (over and len(warm) > 1)


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


def _steps(target: Target, line: Line) -> list[Round]:
    """One classic step more than `STEPS`."""
    rounds: list[Round] = []
    for round_ in classic(target, line, threading.Event(), lambda: len(rounds) > STEPS):
        rounds.append(round_)  # not extend: it is asked on the way
    return rounds


def _blocks(
    target: Target, drafter: Drafter, line: Line, widths: Sequence[int], *, detailed: bool = False
) -> list[Round]:
    """A block of the first width, and then one of each."""
    left = iter([widths[0], *widths])
    return list(speculative(target, drafter, line, threading.Event(), lambda: next(left, 1), detailed))


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
