"""What the panel says in words: why this width, what a figure means, why a reply was this fast."""

from __future__ import annotations

from app import figures
from app.panel.meter import CLASSIC_SAMPLES, Classic, Meter
from engine import ContextUse, EngineInfo, speed_reason, time_parts

STAGES = {
    "draft": ("draft_block", "The drafter, a small head of the model, proposes the next tokens."),
    "verify": ("verify", "The model itself reads the whole block in one pass. It alone decides what is written."),
    "rollback": ("rollback", "Proposals that were not accepted are taken out of the model's memory of the chat."),
    "hook": (
        "accept hook",
        "The drafter is told what was accepted, so that its next proposals fit. At first it reads the prompt as well.",
    ),
    "host": ("host", "Everything around the model: Python, turning tokens into text, queues."),
}
"""By stage: its name, and what it does."""

SPEED_TIP = "Tokens per second after the first one. A token is a piece of a word; the first comes with the prompt."
ACCEPTED_TIP = (
    "How many of the drafter's proposals were what the model would have written. The others cost a little time and "
    "change no word."
)
LENGTH_TIP = "Tokens that one round gives on average: the model's own one and the accepted proposals."
POSITIONS_TIP = (
    "The first proposal of a round, the second, and so on: how often each was accepted, of the rounds that made it. A "
    "later one counts only when all before it were accepted."
)
ROUND_TIP = (
    "Time of one round of this reply on average, and which part of the work took it. With “Time each stage of a round” "
    "switched off in the settings, what drafting takes is counted under verify."
)
SPARKLINE_TIP = "One bar a round, the newest at the right; its height is the tokens that the round gave."
WIDTH_TIP = (
    "Tokens that the model reads at once in a round: one of its own and the proposals behind it. The text is the same "
    "at every size; only the speed differs."
)
DRAFTER_TIP = "How the drafter's weights are held here. Packed ones are smaller; only how much is accepted can change."
CONTEXT_TIP = "Tokens of this chat so far, of those that the model can read at once."
MEMORY_TIP = "What the model, its drafter and the kept places of chats take."
WHY_TIP = "Where the time of the last reply went"


def classic_text(classic: Classic | None) -> str:
    return f"classic about {1000 / classic.ms:.1f}" if classic is not None else "classic not measured"


def classic_tip(classic: Classic | None) -> str:
    """How the speed without speculation is known."""
    if classic is None:
        return f"It is known after {CLASSIC_SAMPLES} classic steps of this model. The benchmark measures it in pairs."
    if classic.rounds:
        how = f"The median of the last {figures.count(classic.rounds, 'classic step')} in this program"
    else:
        how = "Timed while the model was loaded, on a short context"
    return f"Tokens per second without speculation. {how}: an estimate. The benchmark measures it in pairs."


def no_drafts_text(info: EngineInfo | None) -> str:
    """In place of acceptance: whether there may be drafts at all."""
    if info is None or (info.drafter is not None and info.verdict.widths):
        return "no drafts yet"
    return "nothing is drafted"


def speedup_text(ratio: float | None, *, parked: bool) -> str:
    if ratio is not None:
        return f"about {figures.ratio(ratio)} classic"
    return "classic speed" if parked else ""


def kept_text(use: ContextUse | None) -> str:
    """Memory that chats are kept in, so that their next turn reads only what is new."""
    return f"{figures.size(use.boundary_bytes)} of {figures.size(use.budget)}" if use is not None else "–"


def kept_tip(use: ContextUse | None) -> str:
    if use is None:
        return "Chats are kept in memory, so that their next turn reads only what is new."
    return (
        f"{use.boundaries} places in chats that a turn can start from without reading what came before. When the "
        "memory is full, the least recently used ones go; a chat that lost its places is read again, to the same words."
    )


def context_tip(use: ContextUse | None) -> str:
    left_out = f" {figures.count(use.dropped, 'message')} left out of the prompt." if use and use.dropped else ""
    return CONTEXT_TIP + left_out


def memory_text(info: EngineInfo | None, use: ContextUse | None) -> str:
    return figures.size(sum(size for _, size in _memory(info, use))) if info is not None else "–"


def memory_tip(info: EngineInfo | None, use: ContextUse | None) -> str:
    return "\n".join([MEMORY_TIP, *(f"{name}: {figures.size(size)}" for name, size in _memory(info, use))])


def _memory(info: EngineInfo | None, use: ContextUse | None) -> list[tuple[str, int]]:
    if info is None:
        return []
    parts = [("Model", info.target_bytes)]
    if info.drafter is not None:
        parts.append(("Drafter", info.drafter.bytes))
    if use is not None:
        parts.append(("Kept chats", use.boundary_bytes))
    return parts


def width_text(meter: Meter, info: EngineInfo | None) -> str:
    """The block size in use and why, or why there is none."""
    if info is not None and info.drafter is None:
        return f"Classic decode. {info.drafter_reason}".strip()
    if meter.parked:
        return meter.parked
    if not meter.block:  # nothing was drafted in this reply
        return meter.declined or ("1: classic decode" if meter.width == 1 else "–")
    text = f"{meter.block}: one bonus token and {figures.count(meter.block - 1, 'draft')}"
    if meter.width == 1:
        text += "; now and then a classic step, to see what it takes"
    return "\n".join(filter(None, (text, meter.width_reason, meter.declined)))


def drafter_text(info: EngineInfo | None) -> str:
    """How the head is held in memory, and who decided that."""
    if info is None or info.drafter is None:
        return "None"
    drafter = info.drafter
    text = f"{drafter.representation}, {figures.size(drafter.bytes)}"
    others = [("quantized", drafter.packed_bytes), ("dense", drafter.dense_bytes)]
    if told := [f"{name} {figures.size(size)}" for name, size in others if size and size != drafter.bytes]:
        text += f" ({', '.join(told)})"
    return f"{text}, by {drafter.decided_by}"


def why_text(meter: Meter) -> str:
    """Why the finished reply on the panel was as fast as it was."""
    classic = meter.classic()
    lines = [speed_reason(meter.stats, classic.ms if classic is not None else 0.0), ""]
    for part in time_parts(meter.stats):
        name = f"of it {part.name}" if part.of_which else part.name
        detail = f" · {part.detail}" if part.detail else ""
        lines.append(f"{name}: {part.seconds:.2f} s, {figures.percent(part.share)}{detail}")
    whole = meter.stats.prefill_seconds + meter.stats.decode_seconds
    return "\n".join([*lines, f"in all: {whole:.2f} s"])
