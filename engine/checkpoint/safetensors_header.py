"""Safetensors headers: what a file says it holds, checked against what it can hold.

Only the header is read (8 bytes of length, then JSON), so a 14 GB checkpoint is inspected in milliseconds.
Format: https://github.com/huggingface/safetensors, "Format".
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CheckpointError

_ITEM_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I16": 16, "U16": 16,
    "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
}  # fmt: skip
MAX_HEADER = 100_000_000  # the format's own limit, in bytes


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor of a file. start, end: byte offsets in the file; end is exclusive."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    start: int
    end: int

    @property
    def nbytes(self) -> int:
        return self.end - self.start


def _damaged(path: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"{path.name} is damaged: {why}.",
        kept="Nothing was changed on disk.",
        todo="Download this file again, or choose another model.",
        detail=str(path),
    )


def parse_header(raw: bytes, path: Path, data_start: int, file_size: int) -> dict[str, TensorEntry]:
    """Check a header's JSON and return its tensors by name.

    Args:
        raw: the JSON bytes.
        path: the file, for messages.
        data_start: offset of the first data byte.
        file_size: size of the whole file in bytes.

    Raises:
        CheckpointError: not JSON, an unknown dtype, or offsets that do not fit the shape or the file.
    """
    try:
        table = json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise _damaged(path, "its header is not JSON") from e
    if not isinstance(table, dict):
        raise _damaged(path, "its header is not a table")
    entries: dict[str, TensorEntry] = {}
    for name, info in table.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape = str(info["dtype"]), tuple(_count(n) for n in info["shape"])
            start, end = (_count(n) + data_start for n in info["data_offsets"])
        except (KeyError, TypeError, ValueError, OverflowError) as e:
            raise _damaged(path, f"the entry of tensor {name!r} cannot be read") from e
        if dtype not in _ITEM_BITS:
            raise _damaged(path, f"tensor {name!r} has the unknown type {dtype!r}")
        if end - start != math.prod(shape) * _ITEM_BITS[dtype] // 8:
            raise _damaged(path, f"tensor {name!r} has {end - start} bytes, its shape {shape} needs another number")
        if start < data_start or end > file_size:
            raise _damaged(path, f"the file ends before tensor {name!r} does ({file_size} bytes, {end} needed)")
        entries[name] = TensorEntry(name, dtype, shape, path, start, end)
    return entries


def _count(value: object) -> int:
    """Raises ValueError for what counts nothing: two negative sizes would make a shape of the right product."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no size")
    return value


def read_header(path: Path) -> dict[str, TensorEntry]:
    """Read the header of one safetensors file.

    Raises:
        CheckpointError: the file is missing, unreadable, truncated or not safetensors.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            if len(prefix) < 8:
                raise _damaged(path, "it is too short to be a safetensors file")
            (length,) = struct.unpack("<Q", prefix)
            if length > min(MAX_HEADER, size - 8):
                raise _damaged(path, "its header is longer than the file, so this is no safetensors file or it was cut")
            raw = file.read(length)
    except FileNotFoundError as e:
        raise CheckpointError(
            f"{path.name} is missing.",
            kept="Nothing was changed on disk.",
            todo="Download the model again; finished files are not fetched twice.",
            detail=str(path),
        ) from e
    except OSError as e:
        raise CheckpointError(
            f"{path.name} cannot be read: {e.strerror or e}.",
            todo="Check the file's permissions and the disk.",
            detail=str(path),
        ) from e
    return parse_header(raw, path, 8 + length, size)
