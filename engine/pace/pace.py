"""Which width next: the one with the most expected tokens per millisecond, here and now.

Text does not depend on the width, so the width may follow the clock freely. Width 1 is classic decode;
choosing it for a while is called parking, and has its reason. Two things make starting to speculate dear, and
are counted: the head first reads what it was only told (a prompt, a parked stretch), and the classic step that
is queued already is thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from engine.events import Notice, Round
from engine.pace import reasons
from engine.pace.model import KNOWN_WEIGHT, Acceptance, Costs
from engine.request import Speculation

MARGIN = 1.03
"""A width must promise 3 % more tokens per millisecond than the present one to replace it."""
FIRST_LOOK = 24
"""Classic tokens before the first look at speculation, for a pair of which nothing is known but a guess."""
PARKED_TOKENS = 96
"""Classic tokens between two looks at speculation while parked, at least, over as many replies as it takes."""
LOOK_ROUNDS = 4
"""Speculative rounds of one such look. The first one catches up and teaches nothing else."""
FIRST_SHARE, SHARE = 0.15, 0.02
"""What a look may be expected to lose, as a share of the classic time since the last; the first one of a stranger."""
CLASSIC_AFTER = 5
"""Speculative rounds before the first look at classic decode. Its cost at load may be of another machine state."""
CLASSIC_EVERY = 128
"""Speculative rounds between further ones, times the square of the lead: what is far ahead stays so."""
CLASSIC_STEPS = 3
"""Classic steps of such a look. The first one fills the pipeline and teaches nothing about costs."""
USUAL_REPLY = 128.0
"""Tokens of a reply, before any was seen."""


class Pace:
    """Chooses widths over the life of a loaded pair.

    Args:
        costs: measured at load, None when speculation is not available.
        widths: block sizes that passed the exactness probe.
        known: per-position acceptance of this pair in earlier sessions; None where there is no history.
    """

    def __init__(self, costs: Costs | None, widths: tuple[int, ...], known: float | None = None) -> None:
        self.costs = costs
        self.widths = widths
        self.acceptance = Acceptance() if known is None else Acceptance(known, KNOWN_WEIGHT)
        self._speculation = Speculation.ON
        self._width = 0  # 0: not decided yet in this reply
        self._pipelined = False  # a classic step is queued
        self._entry: int | None = None  # rows that the head catches up with in the round that comes
        self._prompt_rows = 0  # of which it was told before the reply began
        # The reply: tokens it may have, tokens it has, tokens that replies have.
        self._budget, self._done = 1, 0
        self._usual, self._replies = USUAL_REPLY, 0
        # Looks at speculation while parked.
        self._until_look, self._share = (FIRST_LOOK, FIRST_SHARE) if known is None else (PARKED_TOKENS, SHARE)
        self._parked_ms = 0.0
        self._look = 0
        # Looks at classic decode while speculating.
        self._classic_look = 0
        self._until_classic = float(CLASSIC_AFTER)
        self._looked: list[float] = []
        self._notices: list[Notice] = []
        self._allowed: list[int] = []
        self._rates: dict[int, float] = {}  # of block sizes; a parked reply asks at every token

    def begin(self, speculation: Speculation, block_size: int, budget: int) -> None:
        """A new reply of at most `budget` tokens. What was learned is kept; the width is decided afresh."""
        if self._done:
            # In proportions: one reply of a thousand tokens says little about the next one.
            self._replies += 1
            self._usual *= (self._done / self._usual) ** max(0.2, 1.0 / (self._replies + 1))
        self._budget, self._done = budget, 0
        self._speculation = speculation
        self._width, self._look, self._entry = 0, 0, None
        self._classic_look, self._looked, self._pipelined = 0, [], False
        self._rates.clear()
        off = speculation is Speculation.OFF or self.costs is None
        self._allowed = [] if off else [w for w in self.widths if w <= block_size]
        if speculation is Speculation.ALWAYS and self._allowed:
            rows = max(self._allowed)
            self._notices.append(Notice("width", f"{rows} rows in every round: speculation is set to always."))

    def next_width(self, waiting: int) -> int:
        """Rows of the next round; 1 is a classic step.

        Args:
            waiting: rows that the head was told and has not read, `HeadState.waiting`.
        """
        if self._done == 0:
            self._prompt_rows = waiting
        width = self._choose(waiting)
        if width > 1 and self._entry is None:
            self._entry, self._prompt_rows = waiting, 0
        return width

    def _choose(self, waiting: int) -> int:
        if self.costs is None or not self._allowed:
            return 1
        if self._speculation is Speculation.ALWAYS:
            return max(self._allowed)
        if self._classic_look > 0:
            return 1
        best = self._best(self.costs)
        if self._look > 0 or self._look_is_due(best, self.costs):
            return best
        if self._width > 1:
            if self._until_classic <= 0:
                self._classic_look = CLASSIC_STEPS
                return 1
            pays = self._rate(best, self.costs) >= self._rate(1, self.costs)
        else:
            pays = self._entering_pays(best, waiting, self.costs)
        self._switch(best if pays else 1, best, waiting, self.costs)
        return self._width

    def _left(self) -> float:
        """Tokens that the reply is expected to have yet. One that is long already is taken to be half done."""
        return max(1.0, min(self._budget - self._done, max(self._usual, self._done)))

    def _entry_ms(self, waiting: int, costs: Costs) -> float:
        """What it costs to begin to speculate, before any round is done."""
        return waiting * costs.read + (costs.round_ms(1) if self._pipelined else 0.0)

    def _entering_pays(self, width: int, waiting: int, costs: Costs) -> bool:
        left = self._left()
        speculative = self._entry_ms(waiting, costs) + left / self._rate(width, costs)
        return left * costs.round_ms(1) >= MARGIN * speculative

    def _look_is_due(self, width: int, costs: Costs) -> bool:
        """Whether to look at speculation now: some time was parked, and what a look loses is little beside it.

        Rows of this reply do not count: the head reads one in a small share of a classic step, now or later. Those
        of a long prompt do.
        """
        if self._width != 1 or self._until_look > 0:
            return False
        behind = costs.round_ms(width) - self.acceptance.expected_tokens(width) * costs.round_ms(1)
        loss = self._entry_ms(self._prompt_rows, costs) + LOOK_ROUNDS * max(0.0, behind)
        if loss > self._share * self._parked_ms:
            return False
        self._until_look, self._share, self._look = PARKED_TOKENS, SHARE, LOOK_ROUNDS
        costs.unsettle()
        return True

    def observe(self, round_: Round, detailed: bool) -> None:
        """Learn from a finished round. detailed: it was synchronised after each stage."""
        self._done += round_.emitted
        if round_.width > 1:
            self._observe_speculative(round_, detailed)
        else:
            self._observe_classic(round_)

    def _observe_speculative(self, round_: Round, detailed: bool) -> None:
        self._rates.clear()
        if self.costs is not None:
            if self._entry:
                self.costs.observe_entry(round_, self._entry)
            else:
                self.costs.observe(round_, detailed)
        self._entry, self._pipelined = 0, False
        self.acceptance.observe(round_)
        self._look = max(0, self._look - 1)
        self._until_classic -= 1
        self._until_look, self._parked_ms = PARKED_TOKENS, 0.0

    def _observe_classic(self, round_: Round) -> None:
        if self._pipelined and self.costs is not None:
            self.costs.observe(round_, detailed=False)
            if self._classic_look > 0:
                self._looked.append(round_.total_ms)
        self._entry, self._pipelined = None, True
        if self._classic_look > 0:
            self._end_classic_look()
        elif self._width == 1:
            self._until_look -= 1
            self._parked_ms += round_.total_ms

    def _end_classic_look(self) -> None:
        """One step of a look is done. After the last one its median replaces the cost: it was seldom seen before."""
        self._classic_look -= 1
        if self._classic_look == 0 and self._looked and self.costs is not None:
            self.costs.verify[1] = median(self._looked)
            self._looked = []
            lead = self._rate(self._width, self.costs) / self._rate(1, self.costs)
            self._until_classic = CLASSIC_EVERY * max(1.0, lead) ** 2

    @property
    def parked(self) -> bool:
        """Whether classic steps are being done because nothing beats them."""
        return self._speculation is Speculation.ON and self._width == 1

    def take_notices(self) -> list[Notice]:
        notices, self._notices = self._notices, []
        return notices

    def table(self) -> Mapping[int, tuple[float, float]]:
        """By width: expected tokens a round and milliseconds a round."""
        if self.costs is None:
            return {}
        return {w: (self.acceptance.expected_tokens(w), self.costs.round_ms(w)) for w in sorted(self.costs.verify)}

    def _rate(self, width: int, costs: Costs) -> float:
        if width == 1:
            return 1.0 / costs.round_ms(1)
        if width not in self._rates:
            self._rates[width] = self.acceptance.expected_tokens(width) / costs.round_ms(width)
        return self._rates[width]

    def _best(self, costs: Costs) -> int:
        best = max(self._allowed, key=lambda w: self._rate(w, costs))
        if self._width in self._allowed and self._rate(best, costs) < MARGIN * self._rate(self._width, costs):
            return self._width
        return best

    def _switch(self, width: int, best: int, waiting: int, costs: Costs) -> None:
        """Go over to a width and say why. best: the block size that was weighed against classic decode."""
        if width == self._width:
            return
        gain = self.acceptance.expected_tokens(best)
        if width > 1:
            if self._width == 1:
                self._notices.append(Notice("unpark", f"Speculating again with {width} rows."))
            self._notices.append(Notice("width", reasons.width(best, gain, costs, len(self._allowed))))
        elif self._width == 0 and self._rate(best, costs) >= MARGIN * self._rate(1, costs):
            self._notices.append(Notice("park", reasons.late_start(waiting, self._left(), gain, best, costs)))
        else:
            self._notices.append(Notice("park", reasons.rows_are_dear(best, gain, costs)))
        self._width = width
