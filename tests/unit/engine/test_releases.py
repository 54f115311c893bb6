"""`pacenote doctor --check-updates`: asks only where somebody said, and says what it learned or why not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata

import pytest

from engine import releases
from engine.cli.main import main
from engine.errors import KnownError
from engine.telemetry.environment import environment

HERE = environment().pacenote


class Publisher:
    """A server on this machine that answers with `status` and `body`. asked: the paths."""

    def __init__(self) -> None:
        publisher = self
        self.status, self.body = 200, b"{}"
        self.asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.asked.append(self.path)
                self.send_response(publisher.status)
                self.send_header("Content-Length", str(len(publisher.body)))
                self.end_headers()
                self.wfile.write(publisher.body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/latest"

    def tells(self, **fields: str) -> None:
        self.body = json.dumps(fields).encode()


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    made = Publisher()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv(releases.ADDRESS, made.url)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def test_a_newer_release_is_told_with_its_page(publisher: Publisher, capsys: pytest.CaptureFixture[str]) -> None:
    publisher.tells(tag_name="v99.1", html_url="https://example.org/99")
    assert main(["doctor", "--check-updates"]) == 0
    assert capsys.readouterr().out == f"Pacenote 99.1 is out, this is {HERE}. See https://example.org/99\n"
    assert publisher.asked == ["/latest"]


@pytest.mark.parametrize("tag", [HERE, f"v{HERE}", "0.0.1", f"{HERE}rc1"])
def test_an_older_or_equal_one_is_no_news(publisher: Publisher, capsys: pytest.CaptureFixture[str], tag: str) -> None:
    """Versions are compared as versions: 0.10 is newer than 0.9, a candidate is older than its release."""
    publisher.tells(tag_name=tag)
    assert main(["doctor", "--check-updates"]) == 0
    assert "is the newest release" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (404, b"", "answers with HTTP 404"),
        (200, b"<html>", "tells no version"),
        (200, b"[]", "tells no version"),
        (200, b'{"name": "x"}', "tells no version"),
        (200, b'{"tag_name": "nightly"}', "cannot be compared"),
    ],
)
def test_what_is_no_answer_is_said(
    publisher: Publisher, capsys: pytest.CaptureFixture[str], status: int, body: bytes, words: str
) -> None:
    publisher.status, publisher.body = status, body
    assert main(["doctor", "--check-updates"]) == 1
    assert words in capsys.readouterr().err


def test_nothing_is_asked_where_nobody_said_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address is invented. One in the project's metadata counts, and the environment before it."""
    monkeypatch.delenv(releases.ADDRESS, raising=False)
    with pytest.raises(KnownError, match="does not know where") as unknown:
        releases.address()
    assert unknown.value.kept == "Nothing was asked over the network."
    assert releases.LABEL in unknown.value.todo
    told = metadata.metadata("pacenote")
    told["Project-URL"] = "Home, https://example.org"
    told["Project-URL"] = f"{releases.LABEL}, https://example.org/latest"
    monkeypatch.setattr(metadata, "metadata", lambda _: told)
    assert releases.address() == "https://example.org/latest"
    monkeypatch.setenv(releases.ADDRESS, "https://example.org/other")
    assert releases.address() == "https://example.org/other"


def test_a_dead_or_plain_address_is_said(monkeypatch: pytest.MonkeyPatch, publisher: Publisher) -> None:
    """No answer, no encryption, no network wanted: none of them is a crash."""
    publisher.server.shutdown()
    publisher.server.server_close()
    with pytest.raises(KnownError, match="does not answer"):
        releases.newest(publisher.url)
    with pytest.raises(KnownError, match="begins with https"):
        releases.newest("http://example.org/latest")
    assert not publisher.asked
