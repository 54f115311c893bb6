"""The catalogue of pairs, as it ships in resources/catalogue.toml. Its comparison with the hub: `check`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

from engine.errors import KnownError
from engine.hub.types import CataloguePair

FILE = Path(__file__).resolve().parents[2] / "resources" / "catalogue.toml"
_TYPES: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "float": (int, float)}


def catalogue(file: Path | None = None) -> tuple[CataloguePair, ...]:
    """The entries in the order of the file. file: None is the one that ships.

    Raises:
        KnownError: the file is missing or not what it should be, with the entry.
    """
    path = file or FILE
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8"))["pair"]
        pairs = tuple(_pair(entry, number) for number, entry in enumerate(listed, 1))
        if len({pair.target for pair in pairs}) < len(pairs):
            raise ValueError("two entries name the same target")
        return pairs
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KnownError(
            f"The catalogue of models {path} cannot be read.",
            kept="Models can still be named by repo or folder.",
            todo="Install Pacenote again.",
            detail=str(error),
        ) from error


def _pair(entry: Mapping[str, Any], number: int) -> CataloguePair:
    """Raises TypeError or ValueError with the entry's number."""
    where = f"entry {number}"
    if entry.keys() != (names := {field.name for field in fields(CataloguePair)}):
        raise ValueError(f"{where}: {', '.join(sorted(entry.keys() ^ names))} too many or missing")
    for field in fields(CataloguePair):
        value = entry[field.name]
        # `bool` is an `int` to Python; `not value >= 0` also catches what is no number at all.
        if not isinstance(value, _TYPES[str(field.type)]) or isinstance(value, bool):
            raise TypeError(f"{where}: {field.name} is {value!r}")
        if isinstance(value, int | float) and not value >= 0:
            raise ValueError(f"{where}: {field.name} is {value!r}")
    pair = CataloguePair(**entry)
    for role in ("target", "head", "original"):
        repo = getattr(pair, role)
        if repo.count("/") != 1 and (repo or role == "target"):
            raise ValueError(f"{where}: {role} is {repo!r}, not owner/name")
    if not pair.head and not pair.original:
        raise ValueError(f"{where}: it says of no head where it is")
    if not pair.acceptance <= 1:
        raise ValueError(f"{where}: acceptance is a share, not {pair.acceptance}")
    if pair.checked:
        date.fromisoformat(pair.checked)
    return pair
