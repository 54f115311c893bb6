"""What the hub's rooms tell each other and the window. Values only; nothing here imports MLX."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.errors import KnownError
from engine.hub.errors import size

TIGHT = 0.85
"""Of the limit: above it other programs have next to nothing, and macOS begins to page."""


class FitVerdict(StrEnum):
    FITS = "fits"
    TIGHT = "tight"
    NOT = "does not fit"


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes. head: 0 without one. cache: keys and values of target and head. recurrent: states and windows.

    boundary: one kept position of the whole context. working: activations of a prefill chunk, logits of a block.
    """

    target: int
    head: int
    cache: int
    recurrent: int
    boundary: int
    working: int

    @property
    def total(self) -> int:
        return self.target + self.head + self.cache + self.recurrent + self.boundary + self.working


@dataclass(frozen=True, slots=True)
class Fit:
    """need: of the pair at `context` tokens. free: bytes the system can give now. limit: bytes that count.

    limit_reason: what set it. head_reason: why no head is counted, "" when one is.
    """

    need: Need
    context: int
    free: int
    limit: int
    limit_reason: str
    head_reason: str = ""

    @property
    def verdict(self) -> FitVerdict:
        if self.need.total > self.limit:
            return FitVerdict.NOT
        return FitVerdict.TIGHT if self.need.total > TIGHT * self.limit else FitVerdict.FITS

    @property
    def missing(self) -> int:
        """Bytes to free so that it fits, 0 when it does."""
        return max(0, self.need.total - self.limit)

    def __str__(self) -> str:
        words = f"{self.verdict}: needs about {size(self.need.total)} at {self.context:,} tokens, {self.limit_reason}"
        return words + (f"; {size(self.missing)} more would be needed" if self.missing else "")


class DoesNotFit(KnownError):
    """A pair needs more memory than there is. fit: the figures."""

    def __init__(self, what: str, *, todo: str, fit: Fit) -> None:
        super().__init__(what, todo=todo, detail=str(fit))
        self.fit = fit


class Step(StrEnum):
    LOOKING = "looking at the repo"
    WAITING = "waiting for another program that fetches the same files"
    FETCHING = "fetching"
    HEAD = "fetching the head out of the original"


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """done, total: bytes of all files. speed: bytes per second, left: seconds; None where nobody can tell.

    trouble: what goes wrong just now and is tried again, "" when nothing does.
    """

    step: Step
    done: int = 0
    total: int = 0
    speed: float | None = None
    left: float | None = None
    files_done: int = 0
    files: int = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class CataloguePair:
    """A target and its head. Fields as explained in the file; 0 and "" mean: not known.

    head: "" when it is to be extracted from `original`.
    """

    name: str
    target: str
    head: str
    original: str
    quantization: str
    bytes: int
    head_bytes: int
    context: int
    acceptance: float
    acceptance_block: int
    licence: str
    source: str
    checked: str


@dataclass(frozen=True)
class Checked:
    """What the hub says about an entry. problems: where the entry is wrong, in words; empty when it holds.

    bytes: of the target's files that a download takes. Others as in the entry, as they should be.
    """

    pair: CataloguePair
    problems: tuple[str, ...]
    bytes: int = 0
    context: int = 0
    licence: str = ""
    quantization: str = ""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A target that is whole on this computer.

    place: repo id or folder, as `LoadOptions.target` takes it. head: the same for its head; "" when the head is inside
    or none was found. has_head: whether there is one, in either place. bytes: of the target's tensors.
    """

    place: str
    head: str
    has_head: bool
    bytes: int
    quantization: str
    context: int


@dataclass(frozen=True, slots=True)
class Unusable:
    """Something of the family that lies here and cannot be used, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Begun:
    """A download that was not finished. kept: bytes of files that are half there."""

    repo: str
    kept: int


@dataclass(frozen=True)
class Found:
    models: tuple[LocalModel, ...] = ()
    unusable: tuple[Unusable, ...] = ()
    begun: tuple[Begun, ...] = ()
