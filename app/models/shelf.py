"""What can be loaded and what could be fetched: the state behind the models window."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.errorcard import as_dict
from app.models.badge import show_share
from app.models.entry import DEMO, Entry
from app.models.jobs import Jobs, Tell
from app.models.ledger import Ledger, Looked
from app.models.own import OwnFolders
from app.models.token import TokenStore
from engine import (
    CataloguePair,
    DownloadProgress,
    Fit,
    Hub,
    HubError,
    KnownError,
    LoadCancelled,
    LoadOptions,
)

LOOK, TOKEN, FIT = "look", "token", "fit "
CONTEXTS = (4096, 8192, 32_768, 131_072)
_WANTS_ACCESS = (401, 403)


class Shelf(QObject):
    """changed: the entries are others, or say other things. progressed: a download's figures (key).

    failed: an error that belongs to no entry, as a dict. token_kept: "" or why it is not in the keychain.
    """

    changed = Signal()
    progressed = Signal(str)
    failed = Signal(dict)
    token_kept = Signal(str)
    bug = Signal(str)

    def __init__(
        self, hub: Hub, own: OwnFolders, tokens: TokenStore | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.hub = hub
        self.context = CONTEXTS[1]
        self._own = own
        self._tokens = tokens or TokenStore()
        self._token_asked = threading.Event()
        self._ledger = Ledger()
        self._unwanted: set[str] = set()
        self._again = False
        self.held: Callable[[], int] = lambda: 0
        """Bytes that the model in use gives back when another takes its place."""
        self.jobs = Jobs(self)
        self.jobs.told.connect(self._on_told)
        self.jobs.done.connect(self._on_done)
        self.jobs.failed.connect(self._on_failed)

    def close(self) -> None:
        self.jobs.close()

    @property
    def looked(self) -> bool:
        """Whether anybody asked what is here."""
        return bool(self._ledger.looked.fits)

    @property
    def looking(self) -> bool:
        return self.jobs.running(LOOK)

    def entries(self) -> list[Entry]:
        return self._ledger.entries(self.jobs.running)

    def entry(self, key: str) -> Entry | None:
        return next((entry for entry in self.entries() if entry.key == key), None)

    # what the user asks for

    @Slot()
    def refresh(self) -> None:
        """Look at this computer again, on a thread."""
        context, held, folders = self.context, self.held(), self._own.load()

        def look(stop: threading.Event, tell: Tell) -> Looked:
            pairs: tuple[CataloguePair, ...] = ()
            problem: KnownError | None = None
            try:
                pairs = self.hub.catalogue()
            except KnownError as error:
                problem = error  # what is here can be loaded all the same
            found = self.hub.local(pairs, folders)
            fits: dict[str, Fit | str] = {DEMO: self._fit(LoadOptions(), context, held)}
            for model in found.models:
                options = LoadOptions(target=model.place, head=model.head or None)
                fits[model.place] = self._fit(options, context, held)
            return Looked(pairs, found, fits, problem)

        # Asked while it looks: look once more, what it saw may be old.
        self._again = not self.jobs.start(LOOK, look)
        self.changed.emit()

    def set_context(self, tokens: int) -> None:
        self.context = tokens
        self._ledger.remote.clear()
        self.refresh()

    def look_at(self, key: str) -> None:
        """Ask the hub whether a repo would fit, by its headers."""
        entry = self.entry(key)
        pair = entry.pair if entry is not None else None
        head, original = (pair.head, pair.original) if pair is not None else ("", "")
        context, held = self.context, self.held()

        def look(stop: threading.Event, tell: Tell) -> Fit:
            self._use_token(tell)
            return self.hub.fit_remote(key, head, stop, context, held=held, original=original)

        self.jobs.start(FIT + key, look)
        self.changed.emit()

    def fetch(self, key: str) -> None:
        """Begin or go on: the target, then its head."""
        entry = self.entry(key)
        pair = entry.pair if entry is not None else None
        self._ledger.wanted[key] = pair
        self._ledger.errors.pop(key, None)

        def fetch(stop: threading.Event, tell: Tell) -> None:
            self._use_token(tell)
            self.hub.download(key, stop, tell)
            if pair is not None and pair.head:
                self.hub.download(pair.head, stop, tell)
            elif pair is not None:
                self.hub.extract(pair.original, stop, tell)

        self.jobs.start(key, fetch)
        self.changed.emit()

    def pause(self, key: str) -> None:
        """A transfer that stalls notices it within its patience, so that is told."""
        if self.jobs.running(key):
            self._ledger.stopping.add(key)
            self.jobs.stop(key)
            self.changed.emit()

    def discard(self, key: str) -> None:
        """Delete what is half there; where the download runs, as soon as it has stopped."""
        if self.jobs.running(key):
            self._unwanted.add(key)
            self.pause(key)
            return
        entry = self.entry(key)
        pair = entry.pair if entry is not None else None
        self._ledger.errors.pop(key, None)
        self._ledger.wanted.pop(key, None)

        def discard(stop: threading.Event, tell: Tell) -> int:
            freed = self.hub.discard(key)
            if pair is None:
                return freed
            return freed + (self.hub.discard(pair.head) if pair.head else self.hub.discard_head(pair.original))

        self.jobs.start(key, discard)

    def add_folder(self, folder: Path) -> None:
        """Raises OSError."""
        self._own.add(folder)
        self.refresh()

    def use_token(self, token: str) -> None:
        """Test a token; use and keep it when the hub knows it."""

        def test(stop: threading.Event, tell: Tell) -> str:
            self.hub.owner(token)
            self.hub.token = token
            self._token_asked.set()
            return self._tokens.save(token)

        self.jobs.start(TOKEN, test)

    # what the jobs say

    @Slot(str, object)
    def _on_told(self, key: str, value: object) -> None:
        if isinstance(value, DownloadProgress):
            self._ledger.progress[key] = value
            self.progressed.emit(key)
            self._badge()
        elif isinstance(value, KnownError):
            self.failed.emit(as_dict(value))

    @Slot(str, object)
    def _on_done(self, key: str, value: object) -> None:
        self._ledger.stopping.discard(key)
        self._unwanted.discard(key)
        if isinstance(value, Looked):
            if value.problem is not None and str(value.problem) != str(self._ledger.looked.problem):
                self.failed.emit(as_dict(value.problem))
            self._ledger.looked = value
        elif key == TOKEN:
            self.token_kept.emit(str(value))
        elif isinstance(value, Fit):
            self._ledger.remote[key.removeprefix(FIT)] = value
        else:
            self._ledger.progress.pop(key, None)
            self._ledger.wanted.pop(key, None)
            self.refresh()
        self._ended(key)

    @Slot(str, object, str)
    def _on_failed(self, key: str, error: Exception, trace: str) -> None:
        known = as_dict(error) if isinstance(error, KnownError) else None
        if known is None and not isinstance(error, LoadCancelled):
            self.bug.emit(trace)
            known = {"what": "Pacenote made a mistake.", "kept": "", "todo": "Try again.", "detail": trace}
        self._ledger.stopping.discard(key)
        if key in (TOKEN, LOOK):
            if known is not None:
                self.failed.emit(known)
        elif key.startswith(FIT):
            self._ledger.remote[key.removeprefix(FIT)] = known["what"] if known is not None else ""
        else:
            if known is not None:
                access = isinstance(error, HubError) and error.status in _WANTS_ACCESS
                self._ledger.errors[key] = known, access
            self._ledger.progress.pop(key, None)
            if key in self._unwanted:
                self._unwanted.discard(key)
                self.discard(key)
            self.refresh()
        self._ended(key)

    def _ended(self, key: str) -> None:
        if key == LOOK and self._again:
            self.refresh()
        self._badge()
        self.changed.emit()

    def _fit(self, options: LoadOptions, context: int, held: int) -> Fit | str:
        try:
            return self.hub.fit(options, context, held=held)
        except KnownError as error:
            return error.what

    def _use_token(self, tell: Tell) -> None:
        """Once, on a job's thread: the keychain may ask the user. One that does not work stops no download."""
        if not self._token_asked.is_set() and not os.environ.get("HF_TOKEN"):
            self._token_asked.set()
            try:
                self.hub.token = self._tokens.load() or self.hub.token
            except KnownError as error:
                tell(error)

    def _badge(self) -> None:
        show_share([p for key, p in self._ledger.progress.items() if self.jobs.running(key) and p.total])
