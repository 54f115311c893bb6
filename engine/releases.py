"""The newest release, asked for only when the user asks. Where to ask is not in the code: who publishes it says so.

The address is that of a JSON object as GitHub gives it for `releases/latest`: `tag_name`, and `html_url` for people.
It is taken from the environment variable ADDRESS, else from the project URL named LABEL in the package's metadata.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import metadata

from engine.errors import KnownError

ADDRESS = "PACENOTE_RELEASES"
LABEL = "Release feed"
TIMEOUT_SECONDS = 15.0
NOT_ASKED = "Nothing was asked over the network."


@dataclass(frozen=True, slots=True)
class Release:
    """version: without a leading "v". page: for people, "" when the address does not say."""

    version: str
    page: str


def address() -> str:
    """Where to ask.

    Raises:
        KnownError: nobody has said where.
    """
    if asked := os.environ.get(ADDRESS, "").strip():
        return asked
    urls = (line.partition(", ") for line in metadata.metadata("pacenote").get_all("Project-URL") or ())
    if found := next((url for label, _, url in urls if label == LABEL), ""):
        return found
    raise KnownError(
        "This Pacenote does not know where its releases are published.",
        kept=NOT_ASKED,
        todo=f"Look where you got it from. Who publishes it: set the project URL “{LABEL}” in pyproject.toml; "
        f"{ADDRESS} names an address for one call.",
    )


def newest(url: str) -> Release:
    """Ask. The only thing sent is the request itself.

    Raises:
        KnownError: the address cannot be used, does not answer, or tells no version.
    """
    from huggingface_hub.errors import OfflineModeIsEnabled
    from huggingface_hub.utils import get_session  # type: ignore[attr-defined]

    from engine.hub.connection import broken_transfer

    if not url.startswith("https://") and not url.startswith("http://127.0.0.1"):
        raise KnownError(
            f"The address of the releases, {url}, is not one that begins with https://.",
            kept=NOT_ASKED,
            todo=f"Correct {ADDRESS}.",
        )
    try:
        answer = get_session().get(url, timeout=TIMEOUT_SECONDS, follow_redirects=True)
    except OfflineModeIsEnabled as error:
        raise KnownError("Offline mode is on (HF_HUB_OFFLINE).", kept=NOT_ASKED, todo="Unset it to ask.") from error
    except broken_transfer() as error:
        raise KnownError(
            f"{url} does not answer.", todo="Check the network and the proxy, then try again.", detail=str(error)
        ) from error
    if answer.status_code != 200:
        raise KnownError(f"{url} answers with HTTP {answer.status_code}.", todo="Try again later.")
    try:
        told = answer.json()
        return Release(str(told["tag_name"]).removeprefix("v"), str(told.get("html_url") or ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KnownError(
            f"{url} tells no version.", todo=f"Correct {ADDRESS}, or tell who publishes Pacenote.", detail=str(error)
        ) from error


def is_newer(version: str, than: str) -> bool:
    """Whether one version comes after another.

    Raises:
        KnownError: one of them is no version number.
    """
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version) > Version(than)
    except InvalidVersion as error:
        raise KnownError(
            f"{version} and {than} cannot be compared: {error}.", todo="Look at the page of the releases."
        ) from error
