"""Markdown tables, for records and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; columns are padded, so that it reads in a terminal too. No text in a cell can end the cell."""
    cells = [list(header), *([" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(header))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines
