"""What a hub can refuse, in words."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from engine.errors import KnownError

KEPT = "Nothing on this computer was changed."


class HubError(KnownError):
    """The hub, or the way to it, refuses. status: of the HTTP answer, 0 where there was none."""

    def __init__(self, what: str, *, todo: str, kept: str = KEPT, detail: str = "", status: int = 0) -> None:
        super().__init__(what, kept=kept, todo=todo, detail=detail)
        self.status = status


class FileChanged(HubError):
    """A file is another one than when its transfer began: bytes of the two must not be joined."""


class RangeIgnored(HubError):
    """The server sends whole files only. A download can begin anew with byte 0; a piece cannot be had."""


class DiskFull(HubError):
    """missing: bytes to free, 0 where that is not known."""

    def __init__(self, what: str, *, todo: str, detail: str = "", missing: int = 0) -> None:
        super().__init__(what, todo=todo, detail=detail)
        self.missing = missing


def plain(url: str) -> str:
    """A URL without what may be secret in it: the query, which signs, and a user's name and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{_host(parts.netloc)}{parts.path}"


def _host(netloc: str) -> str:
    return netloc.rpartition("@")[2]


def offline() -> HubError:
    return HubError(
        "The Hugging Face Hub is switched off: offline mode is on (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE).",
        todo="Unset it to download, or use what is on this computer.",
    )


def no_endpoint(endpoint: str) -> HubError:
    return HubError(
        f"HF_ENDPOINT is no address of a hub: {_host(endpoint)!r}.",
        todo="Set it to one that begins with https:// or http://, or unset it.",
    )


def no_client(detail: str) -> HubError:
    return HubError(
        "No connection can be set up with the proxy and certificates that this computer names.",
        todo="Check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY (http:// and https:// proxies can be used) and SSL_CERT_FILE.",
        detail=detail,
    )


def no_token() -> HubError:
    """Does not show it."""
    return HubError(
        "The access token for the hub holds characters that no token has.",
        todo="Copy it again from your account's page, Access Tokens; HF_TOKEN comes before the stored one.",
        status=401,
    )


def unreachable(netloc: str, detail: str) -> HubError:
    return HubError(
        f"{_host(netloc)} does not answer.",
        todo="Check the network, the proxy and HF_ENDPOINT, then try again.",
        detail=detail,
    )


def refused(status: int, repo: str, endpoint: str, url: str, *, has_token: bool, gated: bool = False) -> HubError:
    """For a final HTTP status. gated: the hub says that the repo's licence has to be accepted."""
    page = plain(f"{endpoint}/{repo}")
    detail = f"HTTP {status} from {plain(url)}"
    if status == 401 and gated:
        what = f"{repo} is gated: it needs a token of an account that has accepted its licence."
        todo = f"Open {page} and accept; then set HF_TOKEN, run `hf auth login`, or enter the token in the window."
    elif status == 401:
        what = (
            f"The hub does not accept the token for {repo}." if has_token else f"{repo} needs a token, or is not there."
        )
        todo = "Set HF_TOKEN to a valid token, or run `hf auth login`; then check the name of the repo."
    elif status == 403:
        what, todo = (
            f"You have no access to {repo}.",
            f"Open {page}, accept its licence or ask for access, then try again.",
        )
    elif status == 404:
        what, todo = (
            f"{repo} does not have what was asked for.",
            "Check the name of the repo, the file and the revision.",
        )
    elif status == 429:
        what, todo = "The hub asks to slow down.", "Wait some minutes, then try again."
    elif status >= 500:
        what, todo = f"The hub has a fault of its own (HTTP {status}).", "Try again later."
    else:
        what, todo = f"The hub answers with HTTP {status}.", "Check HF_ENDPOINT, then try again."
    return HubError(what, todo=todo, detail=detail, status=status)


def missing(repo: str, what: str, url: str) -> HubError:
    """what: "no such revision", "no file config.json"."""
    return HubError(
        f"{repo} has {what}.",
        todo="Check the name of the repo and the revision.",
        detail=f"HTTP 404 from {plain(url)}",
        status=404,
    )


def another_state(name: str, before: tuple[str, int], now: tuple[str, int]) -> FileChanged:
    """before, now: ETag and size in bytes."""
    sizes = f", {before[1]} bytes became {now[1]}" if before[1] != now[1] else ""
    return changed(name, f"ETag {before[0]} became {now[0]}{sizes}")


def changed(name: str, why: str) -> FileChanged:
    return FileChanged(
        f"{name} was changed on the hub: {why}.",
        todo="Start again, to have all of it from one state.",
    )


def size(count: float) -> str:
    """Bytes in words: "14.2 GiB"."""
    for unit, bytes_ in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count:.0f} bytes"


def disk_full(cache: Path, *, missing: int = 0, needed: int = 0, free: int = 0, detail: str = "") -> DiskFull:
    """needed, free: bytes, where they are known; missing: how much to free."""
    if missing:
        what = f"The disk of {cache} has {size(free)} free, this download needs {size(needed)}."
        todo = f"Free {size(missing)} there, or point HF_HUB_CACHE to another disk; then go on."
    else:
        what, todo = f"The disk of {cache} is full.", "Free some space there; then go on."
    return DiskFull(what, todo=todo, detail=detail, missing=missing)


def not_writable(cache: Path, detail: str) -> HubError:
    return HubError(
        f"The Hugging Face cache {cache} cannot be written.",
        todo="Make the folder writable for you, or point HF_HUB_CACHE to another one; then try again.",
        detail=detail,
    )


def disk_broken(cache: Path, detail: str) -> HubError:
    return HubError(
        f"The disk of {cache} refuses to read or write.", todo="Check the disk; then try again.", detail=detail
    )


def damaged(name: str, repo: str, detail: str) -> HubError:
    return HubError(
        f"{name} of {repo} arrived damaged twice: its hash is not the one that the hub lists.",
        todo="Check the proxy and HF_ENDPOINT, then try again; or tell the owner of the repo.",
        detail=detail,
    )
