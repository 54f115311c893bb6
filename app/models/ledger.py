"""What is known of every model: found here, asked of the hub, on its way. The lines of the window are made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.models.entry import DEMO, ORDER, Entry, State, name_of
from engine import CataloguePair, DownloadProgress, Fit, Found, KnownError, LocalModel


@dataclass(frozen=True)
class Looked:
    """fits: by key, or why nobody knows. problem: why there is no catalogue."""

    pairs: tuple[CataloguePair, ...] = ()
    found: Found = field(default_factory=Found)
    fits: dict[str, Fit | str] = field(default_factory=dict)
    problem: KnownError | None = None


@dataclass
class Ledger:
    """All by key. looked: what is on this computer. wanted: asked for or begun, with its pair of the catalogue.

    errors: the last failure and whether it asks for a token or a licence. remote: answers of the hub about memory.
    stopping: a pause was asked for.
    """

    looked: Looked = field(default_factory=Looked)
    wanted: dict[str, CataloguePair | None] = field(default_factory=dict)
    progress: dict[str, DownloadProgress] = field(default_factory=dict)
    errors: dict[str, tuple[dict[str, str], bool]] = field(default_factory=dict)
    remote: dict[str, Fit | str] = field(default_factory=dict)
    stopping: set[str] = field(default_factory=set)

    def entries(self, running: Callable[[str], bool]) -> list[Entry]:
        """First what is here, then what is on its way, then the catalogue. running: whether a key is at work."""
        found, pairs = self.looked.found, {pair.target: pair for pair in self.looked.pairs}
        kept = {begun.repo: begun.kept for begun in found.begun}
        here = [self._demo(), *(self._local(model, pairs.get(model.place)) for model in found.models)]
        away = [self._away(key, pair, kept) for key, pair in (pairs | self._others(kept, pairs)).items()]
        broken = [
            Entry(b.place, b.place, State.BROKEN, error={"what": b.reason, "kept": "", "todo": "", "detail": ""})
            for b in found.unusable
            if b.place not in kept
        ]
        names = {entry.key for entry in (*here, *broken)}
        shown = [self._with_job(e, running(e.key)) for e in (*here, *broken, *(e for e in away if e.key not in names))]
        return sorted(shown, key=lambda entry: ORDER.index(entry.state))

    def _demo(self) -> Entry:
        return self._fitted(Entry(DEMO, "Demo pair", State.HERE, has_head=True), self.looked.fits.get(DEMO))

    def _local(self, model: LocalModel, pair: CataloguePair | None) -> Entry:
        entry = Entry(
            key=model.place,
            title=pair.name if pair is not None else name_of(model.place),
            state=State.HERE,
            head=model.head,
            has_head=model.has_head,
            size=model.bytes,
            quantization=model.quantization,
            pair=pair,
        )
        return self._fitted(entry, self.looked.fits.get(model.place))

    def _others(self, kept: dict[str, int], pairs: dict[str, CataloguePair]) -> dict[str, CataloguePair | None]:
        """Repos beside the catalogue that were asked for or begun. Heads belong to their pair's line."""
        heads = {pair.head for pair in pairs.values()}
        return {key: None for key in (*self.wanted, *kept) if key not in pairs and key not in heads}

    def _away(self, key: str, pair: CataloguePair | None, kept: dict[str, int]) -> Entry:
        begun = kept.get(key, 0) or (kept.get(pair.head, 0) if pair is not None else 0)
        entry = Entry(
            key=key,
            title=pair.name if pair is not None else key,
            state=State.BEGUN if begun else State.AWAY,
            size=pair.bytes if pair is not None else 0,
            quantization=pair.quantization if pair is not None else "",
            pair=pair,
            kept=begun,
        )
        return self._fitted(entry, self.remote.get(key))

    def _fitted(self, entry: Entry, fit: Fit | str | None) -> Entry:
        if isinstance(fit, Fit):
            return replace(entry, fit=fit)
        return replace(entry, fit_error=fit or "")

    def _with_job(self, entry: Entry, busy: bool) -> Entry:
        if busy:
            stopping = entry.key in self.stopping
            return replace(entry, state=State.BUSY, progress=self.progress.get(entry.key), stopping=stopping)
        if entry.key in self.errors:
            error, access = self.errors[entry.key]
            return replace(entry, error=error, access=access)
        return entry
