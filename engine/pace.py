"""Which width next: the one with the most expected tokens per millisecond, here and now.

Text does not depend on the width, so the width may follow the clock freely. Width 1 is classic decode;
choosing it for a while is called parking, and has its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from engine.events import Notice, Round
from engine.request import Speculation

PRIOR_ACCEPTANCE = 0.6
"""Per-position acceptance, given that all earlier drafts were accepted, before anything was seen."""
PRIOR_WEIGHT = 2.0
"""Rounds of evidence that the prior is worth."""
KNOWN_WEIGHT = 6.0
"""Likewise, where it is this pair's own history."""
DECAY = 0.95
"""Weight that an observation keeps per further round: a memory of about 20 rounds."""
MARGIN = 1.03
"""A width must promise 3 % more tokens per millisecond than the present one to replace it."""
FIRST_LOOK = 24
"""Classic tokens before the first look at speculation, for a pair of which nothing is known but a guess."""
PARKED_TOKENS = 96
"""Classic tokens between two looks at speculation while parked, over as many replies as it takes."""
LOOK_ROUNDS = 3
"""Speculative rounds of one such look: enough to refresh the costs, cheap beside 96 tokens."""
CLASSIC_AFTER = 12
"""Speculative rounds before the first look at classic decode. Its cost at load may be of another machine state."""
CLASSIC_EVERY = 128
"""Speculative rounds between further ones, times the square of the lead: what is far ahead stays so."""
CLASSIC_STEPS = 3
"""Classic steps of such a look. The first one fills the pipeline and teaches nothing about costs."""


@dataclass
class Costs:
    """Milliseconds of one forward of each kind on this device, measured at load and refined in use.

    verify: by width, 1 is the classic step. draft: one head step with its LM head. hook: by number of rows.
    """

    verify: dict[int, float]
    draft: float
    hook: float

    def round_ms(self, width: int) -> float:
        if width == 1:
            return self.verify[1]
        return self.verify[width] + (width - 2) * self.draft + self.hook

    def observe(self, round_: Round) -> None:
        def blend(old: float, new: float) -> float:
            # One round in a hundred stalls (a page fault, another program). It must not decide anything.
            return old + 0.15 * (min(new, 3.0 * old) - old)

        w = round_.width
        if w == 1:
            self.verify[1] = blend(self.verify[1], round_.verify_ms + round_.host_ms)
            return
        self.verify[w] = blend(self.verify[w], round_.verify_ms + round_.rollback_ms + round_.host_ms)
        if w > 2 and round_.draft_ms > 0:
            self.draft = blend(self.draft, round_.draft_ms / (w - 2))
        self.hook = blend(self.hook, round_.hook_ms)


@dataclass
class Acceptance:
    """Per-position acceptance with decay: tried and taken drafts at position 1, 2, ...

    All evidence fades every round, also that of positions which narrow blocks no longer test; what has faded
    is replaced by the estimate of the position before. So one unlucky stretch cannot rule a width out for good.
    """

    prior: float = PRIOR_ACCEPTANCE
    weight: float = PRIOR_WEIGHT
    tried: dict[int, float] = field(default_factory=dict)
    taken: dict[int, float] = field(default_factory=dict)

    def observe(self, round_: Round) -> None:
        for position in self.tried:
            self.tried[position] *= DECAY
            self.taken[position] *= DECAY
        tested = min(round_.accepted + 1, round_.drafted)  # beyond the first rejection nothing was tested
        for position in range(1, tested + 1):
            self.tried[position] = self.tried.get(position, 0.0) + 1.0
            self.taken[position] = self.taken.get(position, 0.0) + (position <= round_.accepted)

    def at(self, position: int) -> float:
        """Chance that the draft at a position is accepted, given that all before it were."""
        before = self.prior if position == 1 else self.at(position - 1)
        tried, taken = self.tried.get(position, 0.0), self.taken.get(position, 0.0)
        return (taken + self.weight * before) / (tried + self.weight)

    def expected_tokens(self, width: int) -> float:
        expected, chance = 1.0, 1.0
        for position in range(1, width):
            chance *= self.at(position)
            expected += chance
        return expected


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
        self._limit = 3
        self._width = 0  # 0: not decided yet in this reply
        self._until_look = FIRST_LOOK if known is None else PARKED_TOKENS
        self._look = 0
        self._classic_look = 0
        self._until_classic = float(CLASSIC_AFTER)
        self._looked: list[float] = []
        self._pipelined = False
        self._notices: list[Notice] = []

    def begin(self, speculation: Speculation, block_size: int) -> None:
        """A new reply. Acceptance and costs are kept; the width is decided afresh."""
        self._speculation, self._limit = speculation, block_size
        self._width, self._look = 0, 0
        self._classic_look, self._looked, self._pipelined = 0, [], False
        allowed = self._allowed()
        if speculation is Speculation.ALWAYS and allowed:
            self._notices.append(Notice("width", f"{max(allowed)} rows in every round: speculation is set to always."))

    def next_width(self) -> int:
        """Rows of the next round; 1 is a classic step."""
        allowed = self._allowed()
        if self.costs is None or not allowed:
            return 1
        if self._speculation is Speculation.ALWAYS:
            return max(allowed)
        if self._look > 0:
            return self._best(allowed, self.costs)[0]
        if self._classic_look > 0:
            return 1
        best, rate = self._best(allowed, self.costs)
        classic = 1.0 / self.costs.round_ms(1)
        if self._until_classic <= 0 and self._width > 1:
            self._classic_look = CLASSIC_STEPS
            return 1
        keep = 1.0 if self._width > 1 else MARGIN  # hysteresis around the present state
        if rate >= keep * classic:
            self._switch(best, allowed)
        else:
            self._switch(1, allowed)
        return self._width

    def _allowed(self) -> list[int]:
        off = self._speculation is Speculation.OFF or self.costs is None
        return [] if off else [w for w in self.widths if w <= self._limit]

    def observe(self, round_: Round) -> None:
        """Learn from a finished round."""
        if self.costs is not None and (round_.width > 1 or self._pipelined):
            self.costs.observe(round_)
            if self._classic_look > 0:
                self._looked.append(round_.total_ms)
        self._pipelined = round_.width == 1
        if round_.width > 1:
            self.acceptance.observe(round_)
            self._look = max(0, self._look - 1)
            self._until_classic -= 1
            self._until_look = PARKED_TOKENS
        elif self._classic_look > 0:
            self._end_classic_look()
        elif self._width == 1:
            self._until_look -= 1
            if self._until_look <= 0:
                self._until_look, self._look = PARKED_TOKENS, LOOK_ROUNDS

    def _end_classic_look(self) -> None:
        """One step of a look is done. After the last one its median replaces the cost: it was seldom seen before."""
        self._classic_look -= 1
        if self._classic_look == 0 and self._looked and self.costs is not None:
            self.costs.verify[1] = median(self._looked)
            self._looked = []
            lead = self._rate(self._width, self.costs) * self.costs.round_ms(1)
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
        return self.acceptance.expected_tokens(width) / costs.round_ms(width)

    def _best(self, allowed: list[int], costs: Costs) -> tuple[int, float]:
        best = max(allowed, key=lambda w: self._rate(w, costs))
        rate = self._rate(best, costs)
        if self._width in allowed and rate < MARGIN * self._rate(self._width, costs):
            best = self._width
        return best, self._rate(best, costs)

    def _switch(self, width: int, allowed: list[int]) -> None:
        if width == self._width:
            return
        costs = self.costs
        if costs is not None and width == 1:
            best = max(allowed, key=lambda w: self._rate(w, costs))
            ratio = costs.verify[best] / costs.verify[1]
            gain = self.acceptance.expected_tokens(best)
            cost = costs.round_ms(best) / costs.round_ms(1)
            self._notices.append(
                Notice(
                    "park",
                    f"Parked: a {best}-row verify costs {ratio:.1f} x one row here. With drafting and accept hook a "
                    f"round costs {cost:.1f} classic steps and gives about {gain:.1f} tokens.",
                )
            )
        elif self._width == 1:
            self._notices.append(Notice("unpark", f"Speculating again with {width} rows."))
        if costs is not None and width > 1:
            gain, milliseconds = self.acceptance.expected_tokens(width), costs.round_ms(width)
            self._notices.append(
                Notice(
                    "width",
                    f"{width} rows: expected to give {gain:.2f} tokens in {milliseconds:.1f} ms, "
                    f"{gain * costs.round_ms(1) / milliseconds:.2f}x classic; the best of {len(allowed)} block sizes.",
                )
            )
        self._width = width
