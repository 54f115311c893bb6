"""Why the pace chose what it chose, in words for the screen and the log."""

from __future__ import annotations

from engine.pace.model import Costs


def width(rows: int, gain: float, costs: Costs, of: int) -> str:
    """rows: block size that was chosen. gain: its expected tokens a round. of: number of block sizes."""
    spent = costs.round_ms(rows)
    return (
        f"{rows} rows: expected to give {gain:.2f} tokens in {spent:.1f} ms, "
        f"{gain * costs.round_ms(1) / spent:.2f}x classic; the best of {of} block sizes."
    )


def rows_are_dear(rows: int, gain: float, costs: Costs) -> str:
    """rows: the best block size, which does not beat classic decode. gain: its expected tokens a round."""
    ratio = costs.verify[rows] / costs.verify[1]
    cost = costs.round_ms(rows) / costs.round_ms(1)
    return (
        f"Parked: a {rows}-row verify costs {ratio:.1f} x one row here. With drafting and accept hook a "
        f"round costs {cost:.1f} classic steps and gives about {gain:.1f} tokens."
    )


def late_start(waiting: int, left: float, gain: float, rows: int, costs: Costs) -> str:
    """rows would beat classic decode, but the head has `waiting` rows to read first and `left` tokens are expected."""
    saved = left * (costs.round_ms(1) - costs.round_ms(rows) / gain)
    return (
        f"Parked: the head would first read {waiting} tokens, about {waiting * costs.read:.0f} ms. "
        f"A reply of about {left:.0f} tokens would win back {max(0.0, saved):.0f} ms of that."
    )
