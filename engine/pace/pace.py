"""Which width next: the one with the most expected tokens per millisecond, here and now.

Text does not depend on the width, so the width may follow the clock freely. Width 1 is classic decode; settling
on it is called parking, and has its reason. Starting to speculate has a price of its own (docs/adr 0009).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from engine.events import Notice, Round
from engine.pace import reasons
from engine.pace.forecast import Forecast
from engine.pace.looks import ClassicLooks, OtherLooks, ParkedLooks
from engine.pace.model import Acceptance, Costs
from engine.request import Speculation

MARGIN = 1.03
"""A width must promise 3 % more tokens per millisecond than the present one to replace it."""
LEAVE = 0.99
"""Share of classic decode's speed below which speculation parks. Between this and MARGIN all stays as it is."""
LEAST_GAIN = 1.0
"""Classic steps that a start must save besides. How many blocks ten tokens take is not known any better, and 3 % of
them are a third of a step."""
SHORTEST = 8.0
"""Tokens to come, at least, when blocks are weighed against each other: the width need not follow a reply's last ones.
"""
LOOK_ROUNDS = 4
"""Rounds of a look at speculation. The first one catches up and teaches nothing else."""
STRANGER = 200.0
"""Drafts that a pair's mean acceptance must be of for it to be more than a guess."""
RECENT, LEAST_STEPS, LEAST_BLOCKS = 5, 3, 2
"""Latest rounds that tell what the width in use costs now, and without how many of them in a reply there is no look:
classic steps, or blocks. A machine is slower in one reply than in another, and only costs of one state compare."""
REVIEW = 8
"""Parked steps between two decisions. One takes 0.07 ms, which is 3 % of a step on an H200, and a step changes little.
The first one falls as soon as there can be a look: a chat may have no reply of nine tokens.
"""
FADE = 0.5
"""Weight that acceptance keeps over a long time of classic decode. The text may be another now."""


class Pace:
    """Chooses widths over the life of a loaded pair. Decisions fall in `begin` and `observe`; `width` only tells.

    Args:
        costs: measured at load; the pace refines them.
        widths: block sizes that passed the exactness probe.
        acceptance: with this pair's history, and what the load saw; None where nothing is known.
    """

    def __init__(self, costs: Costs, widths: tuple[int, ...], acceptance: Acceptance | None = None) -> None:
        self.costs = costs
        self.acceptance = acceptance or Acceptance()
        self._widths = widths
        self._allowed: list[int] = []
        self._speculation = Speculation.ON
        self._settled = 0  # the width that was chosen; 0: not yet in this reply
        self._plan: list[int] = []  # widths of a look, before going on with the one that was chosen
        # What the next round pays if it is speculative: rows to catch up with (None: it goes on), a step thrown away.
        self._waiting: int | None = 0
        self._queued = False
        self._entry: tuple[Round, int, bool] | None = None  # the round that began to speculate, not yet learned from
        self._recent: deque[float] = deque(maxlen=RECENT)  # milliseconds of rounds of the chosen width, in this reply
        self._steps: list[Round] = []  # parked steps, not yet learned from
        self._forecast = Forecast()
        self._parked_looks = ParkedLooks(self.acceptance.judged < STRANGER)
        self._classic_looks = ClassicLooks()
        self._other_looks = OtherLooks()
        # Rows that waited when the reply began, if they still do. Milliseconds that not reading them has cost: in this
        # reply, and in earlier ones of what seems to be the same chat.
        self._prompt, self._missed, self._forgone = 0, 0.0, 0.0
        self._gains: dict[int, float] = {}  # expected tokens; a parked reply asks at every token
        self._notices: list[Notice] = []

    def renew(self, costs: Costs) -> None:
        """Between two replies: the machine is in another state, and these are its costs."""
        self._learn_parked()
        self.costs = costs
        self._classic_looks.soon()
        self._parked_looks.speculated()

    def begin(self, speculation: Speculation, block_size: int, budget: int, waiting: int) -> None:
        """A new reply. What was learned is kept; the width is decided afresh.

        Args:
            speculation: ON or ALWAYS. Without it there is nothing to decide.
            budget: tokens that the reply may have yet.
            waiting: rows that the head was told and has not read, `HeadState.waiting`.
        """
        self._learn_parked()
        self._forecast.begin(budget)
        self._gains.clear()
        self._recent.clear()
        self._speculation, self._settled, self._plan = speculation, 0, []
        self._waiting, self._queued, self._entry = waiting, False, None
        # A prompt that grew without having been read is the same chat's, or as good as.
        self._forgone = self._forgone + self._missed if waiting > self._prompt else 0.0
        self._prompt, self._missed = waiting, 0.0
        self._allowed = [w for w in self._widths if w <= block_size]
        if not self._allowed:
            self._settled = 1
            self._notices.append(Notice("decline", reasons.too_narrow(block_size, self._widths)))
        elif speculation is Speculation.ALWAYS:
            self._settled = max(self._allowed)
            self._notices.append(Notice("width", reasons.always(self._settled)))
        else:
            self._decide()

    @property
    def width(self) -> int:
        """Rows of the next round; 1 is a classic step."""
        return self._plan[0] if self._plan else self._settled

    @property
    def parked(self) -> bool:
        """Whether the next classic step is one because speculation would not pay."""
        return self._speculation is Speculation.ON and self._settled == 1 and bool(self._allowed)

    def observe(self, round_: Round, *, waiting: int, detailed: bool, ended: bool) -> None:
        """Learn from a finished round, and decide about the next.

        Args:
            waiting: as in `begin`, now.
            detailed: the round was synchronised after each stage.
            ended: it was the reply's last, so it had no accept hook.
        """
        self._forecast.add(round_.emitted)
        if self._queued and not self._plan and self.parked:
            self._waiting = waiting
            self._steps.append(round_)
            if ended or len(self._steps) >= (REVIEW if self._recent else LEAST_STEPS):
                self._learn_parked()
                if not ended:
                    self._decide()
            return
        if round_.width > 1:
            self._learn_speculative(round_, detailed, ended)
            self._waiting, self._queued = None, False
        else:
            self._learn_classic(round_)
            self._waiting, self._queued = waiting, True
        was_look = bool(self._plan)
        self._plan = self._plan[1:]
        if was_look and round_.width == 1 and (ended or not self._plan):
            self._end_classic_look()
        if not ended and self._allowed and self._speculation is Speculation.ON and not self._plan:
            self._decide()

    def _learn_speculative(self, round_: Round, detailed: bool, ended: bool) -> None:
        self._gains.clear()
        self.acceptance.observe(round_)
        if self._settled == 1:  # a look
            filled = self.costs.fill if len(self._plan) == 1 else 0.0
            self._parked_looks.pay(round_.total_ms - round_.emitted * self.costs.rounds[1] + filled)
        else:
            self._parked_looks.speculated()
            self._classic_looks.speculated(round_.position)
        self._other_looks.saw(round_.width)
        if self._waiting is not None:
            self._entry = None if ended else (round_, self._waiting, self._queued)
        elif not ended:
            self._learn_entry(round_)
            self._learn_cost(round_, detailed)
        elif self._settled == 1 or not self._recent:
            # A short reply or look has no other that tells. The last round had no accept hook.
            self._learn_cost(replace(round_, hook_ms=self.costs.hook), detailed=False)
        self._prompt, self._missed, self._forgone = 0, 0.0, 0.0

    def _learn_entry(self, next_: Round) -> None:
        """What it cost to begin is what the first round took more than the next one. Not more than rounds took in
        earlier replies: the machine may be another now, and a start would seem to cost what all rounds cost more."""
        if self._entry is None:
            return
        first, waiting, queued = self._entry
        self._entry = None
        same = next_.width == first.width
        self.costs.observe_entry(first, waiting, queued, next_.total_ms if same else self.costs.rounds[first.width])

    def _learn_classic(self, round_: Round) -> None:
        """From one that is not a parked step behind another."""
        if self._queued:
            self._learn_cost(round_, detailed=False)
            self._classic_looks.classic_at(round_.position)
            if self._plan:
                self._classic_looks.step(round_.total_ms)
        else:
            self.costs.observe_fill(round_.total_ms)
        if not self._plan and self.parked:
            self._stay_parked(1, round_.total_ms)

    def _learn_parked(self) -> None:
        """From the parked steps since the last time."""
        if not self._steps:
            return
        position, milliseconds = self._steps[-1].position, [step.total_ms for step in self._steps]
        self._steps = []
        self.costs.observe_steps(milliseconds)
        self._recent.extend(milliseconds)
        self._classic_looks.classic_at(position)
        self._stay_parked(len(milliseconds), sum(milliseconds))

    def _stay_parked(self, tokens: int, milliseconds: float) -> None:
        self._parked_looks.parked(tokens, milliseconds)
        self._missed += tokens * max(0.0, self.costs.rounds[1] - 1.0 / self._rate(self._best()))

    def _learn_cost(self, round_: Round, detailed: bool) -> None:
        self.costs.observe(round_, detailed, usual=not self._plan)
        if not self._plan:
            self._recent.append(round_.total_ms)

    def _end_classic_look(self) -> None:
        seen = self._classic_looks.cost()
        if seen is not None:
            self.costs.look_at_classic(seen)
        self._classic_looks.end(self._rate(self._settled) / self._rate(1))

    def _decide(self) -> None:
        """Choose a width, or a look at what is not being done."""
        best = self._best()
        if self._settled > 1:
            pays = self._staying_pays(best)
        else:
            pays = self._entering_pays(best)
        self._switch(best if pays else 1, best)
        if len(self._recent) < (LEAST_STEPS if self._settled == 1 else LEAST_BLOCKS):
            return
        if self._settled == 1:
            self._look_at_speculation(best)
        elif self._waiting is None and self._classic_looks.due(self._forecast.left):
            self._plan = [1] * self._classic_looks.begin(self._forecast.left)
        elif self._waiting is None and self._other_looks.due():
            self._other_looks.begin()
            self._plan = [self._other_looks.stalest(self._allowed)]
        if self._plan:
            self.costs.level(self._settled, median(self._recent))

    def _staying_pays(self, width: int) -> bool:
        return LEAVE * self._forecast.left / self._rate(width) <= self._classic_ms(queued=False)

    def _entering_pays(self, width: int) -> bool:
        speculative = self._entry_ms() + self._forecast.left / self._rate(width)
        saved = self._classic_ms(self._queued) + self._forgone - speculative
        return saved >= max((MARGIN - 1.0) * speculative, LEAST_GAIN * self.costs.rounds[1])

    def _classic_ms(self, queued: bool) -> float:
        """What the rest of the reply takes without speculation. queued: its first step runs already."""
        return self._forecast.left * self.costs.rounds[1] + (0.0 if queued else self.costs.fill)

    def _entry_ms(self) -> float:
        return 0.0 if self._waiting is None else self.costs.entry_ms(self._waiting, self._queued)

    def _look_at_speculation(self, best: int) -> None:
        """Begin a look if it is time. Rows of the prompt count in what it is expected to lose, those of the reply do
        not: they grow by the token, and would put it off for good where the head reads slowly. The bill has them."""
        behind = self.costs.rounds[best] - self.acceptance.expected_tokens(best) * self.costs.rounds[1]
        loss = self.costs.entry_ms(self._prompt, self._queued) + LOOK_ROUNDS * max(0.0, behind) + self.costs.fill
        reading = self._prompt * self.costs.read
        whole_reply = (self._forecast.done + self._forecast.left) * self.costs.rounds[1]
        if self._waiting is None or self._forecast.left < LOOK_ROUNDS:
            return
        if not self._parked_looks.due(loss, reading, whole_reply):
            return
        self._parked_looks.begin()
        self.costs.unsettle()
        self.acceptance.fade(FADE)
        self._plan = [best] * (LOOK_ROUNDS - 1) + [self._other_looks.stalest(self._allowed)]

    def take_notices(self) -> list[Notice]:
        notices, self._notices = self._notices, []
        return notices

    def table(self) -> Mapping[int, tuple[float, float]]:
        """By width: expected tokens a round and milliseconds a round."""
        return {w: (self.acceptance.expected_tokens(w), ms) for w, ms in sorted(self.costs.rounds.items())}

    def _rate(self, width: int) -> float:
        """Expected tokens per millisecond."""
        if width == 1:
            return 1.0 / self.costs.rounds[1]
        if width not in self._gains:
            self._gains[width] = self.acceptance.expected_tokens(width)
        # A narrower block is not dearer than a wider one. Where it seems to be, its cost is the worse known.
        return self._gains[width] / min(self.costs.rounds[w] for w in self._allowed if w >= width)

    def _kept_rate(self, width: int) -> float:
        """The same, of tokens that the reply keeps: it ends within a block, on average in its middle.

        It weighs blocks against each other. Against classic decode it would park too easily near a draw, and what is
        parked in error is seen late, what speculates in error at once.
        """
        rate, left = self._rate(width), max(SHORTEST, self._forecast.left)
        return rate * left / (left + (self._gains[width] - 1.0) / 2)

    def _best(self) -> int:
        kept = {width: self._kept_rate(width) for width in self._allowed}
        best = max(kept, key=kept.__getitem__)
        if self._settled in kept and kept[best] < MARGIN * kept[self._settled]:
            return self._settled
        return best

    def _switch(self, width: int, best: int) -> None:
        """Settle on a width and say why. best: the block size that was weighed against classic decode."""
        if width == self._settled:
            return
        gain = self.acceptance.expected_tokens(best)
        if width > 1:
            if self._settled == 1:
                self._notices.append(Notice("unpark", f"Speculating from here on, with {width} rows."))
                self._classic_looks.not_now()
            self._notices.append(Notice("width", reasons.width(best, gain, self.costs, len(self._allowed))))
        elif self._settled == 0 and self._waiting and self._rate(best) >= MARGIN * self._rate(1):
            left, price = self._forecast.left, self._entry_ms()
            saved = left * (1.0 / self._rate(1) - 1.0 / self._rate(best))
            self._notices.append(Notice("park", reasons.late_start(self._waiting, price, left, saved)))
        else:
            self._notices.append(Notice("park", reasons.rows_are_dear(best, gain, self.costs)))
        self._settled = width
        self._recent.clear()
