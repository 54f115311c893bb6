"""How to talk to a hub: which one, as whom, and how long to try."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from engine.errors import LoadCancelled
from engine.hub import errors

T = TypeVar("T")

_YES = ("1", "on", "yes", "true")
_GATED = "GatedRepo"  # of the header in which the hub says why it refuses
RETRIED = (408, 429, 500, 502, 503, 504)
"""Statuses that may be gone in a moment."""


@dataclass(frozen=True)
class Patience:
    """How long to try. Times in seconds.

    tries: in a row without one new byte. first_wait doubles with each, up to longest_wait; a server's
    Retry-After counts instead, up to longest_wait. stall: without a byte, then the transfer is taken up anew.
    """

    tries: int = 6
    first_wait: float = 0.5
    longest_wait: float = 60.0
    stall: float = 20.0

    def wait(self, failures: int, asked: float | None) -> float:
        """After this many failures in a row, 1 or more. Up to a quarter is chance, so that clients do not march."""
        if asked is not None:
            return min(asked, self.longest_wait)
        return min(self.first_wait * 2 ** (failures - 1), self.longest_wait) * random.uniform(0.75, 1.0)


class Transient(Exception):
    """A failure that may pass. final: what to raise when patience ends. asked: seconds, by the server."""

    def __init__(self, final: errors.HubError, asked: float | None = None) -> None:
        super().__init__(str(final))
        self.final = final
        self.asked = asked


def _default_endpoint() -> str:
    from huggingface_hub import constants

    return constants.ENDPOINT or constants._HF_DEFAULT_ENDPOINT  # the former is "" where HF_ENDPOINT is


def _checked(endpoint: str) -> str:
    """Raises HubError for what is no address: trying it again would not help."""
    try:
        parts = urlsplit(endpoint)
        if parts.scheme in ("http", "https") and parts.hostname and not any(c.isspace() for c in endpoint):
            return endpoint.rstrip("/")
    except ValueError:
        pass  # brackets that do not match
    raise errors.no_endpoint(endpoint)


def broken_transfer() -> tuple[type[Exception], ...]:
    """What a transfer raises when the way breaks: the errors of httpx or httpx2, whichever `huggingface_hub` uses."""
    import huggingface_hub.errors

    return (huggingface_hub.errors.HTTPError, OSError)  # type: ignore[attr-defined]


class Connection:
    """A hub, a token and patience. `stop` may be set from any thread.

    endpoint: None follows HF_ENDPOINT. token: None follows HF_TOKEN and what `hf auth login` stored.
    told: called before each wait with what went wrong and the seconds of the wait.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        token: str | None = None,
        patience: Patience | None = None,
        stop: threading.Event | None = None,
        told: Callable[[errors.HubError, float], None] | None = None,
    ) -> None:
        self.endpoint = _checked(endpoint or os.environ.get("HF_ENDPOINT", "").strip() or _default_endpoint())
        self.patience = patience or Patience()
        self.stop = stop or threading.Event()
        self._token = token
        self._told = told

    def for_threads(
        self, stop: threading.Event, told: Callable[[errors.HubError, float], None] | None = None
    ) -> Connection:
        """The same hub, token and patience for threads that end together. It holds nothing that changes."""
        return Connection(self.endpoint, self._token, self.patience, stop, told or self._told)

    def headers(self) -> dict[str, str]:
        """With the token, if there is one. For the hub itself only, never for where it redirects to.

        Raises HubError for a token that no header can carry.
        """
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        built: dict[str, str] = build_hf_headers(token=self._token, library_name="pacenote")
        token = built.get("authorization", "").removeprefix("Bearer ")
        if not token.isascii() or not token.isprintable():
            raise errors.no_token()
        return built

    @property
    def has_token(self) -> bool:
        return "authorization" in {name.lower() for name in self.headers()}

    @property
    def token(self) -> str | None:
        """As `huggingface_hub` wants it: None means the stored one."""
        return self._token

    def session(self) -> Any:
        """The HTTP client of `huggingface_hub`.

        Raises HubError before any request: in offline mode, or where a proxy or certificate file cannot be used.
        """
        from huggingface_hub import constants
        from huggingface_hub.utils import get_session  # type: ignore[attr-defined]

        if constants.HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in _YES:
            raise errors.offline()
        try:
            return get_session()
        except Exception as error:
            # A proxy's address that is none, SOCKS without its package, certificates that are not there: all of
            # them leave the constructor under different types, one of them a bare Exception.
            raise errors.no_client(f"{type(error).__name__}: {error}") from error

    def pause(self, failures: int, transient: Transient) -> None:
        """Wait before the next try.

        Raises:
            HubError: patience has ended.
            LoadCancelled: `stop` was set.
        """
        if failures >= self.patience.tries:
            raise transient.final
        seconds = self.patience.wait(failures, transient.asked)
        if self._told is not None:
            self._told(transient.final, seconds)
        if self.stop.wait(seconds):
            raise LoadCancelled

    def retried(self, attempt: Callable[[], T]) -> T:
        """The result of the first attempt that raises no Transient."""
        failures = 0
        while True:
            if self.stop.is_set():
                raise LoadCancelled
            try:
                return attempt()
            except Transient as transient:
                failures += 1
                self.pause(failures, transient)

    def translated(self, repo: str, url: str, call: Callable[[], T]) -> T:
        """Run a call of `huggingface_hub` once.

        Raises:
            HubError: a refusal that stays. Transient: one that may pass.
        """
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            OfflineModeIsEnabled,
            RemoteEntryNotFoundError,
            RevisionNotFoundError,
        )

        self.session()
        self.headers()
        try:
            return call()
        except RevisionNotFoundError as error:
            raise errors.missing(repo, "no such revision", url) from error
        except RemoteEntryNotFoundError as error:
            raise errors.missing(repo, f"no file {url.rsplit('/', 1)[-1]}", url) from error
        except HfHubHTTPError as error:
            raise self.problem(error.response, repo, url) from error
        except OfflineModeIsEnabled as error:
            raise errors.offline() from error
        except HFValidationError as error:
            raise errors.HubError(
                f"{repo!r} is no name of a repo.", todo="Write owner/name.", detail=str(error)
            ) from error
        except broken_transfer() as error:
            raise Transient(
                errors.unreachable(urlsplit(self.endpoint).netloc, f"{type(error).__name__}: {error}")
            ) from error

    def problem(self, response: Any, repo: str, url: str) -> Exception:
        """For an answer that is not the wanted one: Transient or HubError."""
        final = errors.refused(
            response.status_code,
            repo,
            self.endpoint,
            url,
            has_token=self.has_token,
            gated=response.headers.get("X-Error-Code") == _GATED,
        )
        if response.status_code in RETRIED:
            return Transient(final, asked=_retry_after(response))
        return final


def _retry_after(response: Any) -> float | None:
    """Seconds the server asks for, in the standard header or in the hub's `RateLimit: ...;t=55`."""
    from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

    try:
        return float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        pass  # absent, or a date, which the hub does not send
    limit = parse_ratelimit_headers(response.headers)
    return float(limit.reset_in_seconds) if limit is not None else None
