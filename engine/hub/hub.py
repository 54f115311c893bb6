"""All that an application needs of the hub, in one object. Calls block: not for a window's own thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.errors import CheckpointError
from engine.hub import errors
from engine.hub.cache import disk_errors
from engine.hub.connection import Connection
from engine.hub.download import discard, download
from engine.hub.types import CataloguePair, DownloadProgress, Fit, Found, Step
from engine.request import LoadOptions

NEVER = threading.Event()


class Hub:
    """Safe to share between threads.

    token: None follows HF_TOKEN and what `hf auth login` stored. heads: folder for heads taken out of originals.
    """

    def __init__(self, heads: Path, token: str | None = None, endpoint: str | None = None) -> None:
        self.heads = heads
        self.token = token
        self._endpoint = endpoint

    @property
    def endpoint(self) -> str:
        return self._connection(NEVER).endpoint

    def catalogue(self) -> tuple[CataloguePair, ...]:
        """See `engine.hub.catalogue.catalogue`."""
        from engine.hub.catalogue import catalogue

        return catalogue()

    def local(self, pairs: Sequence[CataloguePair], folders: Sequence[Path] = ()) -> Found:
        """What is on this computer: cache, extracted heads, and the given folders."""
        from engine.hub.local import find_local

        own = [path for path in sorted(self.heads.glob("[!.]*")) if path.is_dir()]
        return find_local(pairs, [*folders, *own])

    def fit(self, options: LoadOptions, context: int | None = None, *, held: int = 0) -> Fit:
        """Of a pair on this computer. held: bytes that become free before it is loaded. Raises CheckpointError."""
        from engine.hub.fit import fit_of

        return fit_of(options, context, held=held)

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
        """See `engine.hub.remote.fit_remote`."""
        from engine.hub.remote import fit_remote

        return fit_remote(self._connection(stop), repo, head, original, context, held=held)

    def download(self, repo: str, stop: threading.Event, progress: Callable[[DownloadProgress], None]) -> None:
        """See `engine.hub.download.download`; refuses what is neither a model of the family nor a head."""
        from engine.hub.headers import require_kind

        progress(DownloadProgress(Step.LOOKING))
        require_kind(self._connection(stop), repo)
        download(self._connection(stop), repo, progress=progress)

    def head_folder(self, original: str) -> Path:
        """Where the head of an original lies once it was extracted."""
        return self.heads / original.replace("/", "--")

    def extract(self, original: str, stop: threading.Event, progress: Callable[[DownloadProgress], None]) -> Path:
        """The head of an original into `head_folder`; at once when it is there."""
        from engine.hub.extract import extract_drafter

        folder = self.head_folder(original)
        if folder.is_dir():
            return folder
        with disk_errors(self.heads):
            self.heads.mkdir(parents=True, exist_ok=True)
        connection = self._connection(stop)
        try:
            extract_drafter(
                connection,
                original,
                folder,
                progress=lambda now, all_: progress(DownloadProgress(Step.HEAD, now, all_)),
            )
        except CheckpointError:
            if not folder.is_dir():  # it is: another program was at it, and has finished
                raise
        return folder

    def discard(self, repo: str) -> int:
        """See `engine.hub.download.discard`."""
        return discard(repo)

    def discard_head(self, original: str) -> int:
        """The same for the head of an original."""
        from engine.hub.headpart import discard_part

        with disk_errors(self.heads):
            return discard_part(self.head_folder(original))

    def owner(self, token: str) -> str:
        """Whose token this is: the test before it is kept.

        Raises:
            HubError: the hub does not know it, or cannot be reached.
        """
        from huggingface_hub import HfApi

        connection = Connection(self._endpoint, token)
        url = f"{connection.endpoint}/api/whoami-v2"
        api = HfApi(endpoint=connection.endpoint, token=token)
        try:
            found = connection.retried(lambda: connection.translated("your account", url, lambda: api.whoami(token)))
        except errors.HubError as error:
            if error.status != 401:
                raise
            raise errors.HubError(
                "The hub does not know this token.",
                todo="Copy it again from your account's page, Access Tokens.",
                status=401,
            ) from None
        return str(found.get("name", "")) if isinstance(found, dict) else ""

    def _connection(self, stop: threading.Event) -> Connection:
        return Connection(self._endpoint, self.token if not os.environ.get("HF_TOKEN") else None, stop=stop)
