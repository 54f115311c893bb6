"""Figures of a reply in one line, and of a session in a few."""

from __future__ import annotations

from collections.abc import Sequence

from engine import EndReason, EngineInfo, Finished, ReplyStats, merge, speed_reason, stage_shares, time_parts


def reply_line(finished: Finished, info: EngineInfo) -> str:
    """Tokens, speed, acceptance, milliseconds per round, exactness: what a reader judges a reply by."""
    stats = finished.stats
    parts = [f"{stats.tokens} tokens"]
    if stats.restored_tokens:
        parts.append(f"{stats.restored_tokens} of {stats.prompt_tokens} prompt tokens restored")
    if stats.decode_seconds > 0:
        parts.append(f"{stats.tokens_per_second:.1f} tok/s")
    parts.append(_speculation(stats))
    if stats.rounds:
        parts.append(_stages(stats))
    parts.append(info.verdict.state.value)
    if finished.reason is not EndReason.EOS:
        parts.append(f"ended by {finished.reason.value}")
    return " · ".join(part for part in parts if part)


def session_lines(info: EngineInfo, replies: Sequence[Finished]) -> list[str]:
    """What is loaded, and all replies of this chat together."""
    lines = [
        f"model      {info.name}, {info.parameters / 1e6:.0f} M parameters, {info.quantization}",
        f"device     {info.device}",
        f"policy     {info.policy}",
        f"drafter    {drafter_line(info)}",
        f"exactness  {info.verdict.state.value}: {info.verdict.reason}",
    ]
    if replies:
        stats = merge(reply.stats for reply in replies)
        speed = f"{stats.tokens_per_second:.1f} tok/s"
        lines += [
            f"replies    {len(replies)}, {stats.tokens} tokens, {speed}, last seed {replies[-1].seed}",
            f"rounds     {stats.rounds}, {stats.parked_rounds} of them parked. {_speculation(stats)}",
            f"positions  {', '.join(f'{rate:.2f}' for rate in stats.per_position) or 'no drafts'}",
        ]
        if stats.rounds:
            lines.append(f"time       {_stages(stats)}")
    return lines


def why_lines(info: EngineInfo, replies: Sequence[Finished]) -> list[str]:
    """Why the last reply was as fast as it was."""
    if not replies:
        return ["There is no reply yet."]
    stats = replies[-1].stats
    lines = [speed_reason(stats, info.classic_ms)]
    for part in time_parts(stats):
        name = f"of it {part.name}" if part.of_which else part.name
        lines.append(f"  {name:<15} {part.seconds:8.3f} s  {part.share:4.0%}  {part.detail}".rstrip())
    lines.append(f"  {'in all':<15} {stats.prefill_seconds + stats.decode_seconds:8.3f} s")
    return lines


def drafter_line(info: EngineInfo) -> str:
    """Which form of the head is in force, who decided that, and the bytes of each form."""
    drafter = info.drafter
    if drafter is None:
        return f"none: {info.drafter_reason}"
    sizes = [("in memory", drafter.bytes), ("quantized", drafter.packed_bytes), ("16-bit", drafter.dense_bytes)]
    told = ", ".join(f"{name} {size / 2**20:.1f} MiB" for name, size in sizes if size)
    return f"{drafter.representation}, by {drafter.decided_by}; {told}"


def _speculation(stats: ReplyStats) -> str:
    if not stats.drafted:
        return ""
    return f"acceptance {stats.acceptance_rate:.0%}, {stats.mean_acceptance_length:.2f} tokens a round"


def _stages(stats: ReplyStats) -> str:
    ms = {stage: per_round for stage, (per_round, _) in stage_shares(stats).items()}
    if not stats.drafted:
        return f"{ms['verify_ms'] + ms['host_ms']:.1f} ms a token"
    return (
        f"ms a round: draft {ms['draft_ms']:.1f}, verify {ms['verify_ms']:.1f}, hook {ms['hook_ms']:.1f}, "
        f"rest {ms['rollback_ms'] + ms['host_ms']:.1f}"
    )
