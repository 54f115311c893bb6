"""What a download will do: which files of a repo, how much of them is there, and whether the rest can be had at all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.hub import errors
from engine.hub.cache import RepoCache, cache_folder, free_bytes, safe_etag, safe_name, size_of
from engine.hub.connection import Connection
from engine.hub.headers import INDEX, require_shards
from engine.hub.repo import Repo, RepoFile, open_file, open_repo
from engine.hub.transfer import Planned

FOREIGN = (".gguf", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".ot", ".tflite")
"""Weights for other programs, which often lie beside the safetensors."""
SMALL = 2**25
"""Bytes up to which a file is fetched before the large ones."""
_RESERVE, _RESERVE_SHARE = 2 * 2**30, 0.05


@dataclass(frozen=True)
class Plan:
    """What a download will do. missing: bytes that are neither there nor in a part."""

    repo: Repo
    files: tuple[Planned, ...]
    cache: RepoCache

    @property
    def total(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def missing(self) -> int:
        return self.total - self.done

    @property
    def done(self) -> int:
        """Bytes on disk, by whichever program."""
        return sum(self._have(file) for file in self.files)

    def is_settled(self, branch: str) -> bool:
        """Whether a branch is at this commit, and all files are in their place and as long as they should be."""
        folder = self.cache.snapshot(self.repo.revision)
        return self.cache.commit(branch) == self.repo.revision and all(
            size_of(folder / file.name) == file.size for file in self.files
        )

    @property
    def kept(self) -> str:
        """What a download that stops leaves, in words."""
        if not (done := self.done):
            return errors.KEPT
        return f"{errors.size(done)} of {errors.size(self.total)} are kept; going on fetches only the rest."

    @property
    def files_done(self) -> int:
        return sum(self.is_there(file) for file in self.files)

    def is_there(self, file: Planned) -> bool:
        return self.cache.has(self.repo.revision, file.name, file.etag, file.size)

    def _have(self, file: Planned) -> int:
        if self.is_there(file):
            return file.size
        return min(size_of(self.cache.part(file.etag)) or 0, file.size)


def wanted(name: str) -> bool:
    """Whether a file of a repo is fetched: all but other programs' weights and what git needs."""
    return not name.endswith(FOREIGN) and not PurePosixPath(name).name.startswith(".git")


def plan(connection: Connection, repo_id: str, revision: str | None = None, cache: Path | None = None) -> Plan:
    """Look at a repo and at the cache; nothing is fetched or written.

    Raises:
        HubError: no access, no way to the hub, or a repo with nothing to fetch.
        LoadCancelled: `connection.stop` was set.
    """
    place = RepoCache(cache or cache_folder(), repo_id)
    repo = open_repo(connection, repo_id, revision)
    files = tuple(_planned(connection, repo, file) for name, file in repo.files.items() if wanted(name))
    if not files:
        raise errors.HubError(f"{repo_id} holds no files of a model.", todo="Choose another repo.")
    _require_places(files)
    # Small ones first: what is wrong with a repo shows there.
    return Plan(repo, tuple(sorted(files, key=lambda f: (f.size > SMALL, f.name))), place)


def _planned(connection: Connection, repo: Repo, file: RepoFile) -> Planned:
    safe_name(file.name)
    etag, size = file.sha256 or file.blob_id, file.size
    if not etag or size is None:  # a mirror that lists less
        remote = open_file(connection, repo, file.name)
        etag, size = remote.etag, remote.size
    return Planned(file.name, safe_etag(etag, file.name), size, file.sha256, file.blob_id)


def _require_places(files: Iterable[Planned]) -> None:
    """Where one file's name is another's folder, no disk can hold both."""
    names = {file.name for file in files}
    for name in names:
        for folder in PurePosixPath(name).parents:
            if str(folder) in names:
                raise errors.HubError(
                    f"The repo lists {folder} as a file and as the folder of {name}.", todo="Choose another repo."
                )


def require_room(plans: Plan, *, preflight: bool) -> None:
    """Before: the rest and a reserve. While running, when others use the disk too: the rest."""
    missing = plans.missing
    needed = missing + (int(max(_RESERVE, _RESERVE_SHARE * missing)) if preflight and missing else 0)
    free = free_bytes(plans.cache.root)
    if free < needed:
        raise errors.disk_full(plans.cache.root, missing=needed - free, needed=needed, free=free)


def require_index(plans: Plan) -> None:
    """Once the small files are there: whether the repo lists all shards that its own index names. Raises HubError."""
    if all(file.name != INDEX for file in plans.files):
        return
    try:
        table = json.loads((plans.cache.snapshot(plans.repo.revision) / INDEX).read_bytes())
    except (OSError, ValueError, RecursionError):
        return  # what is wrong with it, opening the model tells
    require_shards(plans.repo, table)
