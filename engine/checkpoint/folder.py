"""A checkpoint folder: its configuration and every tensor in it, without loading any weight."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.checkpoint.safetensors_header import TensorEntry, read_header
from engine.errors import CheckpointError

_SAMPLE = 4096  # bytes hashed at each end of a tensor
_INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Checkpoint:
    """A folder that was looked at. revision: the hub commit, "" for a plain folder."""

    path: Path
    config: dict[str, Any]
    tensors: Mapping[str, TensorEntry]
    revision: str = ""

    @property
    def name(self) -> str:
        """As the user knows it, see `name_of`."""
        return name_of(self.path)

    @property
    def text_config(self) -> dict[str, Any]:
        """The language model's part of the configuration: `text_config`, or the whole of a text-only one."""
        inner = self.config.get("text_config")
        return inner if isinstance(inner, dict) else self.config

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in self.tensors.values())

    def quantization(self) -> dict[str, Any] | None:
        """The MLX quantization block, from the top level or from inside `text_config` (both occur).

        None as well for a block that holds no MLX scheme, such as fp8's.
        """
        for place in (self.config, self.text_config):
            for key in ("quantization", "quantization_config"):
                block = place.get(key)
                if isinstance(block, dict) and ("bits" in block or "group_size" in block):
                    return block
        return None

    def fingerprint(self) -> str:
        """32 hex digits that change when the weights or the configuration change.

        SHA-256 over the configuration and, for each tensor by name, its type, shape and the first and last
        4 KiB of its data. It is not a hash of every byte: a 14 GB model would take half a minute to read.
        """
        digest = hashlib.sha256(json.dumps(self.config, sort_keys=True).encode())
        for name in sorted(self.tensors):
            entry = self.tensors[name]
            digest.update(f"{name} {entry.dtype} {entry.shape}".encode())
            with entry.file.open("rb") as file:
                file.seek(entry.start)
                digest.update(file.read(min(_SAMPLE, entry.nbytes)))
                file.seek(max(entry.start, entry.end - _SAMPLE))
                digest.update(file.read(min(_SAMPLE, entry.nbytes)))
        return digest.hexdigest()[:32]


def name_of(folder: Path) -> str:
    """A folder's name; of a snapshot in the Hugging Face cache, whose own is a commit, the repo's: owner/name."""
    repo = folder.parent.parent.name
    if folder.parent.name == "snapshots" and repo.startswith("models--"):
        return repo.removeprefix("models--").replace("--", "/", 1)
    return folder.name if folder.is_absolute() and folder.name else str(folder)  # not absolute: a repo on the hub


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        CheckpointError: missing, unreadable, or not an object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise CheckpointError(
            f"{name_of(path.parent)} is not a model folder: it has no {path.name}.",
            todo="Choose the folder that holds config.json and the .safetensors files.",
            detail=str(path.parent),
        ) from e
    except (OSError, ValueError, RecursionError) as e:
        raise CheckpointError(
            f"{path.name} cannot be read: {e}.", todo="Download the model again.", detail=str(path)
        ) from e
    if not isinstance(value, dict):
        raise CheckpointError(f"{path.name} is not a JSON object.", todo="Download the model again.", detail=str(path))
    return value


def open_folder(path: Path, revision: str = "") -> Checkpoint:
    """Look at a checkpoint folder: configuration, index, headers of all shards.

    Raises:
        CheckpointError: no folder, no config, no weights, a missing, damaged or truncated shard, or an index
            that names tensors its shards do not hold.
    """
    if not path.is_dir():
        raise CheckpointError(
            f"There is no folder {path}.", todo="Choose a folder that holds a model.", detail=str(path)
        )
    config = read_json(path / "config.json")
    weight_map: dict[str, str] = {}
    if (path / _INDEX).exists():
        found = read_json(path / _INDEX).get("weight_map")
        weight_map = {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
    if outside := next(
        (name for name in weight_map.values() if Path(name).is_absolute() or ".." in Path(name).parts), ""
    ):
        raise CheckpointError(
            f"The index of {name_of(path)} names a file outside of its folder: {outside!r}.",
            todo="Choose another model.",
            detail=str(path),
        )
    # Hidden ones are no weights: macOS puts a "._model.safetensors" beside each file on disks of other systems.
    names = sorted({*weight_map.values(), *(p.name for p in path.glob("*.safetensors") if p.name[0] != ".")})
    if not names:
        raise CheckpointError(
            f"{name_of(path)} holds no weights: there is no .safetensors file in it.",
            todo="Wait until the download is complete, or choose another folder.",
            detail=str(path),
        )
    tensors: dict[str, TensorEntry] = {}
    for name in names:
        for entry in read_header(path / name).values():
            if entry.name in tensors:
                raise CheckpointError(
                    f"Tensor {entry.name!r} is in {tensors[entry.name].file.name} and again in {name}.",
                    todo="Remove the file that does not belong to this model.",
                    detail=str(path),
                )
            tensors[entry.name] = entry
    lost = sorted(k for k in weight_map if k not in tensors)
    if lost:
        raise CheckpointError(
            f"{name_of(path)} is incomplete: {len(lost)} tensors of its index are in no file, first {lost[0]!r}.",
            todo="Download the model again; finished files are not fetched twice.",
            detail="\n".join(lost[:50]),
        )
    return Checkpoint(path, config, tensors, revision)
