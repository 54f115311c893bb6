"""Rounds -> figures of a reply. Definitions: `engine.events.ReplyStats`.

Times are summed as whole nanoseconds. Integer sums do not depend on order or grouping, so the window, the
footer of the log, a merged report and a recomputation from shuffled rows agree to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from engine.events import PrefillProgress, ReplyStats, Round

STAGES = ("draft_ms", "verify_ms", "rollback_ms", "hook_ms", "host_ms")
"""The stages of a round, in order. Together they are its whole time."""

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000


class StatsBuilder:
    """Counts as the reply is written. `build` may be called at any time, its cost does not grow."""

    def __init__(self) -> None:
        self._prompt_tokens = self._restored = 0
        self._prefill_ns = 0
        self._tokens = self._rounds = self._drafted = self._accepted = self._cut = self._parked = 0
        self._accepted_at: list[int] = []
        self._drafted_at: list[int] = []
        self._ns = dict.fromkeys(STAGES, 0)
        self._parked_ns = 0

    def prefill(self, last: PrefillProgress, *, token: bool = True) -> None:
        """The prefill's last progress. token: it gave the reply's first token (False: stopped before)."""
        self._prompt_tokens = last.total
        self._restored = last.restored
        self._prefill_ns = round(last.seconds * _NS_PER_S)
        self._tokens += token

    def observe(self, round_: Round) -> None:
        """One round."""
        self._tokens += round_.emitted
        self._rounds += 1
        self._drafted += round_.drafted
        self._accepted += round_.accepted
        self._cut += round_.cut
        self._parked += round_.parked
        missing = round_.drafted - len(self._drafted_at)
        self._drafted_at += [0] * missing
        self._accepted_at += [0] * missing
        for position in range(round_.drafted):
            self._drafted_at[position] += 1
            self._accepted_at[position] += position < round_.accepted
        for stage in STAGES:
            ns = round(getattr(round_, stage) * _NS_PER_MS)
            self._ns[stage] += ns
            self._parked_ns += ns if round_.parked else 0

    def build(self) -> ReplyStats:
        """The figures so far."""
        return ReplyStats(
            tokens=self._tokens,
            prompt_tokens=self._prompt_tokens,
            restored_tokens=self._restored,
            prefill_seconds=self._prefill_ns / _NS_PER_S,
            decode_seconds=sum(self._ns.values()) / _NS_PER_S,
            rounds=self._rounds,
            drafted=self._drafted,
            accepted=self._accepted,
            cut=self._cut,
            accepted_at=tuple(self._accepted_at),
            drafted_at=tuple(self._drafted_at),
            parked_rounds=self._parked,
            parked_ms=self._parked_ns / _NS_PER_MS,
            **{stage: ns / _NS_PER_MS for stage, ns in self._ns.items()},
        )


def identity_holds(stats: ReplyStats) -> bool:
    """tokens = 1 (the prefill's) + accepted + rounds - cut; a reply stopped in its prefill has none of them."""
    first = 0 if stats.tokens == 0 and stats.rounds == 0 else 1
    return stats.tokens == first + stats.accepted + stats.rounds - stats.cut


def round_problems(round_: Round) -> list[str]:
    """What is impossible about a round, in words. Empty for a sound one."""
    checks = (
        (round_.width >= 1, "width is below 1"),
        (round_.drafted == round_.width - 1, "drafted is not width - 1"),
        (0 <= round_.accepted <= round_.drafted, "more accepted than drafted"),
        (0 <= round_.cut <= round_.accepted, "everything is cut"),
        (round_.emitted == round_.accepted + 1 - round_.cut, "emitted is not accepted + 1 - cut"),
        (len(round_.tokens) in (0, round_.emitted), "tokens are not as many as emitted"),
        (not (round_.parked and round_.drafted), "it is parked and has drafts"),
        (all(getattr(round_, stage) >= 0 for stage in STAGES), "a time is negative"),
    )
    return [text for holds, text in checks if not holds]


def merge(many: Iterable[ReplyStats]) -> ReplyStats:
    """The figures of several replies together. `tokens` then holds one first token per reply."""
    all_ = list(many)

    def seconds(name: str) -> float:
        return sum(round(getattr(s, name) * _NS_PER_S) for s in all_) / _NS_PER_S

    def stage(name: str) -> float:
        return sum(round(getattr(s, name) * _NS_PER_MS) for s in all_) / _NS_PER_MS

    def per_position(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(sum(column) for column in zip_longest(*rows, fillvalue=0))

    return ReplyStats(
        tokens=sum(s.tokens for s in all_),
        prompt_tokens=sum(s.prompt_tokens for s in all_),
        restored_tokens=sum(s.restored_tokens for s in all_),
        prefill_seconds=seconds("prefill_seconds"),
        decode_seconds=seconds("decode_seconds"),
        rounds=sum(s.rounds for s in all_),
        drafted=sum(s.drafted for s in all_),
        accepted=sum(s.accepted for s in all_),
        cut=sum(s.cut for s in all_),
        accepted_at=per_position(s.accepted_at for s in all_),
        drafted_at=per_position(s.drafted_at for s in all_),
        parked_rounds=sum(s.parked_rounds for s in all_),
        parked_ms=stage("parked_ms"),
        **{name: stage(name) for name in STAGES},
    )


def stage_shares(stats: ReplyStats) -> dict[str, tuple[float, float]]:
    """Per stage of STAGES: (milliseconds per round, share of the decode time 0..1)."""
    total = sum(getattr(stats, stage) for stage in STAGES)
    return {
        stage: (
            getattr(stats, stage) / stats.rounds if stats.rounds else 0.0,
            getattr(stats, stage) / total if total else 0.0,
        )
        for stage in STAGES
    }
