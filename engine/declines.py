"""Where something is not done as asked: the reason in words."""

from __future__ import annotations

from collections.abc import Iterator

from engine.events import EngineInfo, Notice
from engine.request import Request, Speculation


def speculation_declines(info: EngineInfo, request: Request) -> Iterator[Notice]:
    """Where speculation is asked for and cannot be had as asked."""
    if request.speculation is Speculation.OFF:
        return
    if info.drafter is None:
        yield Notice("decline", f"No speculation: {info.drafter_reason or 'there is no drafter'}")
    elif not info.verdict.widths:
        yield Notice("decline", f"No speculation: {info.verdict.reason}")
    elif request.block_size > max(info.verdict.widths):
        widest = max(info.verdict.widths)
        yield Notice("decline", f"Blocks of more than {widest} rows were not found exact here; {widest} are used.")


def boundary_too_large(needed: int, budget: int) -> Notice:
    """A chat's boundary exceeds what all of them may take. In bytes."""
    return Notice(
        "cache",
        f"This chat's caches need {needed / 2**20:.0f} MiB, more than the {budget / 2**20:.0f} MiB for kept chats. "
        "The next turn reads everything again.",
    )
