"""What a repo holds at one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.hub import errors
from engine.hub.connection import Connection


@dataclass(frozen=True, slots=True)
class RepoFile:
    """size: in bytes, None where the hub does not say. sha256: of files in large-file storage, "" of others.

    blob_id: of the others their hash in git (SHA-1 over "blob <size>\\0" and the bytes), "" where the hub does not say.
    """

    name: str
    size: int | None
    sha256: str
    blob_id: str = ""


@dataclass(frozen=True)
class Repo:
    """revision: the commit, 40 hex digits. Everything is fetched from it, whatever a branch does meanwhile.

    gated: who may read has to accept a licence first. licence: its short name, "" where the card names none.
    """

    id: str
    revision: str
    files: Mapping[str, RepoFile]
    gated: bool = False
    licence: str = ""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to fetch bytes of.

    url: on the hub. location: where the bytes are, signed and short-lived when it is elsewhere.
    etag: changes when the file does. size: in bytes.
    """

    repo: str
    revision: str
    name: str
    url: str
    location: str
    etag: str
    size: int


def open_repo(connection: Connection, repo: str, revision: str | None = None) -> Repo:
    """Look at a repo. revision: branch, tag or commit; None is the main branch.

    Raises:
        HubError: not there, no access, or no way to the hub.
        LoadCancelled: `connection.stop` was set.
    """
    from huggingface_hub import HfApi

    api = HfApi(endpoint=connection.endpoint, token=connection.token)
    stall = connection.patience.stall
    url = f"{connection.endpoint}/{repo}"
    info = connection.retried(
        lambda: connection.translated(
            repo, url, lambda: api.model_info(repo, revision=revision, files_metadata=True, timeout=stall)
        )
    )
    if info.sha is None:
        raise errors.HubError(f"The hub does not say which commit {repo} is at.", todo="Check HF_ENDPOINT.")
    files = {
        s.rfilename: RepoFile(s.rfilename, s.size, s.lfs.sha256 if s.lfs is not None else "", s.blob_id or "")
        for s in info.siblings or []
    }
    named = (t.removeprefix("license:") for t in info.tags or [] if t.startswith("license:"))
    licence = next((name for name in named if name.isprintable()), "")  # it is shown, in terminals too
    return Repo(repo, info.sha, files, bool(info.gated), licence)


def open_file(connection: Connection, repo: Repo, name: str) -> RemoteFile:
    """Ask where a file's bytes are, and which state of it that is.

    Raises:
        HubError: not there, no access, or no way to the hub.
        LoadCancelled: `connection.stop` was set.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(repo.id, name, revision=repo.revision, endpoint=connection.endpoint)
    stall = connection.patience.stall
    found = connection.retried(
        lambda: connection.translated(
            repo.id,
            url,
            lambda: get_hf_file_metadata(url, token=connection.token, timeout=stall, endpoint=connection.endpoint),
        )
    )
    if found.size is None or not found.etag:
        raise errors.HubError(
            f"The server does not say how long {name} is, or which state of it this is.", todo="Check HF_ENDPOINT."
        )
    return RemoteFile(repo.id, repo.revision, name, url, found.location, found.etag, found.size)
