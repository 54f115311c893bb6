"""The tensors of a head on their way: one safetensors file beside the place of the head, taken up where it stopped.

No hub says a hash of single tensors. So an earlier run's bytes count only as far as they were handed to the disk, and
only for the very same files: same commit, same ETags, same tensors.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.checkpoint.safetensors_header import TensorEntry
from engine.checkpoint.write import WEIGHTS, refused, write_json
from engine.hub.cache import PART
from engine.hub.locks import held, held_patiently
from engine.hub.ranges import RangeClient
from engine.hub.repo import RemoteFile, Repo

_NOTE, _LOCK = "kept.json", "lock"
_DURABLE = 2**24
"""Bytes after which what arrived is handed to the disk. A program that is killed loses less than that."""


def part_of(folder: Path) -> Path:
    """Where the tensors of a head wait that will be at `folder`."""
    return folder.with_name(f".{folder.name}{PART}")


@dataclass(frozen=True)
class HeadPart:
    """entries: of the head, as they lie in `files` (by name). folder: see `part_of`."""

    folder: Path
    repo: Repo
    files: Mapping[str, RemoteFile]
    entries: Sequence[TensorEntry]

    @property
    def total(self) -> int:
        return sum(entry.nbytes for entry in self.entries)

    @property
    def kept(self) -> int:
        """Bytes of tensors that an earlier run left and that count."""
        try:
            note = json.loads((self.folder / _NOTE).read_bytes())
            size = (self.folder / WEIGHTS).stat().st_size - len(self._header())
            return max(0, min(int(note["bytes"]), size)) if note["of"] == self._of() else 0
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def fetch(self, client: RangeClient, progress: Callable[[int], None]) -> dict[str, str]:
        """Complete the file. progress: called with the bytes that are there. Returns SHA-256 by tensor.

        Raises what `RangeClient.stream` does, and OSError. What arrived stays then.
        """
        kept, header = self.kept, self._header()
        if not kept:
            for name in (_NOTE, WEIGHTS):
                (self.folder / name).unlink(missing_ok=True)
            (self.folder / WEIGHTS).write_bytes(header)
        with (self.folder / WEIGHTS).open("r+b", buffering=0) as file:
            file.truncate(len(header) + kept)
            file.seek(0, os.SEEK_END)
            done = noted = kept
            try:
                for piece in self._missing(client, kept):
                    view = memoryview(piece)
                    while view:
                        view = view[file.write(view) :]
                    done += len(piece)
                    progress(done)
                    if done - noted >= _DURABLE:
                        self._keep(file.fileno(), done)
                        noted = done
            finally:
                if done:
                    self._keep(file.fileno(), done)
            return self._hashes(file.fileno(), len(header))

    def locked(self, stop: threading.Event) -> AbstractContextManager[None]:
        """Make the folder and hold its lock, however long another program has it.

        Raises:
            LoadCancelled: `stop` was set while it waited.
            CheckpointError: the disk refuses.
        """
        return held_patiently(self.folder / _LOCK, stop, lambda error: refused(self.folder, error))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)  # another program may make it again in this moment

    def _missing(self, client: RangeClient, kept: int) -> Iterator[bytes]:
        """The bytes after the first `kept`, in the order of the file."""
        at = 0
        for run in _runs(self._ordered()):
            size = run[-1].end - run[0].start
            skip = min(max(0, kept - at), size)
            at += size
            if skip < size:
                with closing(client.stream(self.files[str(run[0].file)], run[0].start + skip, run[-1].end)) as pieces:
                    yield from pieces

    def _keep(self, handle: int, done: int) -> None:
        os.fsync(handle)
        fresh = self.folder / f".{_NOTE}"
        write_json(fresh, {"of": self._of(), "bytes": done})
        os.replace(fresh, self.folder / _NOTE)

    def _hashes(self, handle: int, start: int) -> dict[str, str]:
        hashes: dict[str, str] = {}
        for entry in self._ordered():
            digest, left = hashlib.sha256(), entry.nbytes
            while left:
                chunk = os.pread(handle, min(left, 2**20), start)
                if not chunk:
                    raise OSError("the file is shorter than what was written to it")
                digest.update(chunk)
                start, left = start + len(chunk), left - len(chunk)
            hashes[entry.name] = digest.hexdigest()
        return hashes

    def _of(self) -> dict[str, Any]:
        """What the bytes are of: another state of the repo, or another head, has another one."""
        etags = {name: file.etag for name, file in self.files.items()}
        header = hashlib.sha256(self._header()).hexdigest()
        return {"repo": self.repo.id, "revision": self.repo.revision, "etags": etags, "header": header}

    def _ordered(self) -> list[TensorEntry]:
        return sorted(self.entries, key=lambda entry: (entry.file, entry.start))

    def _header(self) -> bytes:
        table, offset = {}, 0
        for entry in self._ordered():
            span = [offset, offset + entry.nbytes]
            table[entry.name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": span}
            offset += entry.nbytes
        header = json.dumps(table).encode()
        return struct.pack("<Q", len(header)) + header


def discard_part(folder: Path) -> int:
    """Delete what is half there of a head that would be at `folder`. Returns the bytes that became free.

    Raises OSError. What another program fetches just now stays.
    """
    part = part_of(folder)
    if not part.is_dir():
        return 0
    try:
        with held(part / _LOCK, 0.01, lambda error: error):
            size = sum(path.stat().st_size for path in part.iterdir())
            shutil.rmtree(part)
            return size
    except TimeoutError:
        return 0


def _runs(ordered: list[TensorEntry]) -> Iterator[list[TensorEntry]]:
    """Tensors that lie without a gap in one file: one request each. Gaps are never fetched."""
    run: list[TensorEntry] = []
    for entry in ordered:
        if run and (run[-1].file, run[-1].end) != (entry.file, entry.start):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run
