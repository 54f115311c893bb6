"""A file is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def replace_text(path: Path, text: str, *, private: bool = False) -> None:
    """Put a UTF-8 text file in place. What was there stays until all of the new one is on disk.

    private: nobody else may read it. Raises OSError.
    """
    path = path.resolve()  # a link stays one
    if path.exists() and not path.is_file():
        raise OSError("it is there, and is no file")
    part = path.with_name(f".pacenote-{os.getpid()}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
