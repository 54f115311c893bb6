"""The settings file: TOML, written whole and put in place at once, with the user's comments kept."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from app.atomic import replace_text
from app.settings.table import Settings, Spec, specs
from engine import KnownError


class SettingsFile:
    """Reads and writes one TOML file.

    A value that cannot be used is replaced by its default, and `problems` says so in words. A file that is
    no TOML is put aside as `NAME.broken`, never overwritten.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []

    def load(self) -> Settings:
        """The settings of the file; defaults where it says nothing."""
        self.problems = []
        try:
            document = tomllib.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return Settings()
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            aside = self.path.with_name(self.path.name + ".broken")
            with contextlib.suppress(OSError):
                self.path.replace(aside)
            self.problems.append(
                f"The settings file could not be read ({error}). It is kept as {aside.name}; defaults are used."
            )
            return Settings()
        except OSError as error:
            self.problems.append(f"The settings file could not be opened ({error.strerror}). Defaults are used.")
            return Settings()
        chosen: dict[str, Any] = {}
        for spec in specs():
            table = document.get(section_key(spec))
            if not isinstance(table, dict) or spec.key not in table:
                continue
            try:
                chosen[spec.key] = spec.check(table[spec.key])
            except ValueError as error:
                self.problems.append(
                    f"{spec.label}: {table[spec.key]!r} {error}. The default is used: {spec.default!r}."
                )
        return Settings(**chosen)

    def save(self, settings: Settings) -> None:
        """Write what differs from the defaults. Raises KnownError when the disk will not take it."""
        try:
            try:
                document = tomlkit.parse(self.path.read_text("utf-8"))
            except (FileNotFoundError, UnicodeDecodeError, TOMLKitError):
                document = tomlkit.document()
            for spec in specs():
                _put(document, spec, getattr(settings, spec.key))
            replace_text(self.path, tomlkit.dumps(document), private=True)
        except OSError as error:
            raise KnownError(
                "The settings could not be saved.",
                kept="They hold until Pacenote quits.",
                todo="Check the free space and the permissions of the folder.",
                detail=f"{self.path}: {error}",
            ) from error


def section_key(spec: Spec) -> str:
    return spec.section.lower()


def _put(document: tomlkit.TOMLDocument, spec: Spec, value: Any) -> None:
    key = section_key(spec)
    table = document.get(key)
    if not isinstance(table, dict):
        if value == spec.default:
            return
        table = tomlkit.table()
        document[key] = table
        table = document[key]
    if value == spec.default:
        if spec.key in table:
            del table[spec.key]
    elif table.get(spec.key) != value:
        table[spec.key] = value
