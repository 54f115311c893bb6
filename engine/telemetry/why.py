"""Why a finished reply was as fast as it was: where its time went, and what a round gave for it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.events import ReplyStats
from engine.telemetry.stats import STAGES

_NAMES = {
    "draft_ms": "draft_block",
    "verify_ms": "verify forward",
    "rollback_ms": "rollback",
    "hook_ms": "accept hook",
    "host_ms": "host",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a reply's time.

    seconds, and share (0 to 1) of prefill and decode together. of_which: already inside the parts before it.
    detail: what it was spent on, in words; "" where the name says it.
    """

    name: str
    seconds: float
    share: float
    detail: str = ""
    of_which: bool = False


def time_parts(stats: ReplyStats) -> list[Part]:
    """Prefill, the stages of decode, and of these the parked steps. Without `of_which` they sum to the whole."""
    whole = stats.prefill_seconds + stats.decode_seconds

    def part(name: str, seconds: float, detail: str = "", *, of_which: bool = False) -> Part:
        return Part(name, seconds, seconds / whole if whole else 0.0, detail, of_which)

    read = stats.prompt_tokens - stats.restored_tokens
    prompt = f"{read:,} of {stats.prompt_tokens:,} prompt tokens read, {stats.restored_tokens:,} restored"
    parts = [part("prefill", stats.prefill_seconds, prompt)]
    parts += [part(_NAMES[stage], getattr(stats, stage) / 1e3) for stage in STAGES]
    steps = f"{stats.parked_rounds:,} classic steps, because no block size was faster"
    if stats.parked_rounds:
        parts.append(part("parked", stats.parked_ms / 1e3, steps, of_which=True))
    return parts


def speed_reason(stats: ReplyStats, classic_ms: float = 0.0) -> str:
    """What made the decode speed, in one sentence or two. classic_ms: of one classic step here, 0 if unknown."""
    if stats.tokens <= 1 or not stats.rounds:
        return "There is no decode speed: the first token comes with the prompt, and there was no other."
    a_round, given = stats.decode_seconds * 1e3 / stats.rounds, stats.decoded / stats.rounds
    if not stats.drafted:
        step = f"Every token took one classic step of {a_round:.1f} ms"
        return f"{step}, parked." if stats.parked_rounds == stats.rounds else f"{step}. Nothing was drafted."
    text = f"A round took {a_round:.1f} ms and gave {given:.2f} tokens"
    if stats.parked_rounds:
        text += f", {stats.parked_rounds:,} of {stats.rounds:,} rounds being parked"
    if not classic_ms or not a_round:
        return f"{text}. The speed of classic decode was not measured."
    steps = a_round / classic_ms
    return f"{text}; in {steps:.2f} classic steps of about {classic_ms:.1f} ms: about {given / steps:.2f}x classic."
