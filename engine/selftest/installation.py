"""Is the program itself whole: packages in versions that fit together, and every file that ships beside the code?"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from engine.selftest.check import Failed, Finding
from engine.telemetry.environment import environment

ROOT = Path(__file__).resolve().parents[2]
"""The folder that engine/, app/ and resources/ lie in."""
AGAIN = "Install Pacenote again."
NEEDED = (
    "catalogue.toml",
    "demo/demo.json",
    "demo/head/config.json",
    "demo/head/model.safetensors",
    "demo/prompts.json",
    "demo/target/chat_template.jinja",
    "demo/target/config.json",
    "demo/target/model.safetensors",
    "demo/target/tokenizer.json",
    "demo/target/tokenizer_config.json",
    "icons/pacenote.svg",
    *(f"prompts/{name}.json" for name in ("bench", "chat", "check", "code", "maths", "prose")),
)
"""Below resources/: what the program opens by name. Where pip installed it, its record of files is compared as well."""


def versions() -> Finding:
    """Fails where a package that Pacenote needs is missing or has a version that it was not made for."""
    here = environment()
    text = (
        f"Pacenote {here.pacenote or 'not installed'}, MLX {here.mlx or 'absent'}, mlx-lm {here.mlx_lm or 'absent'}, "
        f"PySide6 {here.pyside6 or 'absent'}, Python {here.python}; {here.os}, {here.machine}"
    )
    wrong = list(_unmet(metadata.requires("pacenote") or ()))
    if wrong:
        raise Failed(f"{text}. Not as needed: {'; '.join(wrong)}.", todo=AGAIN, facts=asdict(here))
    return Finding(text, facts=asdict(here))


def _unmet(requirements: Iterable[str]) -> Iterator[str]:
    """Requirements for this machine that are not met, without the window's: it has a check of its own."""
    from packaging.requirements import Requirement

    for line in requirements:
        need = Requirement(line)
        if need.name.startswith("PySide6") or (need.marker is not None and not need.marker.evaluate({"extra": ""})):
            continue
        try:
            found = metadata.version(need.name)
        except metadata.PackageNotFoundError:
            yield f"{need.name} is absent"
            continue
        if not need.specifier.contains(found, prereleases=True):
            yield f"{need.name} is {found}, {need.specifier} is needed"


def resources(root: Path = ROOT) -> Finding:
    """Every file is there that the program opens by name; and as pip installed it, where pip kept a record."""
    missing = [f"resources/{name} is missing" for name in NEEDED if not (root / "resources" / name).is_file()]
    recorded, wrong = _compare_with_record()
    if missing or wrong:
        lines = tuple(dict.fromkeys((*missing, *wrong)))
        raise Failed("Files that ship with Pacenote are not as they should be.", todo=AGAIN, lines=lines)
    beyond = f"; all {recorded} installed files have the bytes of the wheel" if recorded else ""
    return Finding(
        f"All {len(NEEDED)} files that the program opens by name are there{beyond}",
        facts={"named": len(NEEDED), "recorded": recorded, "folder": str(root)},
    )


def _compare_with_record() -> tuple[int, list[str]]:
    """(installed files compared, what is wrong with them). An editable install records none of the product's files."""
    compared, wrong = 0, []
    for entry in metadata.files("pacenote") or ():
        if entry.hash is None or entry.parts[0] not in ("engine", "app", "resources"):
            continue
        compared += 1
        path = Path(str(entry.locate()))
        if not path.is_file():
            wrong.append(f"{entry} is missing")
        elif _digest(path, entry.hash.mode) != entry.hash.value:
            wrong.append(f"{entry} has other bytes than in the wheel")
    return compared, wrong


def _digest(path: Path, algorithm: str) -> str:
    """As in a RECORD file: base64 for URLs, without padding (PEP 376)."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, algorithm).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
