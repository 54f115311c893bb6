"""One line of the models window: a pair that is here, on its way, or could be fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from engine import CataloguePair, DownloadProgress, Fit

DEMO = ""
"""Key of the demo pair, as it is in the settings."""


class State(StrEnum):
    HERE = "on this computer"
    AWAY = "on the hub"
    BEGUN = "begun"
    BUSY = "on its way"
    BROKEN = "cannot be used"


ORDER = (State.HERE, State.BROKEN, State.BUSY, State.BEGUN, State.AWAY)


@dataclass(frozen=True)
class Entry:
    """One line of the window.

    key: repo or folder of the target, as it is loaded. head: the same for its head, "" for inside or none.
    pair: from the catalogue. kept: bytes of a download that was not finished. error: the last failure, as a dict;
    access: it asks for a token or a licence. stopping: a pause was asked for.
    fit_error: why nobody knows whether it fits.
    """

    key: str
    title: str
    state: State
    head: str = ""
    has_head: bool = False
    size: int = 0
    quantization: str = ""
    pair: CataloguePair | None = None
    kept: int = 0
    fit: Fit | None = None
    fit_error: str = ""
    progress: DownloadProgress | None = None
    error: dict[str, str] = field(default_factory=dict)
    access: bool = False
    stopping: bool = False


def name_of(place: str) -> str:
    """A folder by its last part, a repo whole."""
    return Path(place).name if Path(place).is_absolute() else place
