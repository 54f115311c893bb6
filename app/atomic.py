"""A file is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path


def replace_text(path: Path, text: str, *, private: bool = False) -> None:
    """Put a UTF-8 text file in place. What was there stays until all of the new one is on disk.

    private: nobody else may read it. Raises OSError.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    there = path.exists()
    if there and not path.is_file():
        raise OSError("it is there, and is no file")
    part = path.with_name(f".pacenote-{uuid.uuid4().hex}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if there and not private:  # whoever may read the old one may read the new one
                part.chmod(stat.S_IMODE(path.stat().st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
