"""What the pace knows: what each kind of round costs on this device, and how often drafts are accepted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from engine.events import Round

GUESS, GUESS_WEIGHT = 0.7, 10.0
"""Per-position acceptance, given that all earlier drafts were accepted, before anything was seen, and how many drafts
that is worth. Published pairs reach 0.65 to 0.9 at the first position (reference mtp.md 1.3, 5)."""
LEAST_WEIGHT, MOST_WEIGHT, DRAFTS_A_ROUND = 2.0, 6.0, 10.0
"""Rounds of evidence that the pair's mean is worth at a position: one more for so many drafts that it is of."""
MEMORY = 1000.0
"""Drafts that the pair's mean remembers."""
DECAY = 0.95
"""Weight that an observation keeps per further round: a memory of about 20 rounds."""
SETTLED = 0.15
"""Least weight of one more round in a cost. What a load or a long pause left behind gives way faster."""
STALL = 2.0
"""One round in a hundred stalls (a page fault, another program). It counts as at most twice the known cost."""
SPURIOUS = 0.5
"""A look that takes less than this share of the known cost replaces it. Nothing makes a round so fast by chance; the
cost was of a device that was not ready."""
NEAR = 0.2
"""Share by which a look may differ from a cost and still be averaged with it."""
FILL_WEIGHT = 0.25
"""Weight of one more first step of classic decode."""
READ_UNIT = 64.0
"""Rows of a catch-up that tell as much about a row's cost as about the cost of starting at all."""


@dataclass
class Costs:
    """Milliseconds on this device, measured at load and refined in use.

    rounds: a whole round by width, 1 is the classic step; what decides. draft, hook: the head's share, one head step
        with its LM head and the accept hook of a round, as far as stage times told. The rest is verify, rollback and
        host.
    read: one row of what the head catches up with when speculation starts. start: that it starts at all.
    fill: what the first classic step takes more than the next, which it builds as well.
    """

    rounds: dict[int, float]
    draft: float
    hook: float
    read: float = 0.0
    start: float = 0.0
    fill: float = 0.0
    _seen: dict[int, int] = field(default_factory=dict, repr=False)

    def verify_ms(self, width: int) -> float:
        """What is not the head's share of a round."""
        head = (width - 2) * self.draft + self.hook if width > 1 else 0.0
        return max(0.0, self.rounds[width] - head)

    def entry_ms(self, waiting: int, queued: bool) -> float:
        """What it costs to begin to speculate, before any round is done.

        waiting: rows that the head catches up with. queued: a classic step runs already, and is thrown away.
        """
        return self.start + waiting * self.read + (self.rounds[1] if queued else 0.0)

    def observe(self, round_: Round, detailed: bool, usual: bool) -> None:
        """Learn from a whole round whose head had nothing to catch up with.

        Args:
            detailed: it was synchronised after each stage, otherwise only its sum is known.
            usual: of a width that is in use. What makes it slower or faster with time (heat, other programs, a longer
                context) does so to all: what is not seen goes along. Of a look, it says something of its width only.
        """
        w, before, weight = round_.width, self.rounds[round_.width], self._weight(round_.width)
        now = _blend(before, round_.total_ms, weight)
        if not usual and round_.total_ms < SPURIOUS * before:
            now = round_.total_ms
        if usual:
            self.level(w, now)
        self.rounds[w] = now
        if detailed and w > 1:
            self.hook = _blend(self.hook, round_.hook_ms, weight)
            if w > 2:
                self.draft = _blend(self.draft, round_.draft_ms / (w - 2), weight)

    def observe_steps(self, milliseconds: Sequence[float]) -> None:
        """`observe` of classic steps in use, in the order they came."""
        now = self.rounds[1]
        for step in milliseconds:
            now = _blend(now, step, self._weight(1))
        self.level(1, now)
        self.rounds[1] = now

    def _weight(self, width: int) -> float:
        """Of one more round. The cost so far is worth two."""
        seen = self._seen[width] = self._seen.get(width, 0) + 1
        return max(SETTLED, 1.0 / (seen + 2))

    def level(self, width: int, milliseconds: float) -> None:
        """The machine is in a state in which a round of this width takes so long; what others cost goes along."""
        if (before := self.rounds[width]) and milliseconds:
            self.rounds = {v: ms * milliseconds / before for v, ms in self.rounds.items()}

    def look_at_classic(self, milliseconds: float) -> None:
        """Learn from a look of a few steps. What is near the cost so far may be noise of either; what is not counts."""
        before = self.rounds[1]
        near = abs(milliseconds - before) <= NEAR * before
        self.rounds[1] = (before + milliseconds) / 2 if near else milliseconds

    def observe_entry(self, round_: Round, waiting: int, queued: bool, usual: float) -> None:
        """Learn from the first round after classic decode, or of a reply. See `entry_ms`.

        Only the sum can be used: without stage times the milliseconds lie in whatever stage waits first. It is shared
        out between a row and the start as in normalised least squares.

        Args:
            usual: milliseconds of a round of this width that begins nothing.
        """
        expected = self.entry_ms(waiting, queued)
        surprise = round_.total_ms - usual - expected
        surprise = min(surprise, max(usual, expected))  # a stall
        rows = waiting / READ_UNIT
        step = 0.5 * surprise / (1.0 + rows * rows)
        self.start = max(0.0, self.start + step)
        self.read = max(0.0, self.read + step * rows / READ_UNIT)

    def observe_fill(self, milliseconds: float) -> None:
        """Learn from a classic step with nothing queued before it."""
        surprise = milliseconds - self.rounds[1] - self.fill
        surprise = min(surprise, max(self.rounds[1], self.fill))  # a stall
        self.fill = max(0.0, self.fill + FILL_WEIGHT * surprise)

    def unsettle(self) -> None:
        """After a long time of classic decode: what is seen of rounds next weighs more."""
        self._seen = {1: self._seen.get(1, 0)}


def _blend(old: float, new: float, weight: float) -> float:
    return old + weight * (min(new, STALL * old) - old) if old else new


@dataclass
class Acceptance:
    """Per-position acceptance with decay: tried and taken drafts at position 1, 2, ...

    All evidence fades every round, also that of positions which narrow blocks no longer test; what has faded
    is replaced by the estimate of the position before, and at the first one by the pair's mean. So one unlucky stretch
    cannot rule a width out for good, and a parked one is not followed by a guess.

    judged, accepted: drafts of this pair that were compared with the target's choice, and those that were right. In
        any text and at any position; a history to begin with.
    """

    judged: float = 0.0
    accepted: float = 0.0
    tried: dict[int, float] = field(default_factory=dict)
    taken: dict[int, float] = field(default_factory=dict)

    def observe(self, round_: Round) -> None:
        self.fade(DECAY)
        # Beyond the first rejection nothing was tested. Behind the end of a reply there is no text.
        accepted = min(round_.accepted, round_.emitted)
        tested = accepted if round_.cut else min(accepted + 1, round_.drafted)
        for position in range(1, tested + 1):
            self.tried[position] = self.tried.get(position, 0.0) + 1.0
            self.taken[position] = self.taken.get(position, 0.0) + (position <= accepted)
        self.judged, self.accepted = self.judged + tested, self.accepted + accepted
        if self.judged > MEMORY:
            self.judged, self.accepted = MEMORY, self.accepted * MEMORY / self.judged

    def fade(self, keep: float) -> None:
        """Let all evidence of the present text weigh `keep` of what it did."""
        for position in self.tried:
            self.tried[position] *= keep
            self.taken[position] *= keep

    @property
    def mean(self) -> float:
        """Chance that a draft of this pair is accepted, given that all before it in its block were."""
        return (GUESS_WEIGHT * GUESS + self.accepted) / (GUESS_WEIGHT + self.judged)

    def at(self, position: int) -> float:
        """Chance that the draft at a position is accepted, given that all before it were."""
        return next(islice(self._chances(), position - 1, None))

    def _chances(self) -> Iterator[float]:
        """`at` of position 1, 2, ..."""
        weight = min(MOST_WEIGHT, LEAST_WEIGHT + self.judged / DRAFTS_A_ROUND)
        chance = self.mean
        for position in count(1):
            chance = (self.taken.get(position, 0.0) + weight * chance) / (self.tried.get(position, 0.0) + weight)
            yield chance

    def expected_tokens(self, width: int) -> float:
        expected, all_right = 1.0, 1.0
        for chance in islice(self._chances(), width - 1):
            all_right *= chance
            expected += all_right
        return expected
