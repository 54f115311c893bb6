"""Rounds into figures. No Qt: the panel, the strip and the tests read the same numbers."""

from __future__ import annotations

import dataclasses
from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import Any

from engine import ContextUse, Notice, PrefillProgress, ReplyStats, Round, StatsBuilder, read_stats, stage_shares

HISTORY = 160
"""Rounds kept for the sparkline."""
CLASSIC_SAMPLES = 8
"""Classic rounds that outweigh the timing at load."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the mean round: milliseconds, and its share of the round, 0 to 1."""

    name: str
    ms: float
    share: float


@dataclass(frozen=True, slots=True)
class Classic:
    """What a classic step takes here: milliseconds, and of how many steps; 0: as timed while loading."""

    ms: float
    rounds: int


class Meter:
    """Collects one reply at a time. `version` moves with every change, so that a view knows when to draw."""

    def __init__(self) -> None:
        self.version = 0
        # Survives from reply to reply: the classic speed of this model here. Empty after another model was loaded.
        self._classic_ms: deque[float] = deque(maxlen=200)
        self._classic_at_load = 0.0
        self.alarm = ""
        """Of the acceptance alarm, until it is over or another model is loaded."""
        self.use: ContextUse | None = None
        """The newest: what chats are kept in is told of all of them, so it outlives a reply."""
        self.begin()

    def begin(self) -> None:
        """A new reply."""
        self._final: ReplyStats | None = None
        self._builder = StatsBuilder()
        self._prefill: PrefillProgress | None = None
        self._rounds = self._classic = 0
        self.history: deque[Round] = deque(maxlen=HISTORY)
        self.width = 0
        self.block = 0
        self.parked = ""
        self.declined = ""
        self.width_reason = ""
        self.position = 0
        self.version += 1

    def new_model(self, classic_ms: float = 0.0) -> None:
        """classic_ms: `EngineInfo.classic_ms`."""
        self.use = None
        self._classic_at_load = classic_ms
        self._classic_ms.clear()
        self.alarm = ""
        self.begin()

    def round(self, event: Round) -> None:
        if self._prefill is not None:
            # Its last progress, once: the first round follows the first token.
            self._builder.prefill(self._prefill)
            self._prefill = None
        self._builder.observe(event)
        self._rounds += 1
        if event.drafted == 0:
            self._classic_ms.append(event.total_ms)
            self._classic += 1
        self.width = event.width
        self.block = event.width if event.drafted else self.block
        self.position = event.position + event.emitted
        self.history.append(event)
        self.version += 1

    def prefill(self, event: PrefillProgress) -> None:
        self._prefill = event
        self.position = event.done
        self.version += 1

    def context(self, event: ContextUse) -> None:
        self.use = event
        self.position = event.tokens
        self.version += 1

    def note(self, event: Notice) -> None:
        if event.kind == "park":
            self.parked, self.width_reason = event.text, ""
        elif event.kind == "decline":
            self.declined = event.text
        elif event.kind == "width":
            self.width_reason = event.text
        elif event.kind == "unpark":
            self.parked = ""
        elif event.kind == "drafter":
            self.alarm = event.text
        self.version += 1

    def finish(self, stats: ReplyStats) -> None:
        self._final = stats
        self.version += 1

    def show_finished(self, kept: dict[str, Any] | None) -> None:
        """Show a reply that was finished earlier. kept: its `stats_dict`; None shows nothing."""
        self.begin()
        if kept is not None:
            stats = read_stats(kept)
            self.position = stats.prompt_tokens + stats.tokens
            self.finish(stats)

    @property
    def stats(self) -> ReplyStats:
        """The engine's figures once the reply is finished, the same ones counted from the rounds before."""
        return self._final if self._final is not None else self._builder.build()

    def stages(self) -> list[Stage]:
        """The mean round."""
        return [Stage(name.removesuffix("_ms"), ms, share) for name, (ms, share) in stage_shares(self.stats).items()]

    @property
    def mostly_parked(self) -> bool:
        """Whether classic rounds make up more than half of this reply: then its speed says little about speculation."""
        return self._classic * 2 > self._rounds > 0

    @property
    def finished(self) -> bool:
        """Whether the figures are those of a whole reply."""
        return self._final is not None

    def classic(self) -> Classic | None:
        """From the classic rounds seen here, from the load until there are enough. An estimate, no benchmark."""
        if len(self._classic_ms) >= CLASSIC_SAMPLES:
            return Classic(median(self._classic_ms), len(self._classic_ms))
        return Classic(self._classic_at_load, 0) if self._classic_at_load > 0 else None

    def speedup(self) -> float | None:
        """Speed over that of classic steps; None where nothing was drafted or that speed is not known."""
        stats, classic = self.stats, self.classic()
        if classic is None or not stats.drafted or self.mostly_parked:
            return None
        return stats.tokens_per_second * classic.ms / 1000


def stats_dict(stats: ReplyStats) -> dict[str, Any]:
    """The figures as they are stored with a reply: the fields, and the rates that follow from them."""
    return {
        **dataclasses.asdict(stats),
        "acceptance_rate": stats.acceptance_rate,
        "mean_acceptance_length": stats.mean_acceptance_length,
        "tokens_per_second": stats.tokens_per_second,
        "per_position": list(stats.per_position),
    }
