"""What a pace believed, before its first reply and after the last, as a table for a record."""

from __future__ import annotations

from collections.abc import Mapping

from engine.pace import Pace
from engine.tables import table


def pace_table(at_load: Mapping[int, tuple[float, float]], pace: Pace) -> list[str]:
    """at_load: `pace.table()` before anything was decoded with it."""
    now = pace.table()
    step_then, step_now = at_load[1][1], now[1][1]
    rows = [
        ("1 (classic)" if width == 1 else str(width), f"{then:.2f}", f"{then / step_then:.2f}", f"{hoped:.2f}",
         f"{spent:.2f}", f"{spent / step_now:.2f}", f"{tokens:.2f}", f"{tokens / spent * step_now:.2f}")
        for width, (tokens, spent) in now.items() for hoped, then in [at_load[width]]
    ]  # fmt: skip
    header = (
        "rows", "ms a round, at load", "in classic steps", "tokens expected", "ms a round, at the end",
        "in classic steps", "tokens expected", "speed expected",
    )  # fmt: skip
    return table(header, rows)
