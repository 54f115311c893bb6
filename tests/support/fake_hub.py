"""A local server that speaks the endpoints of the Hugging Face Hub, and misbehaves on request.

    GET       /api/models/{repo}[/revision/{rev}]     metadata
    GET       /api/whoami-v2                          whose token it is
    HEAD, GET /{repo}/resolve/{rev}/{file}            small files, or a redirect to the storage
    GET       {storage}/{sha256}/{file}?signature=N   bytes; byte ranges

The storage is another origin (another port), as on the real hub: tokens must not get there.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

_API = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?")
_RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_LARGE = ".safetensors"


@dataclass
class FakeRepo:
    """commit, files: the state of the main branch. gated, private: who may read.

    hashes: whether the metadata list them, which some mirrors do not.
    """

    commit: str
    files: dict[str, bytes]
    gated: bool = False
    private: bool = False
    licence: str = "apache-2.0"
    hashes: bool = True


@lru_cache(maxsize=64)
def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=256)
def git_sha(data: bytes) -> str:
    """As git names a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass
class Fault:
    """What goes wrong, for requests whose "METHOD path" matches `match`, the next `times` of them.

    status: answer with it and `headers`. cut: end the body after so many bytes. stall: send so many, then nothing
    until the hub closes. whole: ignore Range. circle: redirect to itself. shift: answer with other bytes than asked.
    etag: another state. more: bytes too many. flip: change the first byte of the body.
    total: another size of the whole file in Content-Range.
    """

    match: str
    times: int = 1
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    stall: int | None = None
    whole: bool = False
    circle: bool = False
    shift: int = 0
    etag: str = ""
    more: int = 0
    total: int = 0
    flip: bool = False


@dataclass(frozen=True)
class Seen:
    """One request: origin "hub" or "storage"; sent: bytes of body."""

    method: str
    path: str
    origin: str
    range: str
    token: str
    sent: int


class FakeHub:
    """repos: by id, change them as a test needs. faults: queue; the first that matches is used up.

    rate: bytes per second for each body, 0 for as fast as it goes. ranges: whether the storage can send parts.
    written: bytes of bodies that were handed to the system. wired: those that TCP has sent (Linux; 0 elsewhere).
    """

    def __init__(self) -> None:
        self.reset()
        self.signatures = 0
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._servers = [_Server(self, origin) for origin in ("hub", "storage")]
        self._threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in self._servers]
        for thread in self._threads:
            thread.start()

    def reset(self) -> None:
        """As new, but for the ports and the count of signatures."""
        self.repos: dict[str, FakeRepo] = {}
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.tokens = {"hf_good"}
        self.expired: set[int] = set()
        self.rate = 0
        self.ranges = True
        self.written = self.wired = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    @property
    def storage(self) -> str:
        return f"http://127.0.0.1:{self._servers[1].server_port}"

    @property
    def sent(self) -> int:
        """Bytes of file content that left the two servers."""
        return sum(seen.sent for seen in self.seen if not seen.path.startswith("/api/"))

    def add(self, repo: str, folder: Path, commit: str = "c0ffee" + 34 * "0") -> FakeRepo:
        """Publish a folder as a repo."""
        self.repos[repo] = FakeRepo(commit, {p.name: p.read_bytes() for p in sorted(folder.iterdir())})
        return self.repos[repo]

    def fault(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.match, f"{method} {path}"):
                    fault.times -= 1
                    return fault
        return None

    def close(self) -> None:
        self.closing.set()
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    try:
        yield hub
    finally:
        hub.close()


class _Server(ThreadingHTTPServer):
    def __init__(self, hub: FakeHub, origin: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub, self.origin = hub, origin

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that hung up


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 5

    def do_GET(self) -> None:
        hub, path = self.server.hub, unquote(urlsplit(self.path).path)
        fault = hub.fault(self.command, path) or Fault("")
        if fault.status:
            self._answer(fault.status, b"", fault.headers)
        elif fault.circle:
            self._answer(302, b"", {"Location": self.path})
        elif self.server.origin == "storage":
            self._stored(path, fault)
        elif path == "/api/whoami-v2":
            known = self._token in hub.tokens
            self._answer(200 if known else 401, b'{"type": "user", "name": "someone"}' if known else b"")
        elif match := _API.fullmatch(path):
            self._metadata(match[1], match[2])
        elif match := _RESOLVE.fullmatch(path):
            self._resolve(match[1], match[2], match[3], fault)
        else:
            self._answer(404, b"")

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass

    @property
    def _token(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def _repo(self, name: str, revision: str | None, *, api: bool = False) -> FakeRepo | None:
        """The repo, or None after the refusal that the hub sends."""
        hub, repo = self.server.hub, self.server.hub.repos.get(name)
        known = self._token in hub.tokens
        if self._token and not known:
            self._answer(401, b"", {"X-Error-Message": "Invalid credentials in Authorization header"})
        elif repo is None or (repo.private and not known):
            # The hub does not tell strangers which of the two it is.
            self._answer(404 if known else 401, b"", {"X-Error-Code": "RepoNotFound"})
        elif repo.gated and not known and not api:
            self._answer(401, b"", {"X-Error-Code": "GatedRepo"})
        elif repo.gated and known and self._token != "hf_licensed" and not api:
            self._answer(403, b"", {"X-Error-Code": "GatedRepo"})
        elif revision not in (None, "main", repo.commit):
            self._answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        else:
            return repo
        return None

    def _metadata(self, name: str, revision: str | None) -> None:
        repo = self._repo(name, revision, api=True)
        if repo is None:
            return
        siblings = []
        for file, data in repo.files.items():
            if not repo.hashes:
                siblings.append({"rfilename": file})
                continue
            entry = {"rfilename": file, "size": len(data), "blobId": git_sha(data)}
            if file.endswith(_LARGE):
                entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 134}
            siblings.append(entry)
        info = {
            "id": name,
            "modelId": name,
            "sha": repo.commit,
            "private": repo.private,
            "gated": "auto" if repo.gated else False,
            "siblings": siblings,
            "tags": [f"license:{repo.licence}"] if repo.licence else [],
        }
        self._answer(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def _resolve(self, name: str, revision: str, file: str, fault: Fault) -> None:
        hub, repo = self.server.hub, self._repo(name, revision)
        if repo is None:
            return
        data = repo.files.get(file)
        if data is None:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        common = {"X-Repo-Commit": repo.commit}
        if not file.endswith(_LARGE):
            self._bytes(data, fault.etag or git_sha(data), fault, common)
            return
        digest = sha256(data)
        with hub.lock:
            hub.signatures += 1
            signature = hub.signatures
        common |= {
            "Location": f"{hub.storage}/{digest}/{file}?signature={signature}",
            "X-Linked-Etag": f'"{fault.etag or digest}"',
            "X-Linked-Size": str(len(data)),
        }
        self._answer(302, b"", common)

    def _stored(self, path: str, fault: Fault) -> None:
        hub = self.server.hub
        signature = int(parse_qs(urlsplit(self.path).query)["signature"][0])
        digest = path.split("/")[1]
        for repo in hub.repos.values():
            for data in repo.files.values():
                if sha256(data) == digest and signature not in hub.expired:
                    # The storage has ETags of its own.
                    self._bytes(data, fault.etag or f"stored-{digest[:8]}", fault, {})
                    return
        self._answer(403, b"")

    def _bytes(self, data: bytes, etag: str, fault: Fault, headers: dict[str, str]) -> None:
        headers = {**headers, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None or fault.whole or not self.server.hub.ranges or self.command == "HEAD":
            self._answer(200, data, headers, fault)
            return
        start, last = int(asked[1]) + fault.shift, min(int(asked[2]) + fault.shift, len(data) - 1)
        if start > last:
            self._answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            return
        headers["Content-Range"] = f"bytes {start}-{last}/{fault.total or len(data)}"
        body = memoryview(data)[start : last + 1]
        self._answer(206, bytes(body) + fault.more * b"x" if fault.more else body, headers, fault)

    def _answer(
        self,
        status: int,
        body: bytes | memoryview,
        headers: dict[str, str] | None = None,
        fault: Fault | None = None,
    ) -> None:
        hub = self.server.hub
        fault = fault or Fault("")
        stop = min(x for x in (fault.cut, fault.stall, len(body)) if x is not None)
        sent = 0 if self.command == "HEAD" else stop
        hub.seen.append(
            Seen(self.command, self.path, self.server.origin, self.headers.get("Range", ""), self._token, sent)
        )
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault.flip and sent:
            body = bytes([body[0] ^ 1]) + bytes(body[1:])
        self._send(memoryview(body)[:sent])
        if fault.stall is not None and self.command != "HEAD":
            hub.closing.wait(10)
        if sent < len(body) and self.command != "HEAD":
            self.close_connection = True

    def _send(self, body: memoryview) -> None:
        """At `rate` at most, measured from the first byte, so that a late chunk is made up for.

        In chunks of half a millisecond: a network hands over packets, not megabytes.
        """
        hub, started, at, before = self.server.hub, time.monotonic(), 0, _sent_on(self.connection)
        try:
            while at < len(body):
                chunk = body[at : at + (max(4096, hub.rate // 2000) if hub.rate else len(body))]
                self.wfile.write(chunk)
                at += len(chunk)
                if hub.rate and (early := at / hub.rate - (time.monotonic() - started)) > 0:
                    hub.closing.wait(early)
            self.wfile.flush()
        finally:
            with hub.lock:
                hub.written += at
                # What waits in the system's buffer of a connection that holds will be sent.
                hub.wired += at if at == len(body) else _sent_on(self.connection) - before


def _sent_on(connection: socket.socket) -> int:
    """Bytes that TCP has sent: `tcpi_bytes_sent` of linux/tcp.h, since Linux 4.19."""
    if sys.platform != "linux":
        return 0
    return int(struct.unpack_from("<Q", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 208), 200)[0])
