"""Model folders that the user named, so that they are offered again."""

from __future__ import annotations

from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError


class OwnFolders:
    """A short list in a file. One that cannot be read is an empty list; the folders themselves are not touched."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> list[Path]:
        try:
            listed = tomlkit.parse(self._file.read_text("utf-8")).unwrap().get("folders", [])
        except (OSError, ValueError, TOMLKitError):
            return []
        return [Path(item) for item in listed if isinstance(item, str)]

    def add(self, folder: Path) -> None:
        """Raises OSError."""
        folders = self.load()
        if folder not in folders:
            self._file.write_text(tomlkit.dumps({"folders": [str(f) for f in (*folders, folder)]}), "utf-8")
