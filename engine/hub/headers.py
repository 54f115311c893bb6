"""What a repo's small files and safetensors headers say, by range reads. No tensor is fetched."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engine.checkpoint.folder import Checkpoint
from engine.checkpoint.kind import MODEL_TYPES, is_head_type, what_it_is
from engine.checkpoint.safetensors_header import MAX_HEADER, TensorEntry, parse_header
from engine.hub.connection import Connection
from engine.hub.errors import HubError
from engine.hub.ranges import RangeClient
from engine.hub.repo import RemoteFile, Repo, open_repo

INDEX = "model.safetensors.index.json"
_MAX_JSON = 64 * 2**20  # bytes; an index of a thousand experts has a tenth of it


@dataclass(frozen=True)
class Inspected:
    """A repo whose headers were read. checkpoint: as `open_folder` gives it, but its files are not there."""

    repo: Repo
    checkpoint: Checkpoint
    fetched: int


def inspect_repo(connection: Connection, repo_id: str, revision: str | None = None) -> Inspected:
    """Configuration and headers of all shards in the repo's top folder.

    Raises:
        HubError: no access, no way to the hub, or no model there.
        CheckpointError: a header that cannot be.
        LoadCancelled: `connection.stop` was set.
    """
    client = RangeClient(connection)
    repo = open_repo(connection, repo_id, revision)
    if "config.json" not in repo.files:
        raise HubError(f"{repo_id} holds no model: it has no config.json.", todo="Choose another repo.")
    config = read_json(client, repo, "config.json")
    if INDEX in repo.files:
        require_shards(repo, read_json(client, repo, INDEX))
    tensors: dict[str, TensorEntry] = {}
    for name in sorted(repo.files):
        if PurePosixPath(name).suffix == ".safetensors" and "/" not in name:
            tensors |= read_header(client, client.open(repo, name))
    if not tensors:
        raise HubError(f"{repo_id} holds no weights as safetensors.", todo="Choose another repo.")
    return Inspected(repo, Checkpoint(Path(repo_id), config, tensors, repo.revision), client.fetched)


def require_kind(connection: Connection, repo_id: str) -> None:
    """Before gigabytes of it are fetched: whether a repo is a model of the family or a head. Raises as `read_json`.

    One that does not name its type passes: what it is, opening it tells.
    """
    repo = open_repo(connection, repo_id)
    if "config.json" not in repo.files:
        raise HubError(f"{repo_id} holds no model: it has no config.json.", todo="Choose another repo.")
    config = read_json(RangeClient(connection), repo, "config.json")
    kind = str(config.get("model_type", ""))
    if kind and kind not in MODEL_TYPES and not is_head_type(kind):
        raise HubError(
            f"{repo_id} is {what_it_is(kind)}.",
            todo="Pacenote runs the Qwen3.5 family (3.5, 3.6, 3.8); choose one of those.",
        )


def require_shards(repo: Repo, index: object) -> None:
    """Whether a repo lists every file that its index names. Raises HubError."""
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    named = {str(shard) for shard in weight_map.values()} if isinstance(weight_map, dict) else set()
    if lost := sorted(named - repo.files.keys()):
        raise HubError(
            f"{repo.id} is not whole on the hub: its index names {lost[0]!r}, and the repo does not hold it.",
            todo="Choose another repo or revision, or tell its owner.",
        )


def read_json(client: RangeClient, repo: Repo, name: str) -> dict[str, Any]:
    """A JSON object. Raises HubError when it is none."""
    file = client.open(repo, name)
    try:
        value = json.loads(client.read(file)) if file.size <= _MAX_JSON else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise HubError(f"{name} of {repo.id} is not a JSON object.", todo="Choose another repo, or tell its owner.")
    return value


def read_header(client: RangeClient, file: RemoteFile) -> dict[str, TensorEntry]:
    """Two small requests: how long the header is, and the header."""
    length = struct.unpack("<Q", client.read(file, 0, 8))[0] if file.size >= 8 else 0
    if not 0 < length <= min(MAX_HEADER, file.size - 8):
        raise HubError(f"{file.name} of {file.repo} is no safetensors file.", todo="Choose another repo.")
    return parse_header(client.read(file, 8, 8 + length), Path(file.name), 8 + length, file.size)
