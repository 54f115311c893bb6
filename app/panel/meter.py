"""Rounds into figures. No Qt: the panel, the strip and the tests read the same numbers."""

from __future__ import annotations

import dataclasses
from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import Any

from engine import Notice, PrefillProgress, ReplyStats, Round

HISTORY = 160
"""Rounds kept for the sparkline."""
CLASSIC_SAMPLES = 8
"""Classic rounds needed before a speed-up is told, and then as an estimate."""
STAGES = ("draft", "verify", "hook", "rollback", "host")
"""The stages of a round in the order in which they are drawn."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the mean round: milliseconds, and its share of the round, 0 to 1."""

    name: str
    ms: float
    share: float


class Meter:
    """Collects one reply at a time. `version` moves with every change, so that a view knows when to draw."""

    def __init__(self) -> None:
        self.version = 0
        # Survives from reply to reply: the classic speed of this model here. Empty after another model was loaded.
        self._classic_ms: deque[float] = deque(maxlen=200)
        self.begin()

    def begin(self) -> None:
        """A new reply."""
        self._final: ReplyStats | None = None
        self._rounds = self._drafted = self._accepted = self._cut = self._parked = 0
        self._accepted_at: list[int] = []
        self._drafted_at: list[int] = []
        self._ms = dict.fromkeys(STAGES, 0.0)
        self._prefill = PrefillProgress(0, 0, 0, 0.0)
        self.history: deque[Round] = deque(maxlen=HISTORY)
        self.width = 0
        self.notice = ""
        self.position = 0
        self.version += 1

    def new_model(self) -> None:
        self._classic_ms.clear()
        self.begin()

    def round(self, event: Round) -> None:
        self._rounds += 1
        self._drafted += event.drafted
        self._accepted += event.accepted
        self._cut += event.cut
        for totals, reached in ((self._drafted_at, event.drafted), (self._accepted_at, event.accepted)):
            while len(totals) < event.drafted:
                totals.append(0)
            for position in range(reached):
                totals[position] += 1
        for name in STAGES:
            self._ms[name] += getattr(event, f"{name}_ms")
        if event.drafted == 0:
            self._classic_ms.append(event.total_ms)
            self._parked += 1
        self.width = event.width
        self.position = event.position + event.emitted
        self.history.append(event)
        self.version += 1

    def prefill(self, event: PrefillProgress) -> None:
        self._prefill = event
        self.position = event.done
        self.version += 1

    def note(self, event: Notice) -> None:
        self.notice = "" if event.kind == "unpark" else event.text
        self.version += 1

    def finish(self, stats: ReplyStats) -> None:
        self._final = stats
        self.version += 1

    @property
    def stats(self) -> ReplyStats:
        """The engine's figures once the reply is finished, the same ones counted from the rounds before."""
        if self._final is not None:
            return self._final
        places = max(len(self._accepted_at), len(self._drafted_at))
        return ReplyStats(
            tokens=1 + self._accepted + self._rounds - self._cut if self._rounds else 0,
            prompt_tokens=self._prefill.total,
            restored_tokens=self._prefill.restored,
            prefill_seconds=self._prefill.seconds,
            decode_seconds=sum(self._ms.values()) / 1000,
            rounds=self._rounds,
            drafted=self._drafted,
            accepted=self._accepted,
            cut=self._cut,
            accepted_at=tuple(self._accepted_at + [0] * (places - len(self._accepted_at))),
            drafted_at=tuple(self._drafted_at + [0] * (places - len(self._drafted_at))),
            draft_ms=self._ms["draft"],
            verify_ms=self._ms["verify"],
            rollback_ms=self._ms["rollback"],
            hook_ms=self._ms["hook"],
            host_ms=self._ms["host"],
            parked_rounds=self._parked,
        )

    def stages(self) -> list[Stage]:
        """The mean round."""
        stats = self.stats
        totals = [(name, float(getattr(stats, f"{name}_ms"))) for name in STAGES]
        whole = sum(ms for _, ms in totals)
        rounds = stats.rounds or 1
        return [Stage(name, ms / rounds, ms / whole if whole else 0.0) for name, ms in totals]

    def speedup(self) -> float | None:
        """Speed over that of the classic rounds seen here, None until there are enough. An estimate, no benchmark."""
        stats = self.stats
        if len(self._classic_ms) < CLASSIC_SAMPLES or not stats.drafted:
            return None
        return stats.tokens_per_second * median(self._classic_ms) / 1000


def stats_dict(stats: ReplyStats) -> dict[str, Any]:
    """The figures as they are stored with a reply: the fields, and the rates that follow from them."""
    return {
        **dataclasses.asdict(stats),
        "acceptance_rate": stats.acceptance_rate,
        "mean_acceptance_length": stats.mean_acceptance_length,
        "tokens_per_second": stats.tokens_per_second,
        "per_position": list(stats.per_position),
    }
