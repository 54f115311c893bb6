"""What the pace knows: what each kind of round costs on this device, and how often drafts are accepted."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.events import Round

PRIOR_ACCEPTANCE = 0.7
"""Per-position acceptance, given that all earlier drafts were accepted, before anything was seen. Published pairs
reach 0.65 to 0.9 at the first position (reference mtp.md 1.3, 5)."""
PRIOR_WEIGHT = 2.0
"""Rounds of evidence that the prior is worth."""
KNOWN_WEIGHT = 6.0
"""Likewise, where it is this pair's own history."""
DECAY = 0.95
"""Weight that an observation keeps per further round: a memory of about 20 rounds."""
SETTLED = 0.15
"""Least weight of one more round in a cost. What a load or a long pause left behind gives way faster."""
STALL = 2.0
"""One round in a hundred stalls (a page fault, another program). It counts as at most twice the known cost."""
READ_ROWS = 16
"""Rows of a catch-up from which on its time tells what a row costs."""


@dataclass
class Costs:
    """Milliseconds of one forward of each kind on this device, measured at load and refined in use.

    verify: by width, 1 is the classic step. draft: one head step with its LM head. hook: the accept hook of a round.
    read: one more row of a catch-up, when the head takes in a prompt or a parked stretch.
    """

    verify: dict[int, float]
    draft: float
    hook: float
    read: float = 0.0
    _seen: dict[int, int] = field(default_factory=dict, repr=False)

    def round_ms(self, width: int) -> float:
        return self.verify[width] + self._head_ms(width)

    def set_round(self, width: int, milliseconds: float) -> None:
        """A whole round takes so long: what is not the head's share is verify."""
        self.verify[width] = max(0.0, milliseconds - self._head_ms(width))

    def _head_ms(self, width: int) -> float:
        return (width - 2) * self.draft + self.hook if width > 1 else 0.0

    def observe(self, round_: Round, detailed: bool) -> None:
        """Learn from a round whose head had nothing to catch up with.

        detailed: it was synchronised after each stage. Otherwise only its sum is known, and what is not known to be
        drafting or accept hook is taken to be verify.
        """
        w = round_.width
        seen = self._seen[w] = self._seen.get(w, 0) + 1
        weight = max(SETTLED, 1.0 / (seen + 2))  # the cost so far is worth two rounds

        def blend(old: float, new: float) -> float:
            return old + weight * (min(new, STALL * old) - old)

        if w == 1:
            self.verify[1] = blend(self.verify[1], round_.verify_ms + round_.host_ms)
            return
        if not detailed:
            self.set_round(w, blend(self.round_ms(w), round_.total_ms))
            return
        self.verify[w] = blend(self.verify[w], round_.verify_ms + round_.rollback_ms + round_.host_ms)
        if w > 2:
            self.draft = blend(self.draft, round_.draft_ms / (w - 2))
        self.hook = blend(self.hook, round_.hook_ms)

    def observe_entry(self, round_: Round, waiting: int) -> None:
        """Learn from a round that began with `waiting` rows of catch-up.

        Without detailed timing their milliseconds lie in whatever stage waits first, so only the sum can be used.
        """
        if waiting >= READ_ROWS:
            read = max(0.0, round_.total_ms - self.round_ms(round_.width)) / waiting
            self.read += 0.5 * (min(read, STALL * self.read) - self.read) if self.read else read

    def unsettle(self) -> None:
        """After a long pause: what is seen next weighs as much as all that was known."""
        self._seen.clear()


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
