"""One boundary on disk, so that a chat goes on after a restart without being read again.

Cache bytes mean something only to the very weights, kernels and policy that made them. The file names all of
that, and a digest of its own bytes; any mismatch discards it, and the chat is read again, to the same text.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import mlx.core as mx

from engine.session.boundary import Boundary, HeadPart, Pair, joined

FORMAT = 1
"""Raise it when names or meanings of the arrays change."""
SPARE = 64 * 2**20
"""Bytes that must stay free on the disk: the chat itself is more important."""

Identity = dict[str, str]
"""What a boundary depends on, each part in words."""


class CannotKeep(Exception):
    """The boundary could not be written. The message says why; what was there before is unchanged or gone."""


class Discarded(Exception):
    """A file cannot be used. The message says why."""


def save(path: Path, place: bytes, boundary: Boundary, identity: Identity) -> int:
    """Write a boundary. Either all of it is there afterwards, or nothing of it. Returns the bytes written.

    Args:
        place: its name in the store (`schedule_key`).

    Raises:
        CannotKeep: the disk is full or refuses.
    """
    arrays = _named(boundary)
    mx.eval(list(arrays.values()))
    size = sum(a.nbytes for a in arrays.values())
    about: dict[str, Any] = {
        "format": FORMAT,
        "identity": identity,
        "place": place.hex(),
        "length": boundary.length,
        "head": [boundary.head.start, boundary.head.entries] if boundary.head else None,
    }
    about["digest"] = _digest(about, arrays)
    # One fixed name: a kill while writing leaves at most one such file, and the next save overwrites it.
    part = path.with_suffix(".part.safetensors")
    try:
        free = shutil.disk_usage(path.parent).free
        if free < size + SPARE:
            raise OSError(errno.ENOSPC, f"{size // 2**20} MiB are needed, {free // 2**20} MiB are free")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"):
            pass  # made private before anything is in it
        mx.save_safetensors(str(part), arrays, {"pacenote": json.dumps(about)})
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except (OSError, RuntimeError) as error:  # MLX raises RuntimeError for what its writer meets
        with suppress(OSError):  # a disk that refuses a write may refuse this too
            part.unlink(missing_ok=True)
        raise CannotKeep(_why(error)) from error
    return size


def load(path: Path, identity: Identity) -> tuple[bytes, Boundary] | None:
    """The kept boundary and its place in the store; None when there is no file.

    Raises:
        Discarded: it belongs to something else, or it is damaged.
    """
    try:
        if not path.exists():
            return None
        arrays, metadata = cast(
            tuple[dict[str, mx.array], dict[str, str]], mx.load(str(path), format="safetensors", return_metadata=True)
        )
        about: dict[str, Any] = json.loads(metadata["pacenote"])
        if about["format"] != FORMAT:
            raise Discarded("another version of Pacenote wrote it")
        for what in identity.keys() | about["identity"].keys():
            if identity.get(what) != about["identity"].get(what):
                raise Discarded(f"{what} changed")
        mx.eval(list(arrays.values()))
        if about.pop("digest") != _digest(about, arrays):
            raise Discarded("the file is damaged")
        return bytes.fromhex(about["place"]), _boundary(arrays, about)
    except (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise Discarded(f"the file is damaged ({type(error).__name__})") from error


def discard(path: Path) -> None:
    """Take a kept boundary away, and what an interrupted save left. A disk that refuses is left alone."""
    for file in (path, path.with_suffix(".part.safetensors")):
        try:
            file.unlink(missing_ok=True)
        except OSError:
            continue


def _why(error: OSError | RuntimeError) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({error.strerror})"
    return str(error)


def _named(boundary: Boundary) -> dict[str, mx.array]:
    arrays: dict[str, mx.array] = {}

    def put(name: str, pairs: Sequence[Pair]) -> None:
        for n, pair in enumerate(pairs):
            arrays[f"{name}.{n}.0"], arrays[f"{name}.{n}.1"] = pair

    put("recurrent", boundary.recurrent)
    put("attention", boundary.attention())
    if boundary.head is not None:
        put("head", [joined(list(boundary.head.spans))] if boundary.head.spans else [])
        put("pending", boundary.head.pending)
    arrays |= {n: a for n, a in (("logits", boundary.logits), ("hidden", boundary.hidden)) if a is not None}
    return {name: mx.contiguous(a) for name, a in arrays.items()}


def _boundary(arrays: dict[str, mx.array], about: dict[str, Any]) -> Boundary:
    def take(name: str) -> tuple[Pair, ...]:
        count = sum(key.startswith(f"{name}.") for key in arrays) // 2
        return tuple((arrays[f"{name}.{n}.0"], arrays[f"{name}.{n}.1"]) for n in range(count))

    head = None
    if about["head"] is not None:
        start, entries = about["head"]
        head = HeadPart(start, entries, take("head"), take("pending"))
    return Boundary(
        int(about["length"]), take("recurrent"), (take("attention"),), head, arrays.get("logits"), arrays.get("hidden")
    )


def _digest(about: dict[str, Any], arrays: dict[str, mx.array]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, a in sorted(arrays.items()):
        digest.update(f"{name} {a.dtype} {a.shape} ".encode())
        digest.update(memoryview(mx.contiguous(a).view(mx.uint8)))  # type: ignore[arg-type]
    return digest.hexdigest()
