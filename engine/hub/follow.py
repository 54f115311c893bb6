"""The hash of a file that still grows, computed beside the transfer.

A thread reads the file behind the one that writes it. So the transfer does not wait for the hash, and one that is
taken up again begins at once, while what an earlier run left is being hashed.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Any, Self

from engine.errors import LoadCancelled

_READ = 2**20  # bytes at a time; reading and hashing both let other threads run
_POLL = 0.2  # seconds


class Follower:
    """Hashes bytes 0 .. as far as `upto` says. A context manager: its thread ends with the block."""

    def __init__(self, handle: int, digest: Any) -> None:
        self._handle = handle
        self._digest = digest
        self._upto = 0
        self._state = threading.Condition()
        self._whole = False
        self._abandoned = False
        self._failed: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="download hash")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._state:
            self._abandoned = True
            self._state.notify()
        self._thread.join()

    def upto(self, size: int) -> None:
        """So many bytes are in the file."""
        with self._state:
            self._upto = size
            self._state.notify()

    def hexdigest(self, stop: threading.Event) -> str:
        """Of all bytes, once the last of them is hashed.

        Raises:
            OSError: the file could not be read.
            LoadCancelled: `stop` was set.
        """
        with self._state:
            self._whole = True
            self._state.notify()
        while self._thread.is_alive():
            self._thread.join(_POLL)
            if stop.is_set():
                raise LoadCancelled
        if self._failed is not None:
            raise self._failed
        return str(self._digest.hexdigest())

    def _run(self) -> None:
        at = 0
        while True:
            with self._state:
                # Not after every piece: waking up costs more than hashing one.
                while self._upto - at < _READ and not self._whole and not self._abandoned:
                    self._state.wait()
                if self._abandoned or (self._whole and at == self._upto):
                    return
                wanted = min(_READ, self._upto - at)
            try:
                chunk = os.pread(self._handle, wanted, at)
                if not chunk:
                    raise OSError("the file is shorter than what was written to it")
            except OSError as error:
                self._failed = error
                return
            self._digest.update(chunk)
            at += len(chunk)
