"""How numbers are written: one place, so that the panel, a reply's caption and an export agree."""

from __future__ import annotations


def speed(tokens_per_second: float) -> str:
    return f"{tokens_per_second:.1f} tok/s"


def milliseconds(value: float) -> str:
    return f"{value:.1f}"


def ratio(value: float) -> str:
    return f"{value:.2f}x"


def percent(share: float) -> str:
    """share: 0 to 1."""
    return f"{share * 100:.0f} %"


def size(count: int) -> str:
    """Bytes in MiB or GiB."""
    if count >= 1 << 30:
        return f"{count / (1 << 30):.2f} GiB"
    return f"{count / (1 << 20):.1f} MiB" if count < 100 << 20 else f"{count / (1 << 20):.0f} MiB"


def parameters(count: int) -> str:
    """A model's size in words: 19.9 M, 27.0 B."""
    for limit, unit in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return str(count)


def seconds(value: float) -> str:
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"


def count(number: int, noun: str) -> str:
    """1 token, 2 tokens, 12,345 tokens."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
