"""The catalogue of pairs, as it ships in resources/catalogue.toml. Its comparison with the hub: `check`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from engine.errors import KnownError
from engine.hub.types import CataloguePair

FILE = Path(__file__).resolve().parents[2] / "resources" / "catalogue.toml"


def catalogue(file: Path = FILE) -> tuple[CataloguePair, ...]:
    """The entries in the order of the file.

    Raises:
        KnownError: the file is missing or not what it should be.
    """
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        return tuple(CataloguePair(**entry) for entry in table["pair"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KnownError(
            f"The catalogue of models {file} cannot be read.",
            kept="Models can still be named by repo or folder.",
            todo="Install Pacenote again.",
            detail=str(error),
        ) from error
