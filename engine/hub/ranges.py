"""The one range client: any bytes of any file of a repo, taken up again where a transfer broke.

A transfer that breaks, stalls or is turned away for a while goes on with the first byte that is missing, after the hub
was asked whether the file is still the same (ETag and size). Head extraction reads pieces
with it, downloads whole files.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin, urlsplit

from engine.errors import LoadCancelled
from engine.hub import errors
from engine.hub.connection import Connection, Transient, broken_transfer
from engine.hub.repo import RemoteFile, Repo, open_file

_REDIRECTS = 5
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class RangeClient:
    """For one thread. fetched: bytes of file content received so far, also those of transfers that broke."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.fetched = 0
        self._stored_etags: dict[tuple[str, str], str] = {}  # of the storage's answers, by file and our ETag

    def open(self, repo: Repo, name: str) -> RemoteFile:
        """See `repo.open_file`."""
        return open_file(self.connection, repo, name)

    def read(self, file: RemoteFile, start: int = 0, end: int | None = None) -> bytes:
        """Bytes start .. end (exclusive; None: the file's end) in memory. Raises as `stream`."""
        return b"".join(self.stream(file, start, end))

    def stream(self, file: RemoteFile, start: int = 0, end: int | None = None) -> Generator[bytes]:
        """The same, piece by piece as they come; all of them, in order, or an error.

        Raises:
            FileChanged: the file is another one than `file` was.
            RangeIgnored: the server sends whole files only, and this is a part.
            HubError: refused, or broken more often than patience allows.
            LoadCancelled: `connection.stop` was set.
        """
        end = file.size if end is None else end
        if not 0 <= start <= end <= file.size:
            raise ValueError(f"bytes {start} to {end} of a file of {file.size}")
        failures = 0
        while start < end:
            try:
                for piece in self._once(file, start, end):
                    start += len(piece)
                    failures = 0
                    yield piece
            except Transient as transient:
                failures += 1
                self.connection.pause(failures, transient)
                file = self._again(file)

    def _again(self, file: RemoteFile) -> RemoteFile:
        """The same file with a fresh location; the old one may have expired."""
        fresh = open_file(self.connection, Repo(file.repo, file.revision, {}), file.name)
        if (fresh.etag, fresh.size) != (file.etag, file.size):
            raise errors.another_state(file.name, (file.etag, file.size), (fresh.etag, fresh.size))
        return replace(file, location=fresh.location)

    def _once(self, file: RemoteFile, start: int, end: int) -> Iterator[bytes]:
        """One request, redirects included. Raises Transient when it breaks; what was yielded until then counts."""
        session = self.connection.session()
        url, timeout = file.location, self.connection.patience.stall
        try:
            for _ in range(_REDIRECTS):
                with session.stream(
                    "GET", url, headers=self._headers(url, start, end), timeout=timeout, follow_redirects=False
                ) as response:
                    if response.has_redirect_location:
                        url = urljoin(url, response.headers["Location"])
                        continue
                    self._check(response, file, url, start, end)
                    yield from self._body(response, file, end - start)
                    return
        except broken_transfer() as error:
            host = urlsplit(url).netloc
            raise Transient(errors.unreachable(host, f"{type(error).__name__}: {error}")) from error
        raise errors.HubError(
            f"The hub sends {file.name} in circles.", todo="Check HF_ENDPOINT.", detail=f"last: {errors.plain(url)}"
        )

    def _headers(self, url: str, start: int, end: int) -> dict[str, str]:
        headers = {"Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        hub = urlsplit(self.connection.endpoint)
        if (urlsplit(url).scheme, urlsplit(url).netloc) == (hub.scheme, hub.netloc):
            return self.connection.headers() | headers  # the token never leaves the hub
        return headers

    def _check(self, response: Any, file: RemoteFile, url: str, start: int, end: int) -> None:
        """Whether this answer is the wanted bytes of the wanted state of the file."""
        status = response.status_code
        if status == 416:
            self._again(file)  # a shorter file has another ETag or size
            raise errors.HubError(
                f"The server refuses bytes {start} to {end} of {file.name}, which has {file.size}.",
                todo="Try again later, or another mirror (HF_ENDPOINT).",
                status=status,
            )
        if status in (401, 403, 404) and url != file.url:
            # A signed location that ran out. If a fresh one is refused as well, patience ends in the right words.
            raise Transient(
                errors.refused(status, file.repo, self.connection.endpoint, url, has_token=self.connection.has_token)
            )
        if status not in (200, 206):
            raise self.connection.problem(response, file.repo, url)
        etag = _normal(response.headers.get("ETag", ""))
        known = file.etag if url == file.url else self._stored_etags.setdefault((file.url, file.etag), etag)
        if etag and known and etag != known:
            raise errors.changed(file.name, f"ETag {known} became {etag}")
        if status == 200:
            if (start, end) != (0, file.size):
                raise errors.RangeIgnored(
                    f"{urlsplit(url).netloc} ignores byte ranges, so a part of {file.name} cannot be fetched alone.",
                    todo="Download the whole file, or name another mirror (HF_ENDPOINT).",
                    status=status,
                )
            return
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or (int(match[1]), int(match[2])) != (start, end - 1):
            raise errors.HubError(
                f"The server sent other bytes of {file.name} than it was asked for.",
                todo="Check the proxy and HF_ENDPOINT, then try again.",
                detail=f"asked {start}-{end - 1}, got {response.headers.get('Content-Range')}",
                status=status,
            )
        if int(match[3]) != file.size:
            raise errors.changed(file.name, f"it has {match[3]} bytes, it had {file.size}")

    def _body(self, response: Any, file: RemoteFile, wanted: int) -> Iterator[bytes]:
        got = 0
        for piece in response.iter_raw():
            if self.connection.stop.is_set():
                raise LoadCancelled
            self.fetched += len(piece)
            got += len(piece)
            if got > wanted:
                raise errors.HubError(
                    f"The server sent more of {file.name} than it was asked for.",
                    todo="Check the proxy and HF_ENDPOINT, then try again.",
                )
            yield piece
        if got < wanted:
            raise Transient(
                errors.unreachable(urlsplit(file.url).netloc, f"{file.name} ended {wanted - got} bytes early")
            )


def _normal(etag: str) -> str:
    """Without the mark of weak tags and without quotes, as `huggingface_hub` gives them."""
    return etag.removeprefix("W/").strip('"')
