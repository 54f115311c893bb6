"""A hub that plays a script instead of a network: for screenshots and for the tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from engine import (
    Begun,
    CataloguePair,
    DownloadProgress,
    Fit,
    Found,
    Hub,
    HubError,
    LoadCancelled,
    LoadOptions,
    LocalModel,
    Need,
    Step,
)

GIB = 2**30
_SIZES = {
    "27B-8bit": 29 * GIB,
    "9B-bf16": 18 * GIB,
    "27B": 16 * GIB,
    "35B": 20 * GIB,
    "9B": 5 * GIB,
    "4B": int(2.4 * GIB),
}


class ScriptedHub(Hub):
    """found: what is on this computer. refusals: by repo, raised by the next download. hold: downloads stop at 37 %
    until `go_on` is set or they are stopped. free: bytes.
    """

    def __init__(self, heads: Path = Path("heads"), *, free: int = 22 * GIB, hold: bool = False) -> None:
        super().__init__(heads)
        self.found = Found()
        self.refusals: dict[str, HubError] = {}
        self.go_on = threading.Event()
        self.free = free
        self.calls: list[tuple[str, str]] = []
        self.owners = {"hf_good": "someone"}
        if not hold:
            self.go_on.set()

    def local(self, pairs: Sequence[CataloguePair], folders: Sequence[Path] = ()) -> Found:
        self.calls += [("folder", str(folder)) for folder in folders]
        return self.found

    def fit(self, options: LoadOptions, context: int | None = None, *, held: int = 0) -> Fit:
        return self._fit(options.target or "", context or 8192, held)

    def fit_remote(
        self,
        repo: str,
        head: str,
        stop: threading.Event,
        context: int | None = None,
        *,
        held: int = 0,
        original: str = "",
    ) -> Fit:
        self.calls.append(("look", repo))
        if repo in self.refusals:
            raise self.refusals[repo]
        return self._fit(repo, context or 8192, held)

    def download(self, repo: str, stop: threading.Event, progress: Callable[[DownloadProgress], None]) -> None:
        self.calls.append(("download", repo))
        total = self._size(repo)
        progress(DownloadProgress(Step.LOOKING))
        if (refusal := self.refusals.pop(repo, None)) is not None:
            raise refusal
        share = 37 * total // 100
        progress(DownloadProgress(Step.FETCHING, share, total, 96e6, (total - share) / 96e6, 4, 9))
        while not self.go_on.wait(0.005):
            if stop.is_set():
                self._leave(repo, share)
                raise LoadCancelled
        quantization = "4-bit group 64"
        kept = tuple(begun for begun in self.found.begun if begun.repo != repo)
        model = LocalModel(repo, "", False, total, quantization, 262_144)
        models = self.found.models if "MTP" in repo else (*self.found.models, model)
        self.found = Found(models, self.found.unusable, kept)

    def extract(self, original: str, stop: threading.Event, progress: Callable[[DownloadProgress], None]) -> Path:
        self.calls.append(("extract", original))
        progress(DownloadProgress(Step.HEAD, 1, 2))
        return self.head_folder(original)

    def discard(self, repo: str) -> int:
        self.calls.append(("discard", repo))
        self.found = Found(self.found.models, self.found.unusable, tuple(b for b in self.found.begun if b.repo != repo))
        return 0

    def discard_head(self, original: str) -> int:
        self.calls.append(("discard head", original))
        return 0

    def owner(self, token: str) -> str:
        self.calls.append(("owner", token))
        if token not in self.owners:
            raise HubError("The hub does not know this token.", todo="Copy it again.", status=401)
        return self.owners[token]

    def _leave(self, repo: str, kept: int) -> None:
        self.found = Found(self.found.models, self.found.unusable, (*self.found.begun, Begun(repo, kept)))

    def _size(self, repo: str) -> int:
        return next((size for name, size in _SIZES.items() if name in repo), GIB)

    def _fit(self, repo: str, context: int, held: int) -> Fit:
        weights = self._size(repo) if repo else 2**25
        cache = 70_000 * context if repo else 2**22
        free = self.free + held
        need = Need(weights, weights // 64, cache, 150 * 2**20, cache, 400 * 2**20)
        return Fit(need, context, free, free, f"{free / GIB:.1f} GiB are free")
