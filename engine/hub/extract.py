"""A head out of a model's shards: headers first, then only the head's bytes. Nothing else is fetched.

What arrived waits in a part (`headpart`) until the head is whole.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engine.checkpoint import fp8
from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.head import read_head
from engine.checkpoint.head_shapes import is_moe
from engine.checkpoint.inventory import Unfit, check_tensors
from engine.checkpoint.kind import prefix_of
from engine.checkpoint.safetensors_header import TensorEntry
from engine.checkpoint.write import (
    WEIGHTS,
    require_absent,
    standalone_config,
    whole_or_not_at_all,
    write_head,
    write_json,
)
from engine.errors import CheckpointError
from engine.hub.connection import Connection
from engine.hub.errors import FileChanged, HubError, size
from engine.hub.headers import INDEX, read_header, read_json
from engine.hub.headpart import HeadPart, part_of
from engine.hub.ranges import RangeClient
from engine.hub.repo import RemoteFile, Repo, open_repo

SOURCE = "source.json"
"""Beside the head: where it came from, and hashes."""

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) of the head."""


@dataclass(frozen=True, slots=True)
class Shard:
    """etag: SHA-256 of the whole file where the hub keeps it in large-file storage."""

    name: str
    etag: str
    size: int


@dataclass(frozen=True)
class Extracted:
    """head_bytes: of the tensors as they lie on the hub. fetched: all bytes received for them, headers included.

    tensors: SHA-256 of each tensor's bytes, by its name on the hub. sha256: of the written weights file.
    """

    folder: Path
    repo: str
    revision: str
    shards: tuple[Shard, ...]
    tensors: Mapping[str, str]
    head_bytes: int
    fetched: int
    sha256: str


def extract_drafter(
    connection: Connection,
    repo_id: str,
    folder: Path,
    revision: str | None = None,
    progress: Progress = lambda done, total: None,
) -> Extracted:
    """Fetch a model's MTP head and write it as a stand-alone one.

    Raises:
        HubError: no head there, no access, a server that cannot send parts, or one that broke too often.
        CheckpointError: the head is not whole, something is at `folder`, or the disk refuses.
        LoadCancelled: `connection.stop` was set. In every case nothing is left at `folder`; what arrived waits beside
            it, and calling this again goes on.
    """
    require_absent(folder)
    client = RangeClient(connection)
    repo = open_repo(connection, repo_id, revision)
    config = read_json(client, repo, "config.json")
    files, entries = _look(client, repo)
    _require_whole(repo, config, entries)
    part = HeadPart(part_of(folder), repo, files, entries)
    with part.locked(connection.stop):
        try:
            with whole_or_not_at_all(folder) as work:  # again: another program may have finished it meanwhile
                _require_room(work, part)
                hashes = part.fetch(client, lambda done: progress(done, part.total))
                _write(part, work, config)
                done = Extracted(
                    folder=folder,
                    repo=repo.id,
                    revision=repo.revision,
                    shards=tuple(Shard(f.name, f.etag, f.size) for f in files.values()),
                    tensors=hashes,
                    head_bytes=part.total,
                    fetched=client.fetched,
                    sha256=_sha256(work / WEIGHTS),
                )
                write_json(work / SOURCE, {k: v for k, v in asdict(done).items() if k != "folder"})
        except BaseException as error:
            if not part.kept:
                part.remove()
            elif isinstance(error, HubError) and not isinstance(error, FileChanged):
                error.kept = f"{size(part.kept)} of {size(part.total)} are kept; going on fetches only the rest."
            raise
        part.remove()
    return done


def inspect_head(connection: Connection, repo_id: str, revision: str | None = None) -> Checkpoint:
    """The head in a model on the hub, by the headers of its shards. Raises as `extract_drafter`."""
    client = RangeClient(connection)
    repo = open_repo(connection, repo_id, revision)
    config = read_json(client, repo, "config.json")
    _, entries = _look(client, repo)
    return Checkpoint(Path(repo_id), config, {entry.name: entry for entry in entries}, repo.revision)


def _write(part: HeadPart, work: Path, config: dict[str, Any]) -> None:
    """The head as it stands alone, from the tensors as they lie on the hub."""
    write_json(part.folder / "config.json", config)
    try:
        checkpoint = open_folder(part.folder)
        head = read_head(checkpoint, checkpoint.text_config)
    except CheckpointError:
        part.remove()  # all of it is there, and it is no head
        raise
    out = standalone_config(config, moe=is_moe(checkpoint.text_config), plan=head.plan if head.packed else None)
    out.pop("vision_config", None)
    write_head(work, head.weights, out, {"source": part.repo.id, "revision": part.repo.revision})


def _look(client: RangeClient, repo: Repo) -> tuple[dict[str, RemoteFile], list[TensorEntry]]:
    """Shards with parts of the head by name, and the head's tensors in the order they lie there."""
    weight_map: Mapping[str, Any] = {}
    if INDEX in repo.files:
        found = read_json(client, repo, INDEX).get("weight_map")
        weight_map = found if isinstance(found, dict) else {}
        names = {str(shard) for shard in _of_head(weight_map, weight_map.__getitem__)}
    else:
        names = {name for name in repo.files if PurePosixPath(name).match("*.safetensors") and "/" not in name}
    files = {name: client.open(repo, name) for name in sorted(names)}
    held = [entry for file in files.values() for entry in read_header(client, file).values()]
    of_head = set(_of_head([entry.name for entry in held], str))
    entries = [entry for entry in held if entry.name in of_head]
    places: dict[str, Path] = {}
    for entry in entries:
        if entry.name in places:
            raise HubError(
                f"{entry.name} of {repo.id} is in {places[entry.name]} and again in {entry.file}.",
                todo="Choose another revision, or tell the repo's owner.",
            )
        places[entry.name] = entry.file
    if not entries:
        raise HubError(
            f"{repo.id} holds no MTP head: none of its tensors is named mtp.*.",
            todo="Name the original repo of the model; most conversions drop the head.",
        )
    lost = {name for name in weight_map if name.startswith(prefix_of(weight_map) or " ")} - {e.name for e in entries}
    if lost:
        raise HubError(
            f"The index of {repo.id} names {min(lost)}, and the shard does not hold it.",
            todo="Choose another revision, or tell the repo's owner.",
        )
    used = {str(entry.file) for entry in entries}
    return {name: file for name, file in files.items() if name in used}, entries


def _of_head(names: Iterable[str], value: Callable[[str], Any]) -> Iterator[Any]:
    """Of the tensors of a head among `names`: inside a model by prefix, all of a stand-alone head."""
    present = list(names)
    prefix = prefix_of(present)
    if prefix is None and "fc.weight" not in present:
        return
    yield from (value(name) for name in present if name.startswith(prefix or ""))


def _require_whole(repo: Repo, config: Mapping[str, Any], entries: Iterable[TensorEntry]) -> None:
    """Before the first byte of a tensor is fetched."""
    inner = config.get("text_config")
    text_config = inner if isinstance(inner, dict) else config
    named = {entry.name: entry for entry in entries}
    prefix = prefix_of(named) or ""
    try:
        check_tensors({n.removeprefix(prefix): e for n, e in named.items()}, text_config, fp8.block_size(config))
    except (Unfit, TypeError, ValueError, OverflowError) as error:  # but for the first: an fp8 block that cannot be
        raise CheckpointError(
            f"The MTP head in {repo.id} cannot be used: {error}.",
            kept="Nothing was written.",
            todo="Name the original repo of the model.",
        ) from error


def _require_room(folder: Path, part: HeadPart) -> None:
    # What is missing, and what is written: fp8 takes twice the bytes in 16 bit.
    written = sum(e.nbytes * (2 if e.dtype == fp8.DTYPE else 1) for e in part.entries)
    needed = part.total - part.kept + written
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise CheckpointError(
            f"The head needs {needed / 2**20:.0f} MiB on this disk while it is written, {free / 2**20:.0f} are free.",
            kept="Nothing was fetched of it.",
            todo="Free some space, or name a folder on another disk.",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
