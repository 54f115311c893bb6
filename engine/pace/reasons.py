"""Why the pace chose what it chose, in words for the screen and the log."""

from __future__ import annotations

from collections.abc import Sequence

from engine.pace.model import Costs


def width(rows: int, gain: float, costs: Costs, of: int) -> str:
    """rows: block size that was chosen. gain: its expected tokens a round. of: number of block sizes."""
    spent = costs.rounds[rows]
    return (
        f"{rows} rows: expected to give {gain:.2f} tokens in {spent:.1f} ms, "
        f"{gain * costs.rounds[1] / spent:.2f}x classic; the best of {of} block sizes."
    )


def always(rows: int) -> str:
    return f"{rows} rows in every round: speculation is set to always."


def too_narrow(block_size: int, exact: Sequence[int]) -> str:
    """exact: block sizes that passed the probe, all above the one that was asked for."""
    sizes = ", ".join(map(str, exact))
    return f"No speculation: of up to {block_size} rows no block passed the exactness probe. {sizes} did."


def rows_are_dear(rows: int, gain: float, costs: Costs) -> str:
    """rows: the best block size, which does not beat classic decode. gain: its expected tokens a round."""
    ratio = costs.verify_ms(rows) / costs.rounds[1]
    cost = costs.rounds[rows] / costs.rounds[1]
    return (
        f"Parked: a {rows}-row verify costs {ratio:.1f} x one row here. With drafting and accept hook a "
        f"round costs {cost:.1f} classic steps and gives about {gain:.1f} tokens."
    )


def late_start(waiting: int, price: float, left: float, saved: float) -> str:
    """Blocks would beat classic decode, but to start costs `price` ms; `left` tokens would save `saved` ms."""
    return (
        f"Parked: to start would cost about {price:.0f} ms, for the head would first read {waiting} tokens. "
        f"A reply of about {left:.0f} tokens is expected to win back {saved:.0f} ms. A start has to win a step."
    )
