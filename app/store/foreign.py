"""What an import may hold. Whatever is shown or computed with later must be of its kind: the file may be anybody's.

All raise ValueError, KeyError or TypeError for what this program cannot have written.
"""

from __future__ import annotations

import json
from typing import Any

from engine import Receipt, read_stats

LATEST = 2.5e11
"""Seconds since the epoch, about the year 9900: what is later is no date any more."""


def check_chat(row: dict[str, Any]) -> None:
    """A row of `conversation`. The list of all chats reads it, so one bad row would cost them all."""
    _texts({"title": row["title"]})
    _time(row["created_at"])
    _time(row["updated_at"])
    if row["sampler"] is not None:
        _json(row["sampler"], dict)


def check_message(row: dict[str, Any]) -> None:
    """A row of `message`."""
    _time(row["created_at"])


def check_reply(row: dict[str, Any]) -> None:
    """A row of `reply`."""
    if not 0 <= row["seed"] < 2**32:
        raise ValueError("a seed is out of range")
    _json(row["request"], dict)
    _json(row["model"], dict)
    for notice in _json(row["notices"], list):
        _texts({name: notice[name] for name in ("kind", "text")})
    if row["error"] is not None:
        _texts(_json(row["error"], dict))
    if row["figures"] is not None:
        _figures(json.loads(row["figures"]))


def check_receipt(row: dict[str, Any]) -> None:
    """A row of `receipt`. One without its number of tokens belongs to no reply, and is not shown."""
    body = _json(row["body"], dict)
    if "tokens" in body:
        receipt = Receipt(**body)
        if not all(type(number) is int for number in (receipt.compared, receipt.tokens)):
            raise TypeError("a receipt does not count in whole numbers")
        str(receipt)


def _time(value: Any) -> None:
    if isinstance(value, bool) or not 0 <= value <= LATEST:
        raise ValueError("a time is out of range")


def _json(text: Any, kind: type) -> Any:
    value = json.loads(text)
    if not isinstance(value, kind):
        raise TypeError(f"a {kind.__name__} was expected")
    return value


def _texts(values: dict[str, Any]) -> None:
    if not all(isinstance(value, str) for value in values.values()):
        raise TypeError("a text was expected")


def _figures(figures: dict[str, Any]) -> None:
    """They are shown wherever a reply is."""
    read_stats(figures)
    for name in ("acceptance_rate", "mean_acceptance_length", "tokens_per_second"):
        if not 0 <= figures[name] <= 1e15:
            raise ValueError(f"`{name}` is out of range")
