"""What one run of an arm leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.events import ReplyStats


@dataclass(frozen=True, slots=True)
class Sample:
    """One run.

    seconds: wall time of the phase that the arm measures, and of nothing else.
    tokens: ids written, the prefill's token first; in prefill arms that token alone.
    counts: what moved in the models during the run, by name (see `tally`). They prove which arm ran.
    stats: figures of the rounds, None where the engine's loops did not run.
    first_hook_ms: of the first round's accept hook, which also reads the prompt for the head; part of `stats`.
    detailed: stages were synchronised, so that their milliseconds are their own. Slower: never in a ratio.
    """

    seconds: float
    tokens: tuple[int, ...]
    counts: Mapping[str, int]
    stats: ReplyStats | None = None
    detailed: bool = False
    first_hook_ms: float = 0.0
