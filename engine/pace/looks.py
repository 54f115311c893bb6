"""When to look at what is not being done: at speculation while parked, at classic decode while speculating.

What is not done is not measured. A look costs a little each time, so each kind has its budget.
"""

from __future__ import annotations

from statistics import median_low

FIRST_LOOK = 24
"""Classic tokens before the first look at speculation, for a pair of which nothing is known but a guess."""
PARKED_TOKENS = 96
"""Classic tokens between two looks at speculation, at least, over as many replies as it takes."""
FIRST_SHARE, SHARE = 0.15, 0.02
"""What a look may lose, as a share of the classic time since the last one; the first one of a stranger."""
READ_SHARE = 0.15
"""What the head may read for a look, as a share of the reply's time. Nobody waits five seconds for a measurement."""
CLASSIC_AFTER = 5
"""Speculative rounds before the first look at classic decode. Its cost at load may be of another machine state."""
CLASSIC_EVERY, CLASSIC_POWER = 64, 4
"""Speculative rounds between further ones, times this power of the lead: what is far ahead stays so, and near a draw
a look costs next to nothing."""
MOST_LEAD = 1.7
"""Lead that counts at most. A lead that was mismeasured must not keep anybody from looking again."""
CLASSIC_STEPS, FEWEST = 4, 3
"""Classic steps of such a look, and at the end of a reply. The first one fills the pipeline and teaches nothing about
costs."""
OTHER_AFTER, OTHER_EVERY = 8, 48
"""Speculative rounds before one round of the block size that was not seen for longest."""


class ParkedLooks:
    """Looks at speculation. They are paid for by the time that was parked."""

    def __init__(self, stranger: bool) -> None:
        self._until, self._share = (FIRST_LOOK, FIRST_SHARE) if stranger else (PARKED_TOKENS, SHARE)
        self._parked_ms = 0.0
        self._bill = 0.0

    def parked(self, tokens: int, milliseconds: float) -> None:
        """Classic tokens were written because nothing beats them."""
        self._until -= tokens
        self._parked_ms += milliseconds

    def due(self, loss: float, reading: float, reply_ms: float) -> bool:
        """Whether it is time.

        What the last one really lost counts as well: a device may compile or allocate at every new number of rows.

        Args:
            loss: milliseconds that one is expected to lose. reading: those of them in which the head reads the prompt.
            reply_ms: what the reply takes anyway. Of the rest of the loss a short reply bears a larger share than a
                long one. Were that held against it, a chat of short replies would never look at what was mismeasured.
        """
        paid = max(loss, self._bill) <= self._share * self._parked_ms
        return self._until <= 0 and paid and reading <= READ_SHARE * reply_ms

    def begin(self) -> None:
        """One begins now."""
        self._share, self._bill = SHARE, 0.0
        self.speculated()

    def pay(self, milliseconds: float) -> None:
        """A round of it lost so much against classic decode; negative where it won."""
        self._bill += milliseconds

    def speculated(self) -> None:
        """Speculation was seen: the waiting begins anew."""
        self._until, self._parked_ms = PARKED_TOKENS, 0.0


class ClassicLooks:
    """Looks at classic decode."""

    def __init__(self) -> None:
        self._until = float(CLASSIC_AFTER)
        self._at = 0
        self._seen: list[float] = []

    def due(self, left: float) -> bool:
        """left: tokens that the reply may have yet. Where no look fits in, the next reply is soon enough."""
        return self._until <= 0 and left >= FEWEST

    def begin(self, left: float) -> int:
        """One begins now. Returns its steps. If the reply ends within it, the next reply does not begin it again."""
        self._seen = []
        self._until = CLASSIC_EVERY
        return min(CLASSIC_STEPS, int(left))

    def step(self, milliseconds: float) -> None:
        """A step of one, with the pipeline filled."""
        self._seen.append(milliseconds)

    def cost(self) -> float | None:
        """Milliseconds of a step in the look that is done. None where too little was seen: one step may be a stall."""
        return median_low(self._seen) if len(self._seen) >= FEWEST - 1 else None

    def end(self, lead: float) -> None:
        """It is done. lead: speed of speculation relative to classic decode."""
        self._until = CLASSIC_EVERY * min(max(1.0, lead), MOST_LEAD) ** CLASSIC_POWER

    def classic_at(self, position: int) -> None:
        """A step at this position of the context was measured."""
        self._at = position

    def speculated(self, position: int) -> None:
        """A round was done there. A cost of a much longer or shorter context says little."""
        self._until -= 1
        if not self._at / 1.5 - 512 <= position <= self._at * 1.5 + 512:
            self._until = min(self._until, CLASSIC_AFTER)
            self._at = position

    def soon(self) -> None:
        """Its cost may no longer hold."""
        self._until = float(CLASSIC_AFTER)

    def not_now(self) -> None:
        """It was seen just now."""
        self._until = max(self._until, CLASSIC_AFTER)


class OtherLooks:
    """Single rounds at a block size that is not in use."""

    def __init__(self) -> None:
        self._until = OTHER_AFTER
        self._round = 0
        self._seen: dict[int, int] = {}

    def saw(self, width: int) -> None:
        self._round += 1
        self._until -= 1
        self._seen[width] = self._round

    def stalest(self, widths: list[int]) -> int:
        """The one of `widths` that was not seen for longest."""
        return min(widths, key=lambda w: self._seen.get(w, 0))

    def due(self) -> bool:
        return self._until <= 0

    def begin(self) -> None:
        self._until = OTHER_EVERY
