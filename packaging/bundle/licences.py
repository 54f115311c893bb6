"""Collects the licences of everything in a bundle into one text, or fails and says which are missing.

PYTHONPATH=packaging python -m bundle.licences --platform darwin --python 3.13 --packages SITE-PACKAGES --out FILE ...
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from bundle.closure import packages

ROOT = Path(__file__).parents[2]
TEXTS = ROOT / "packaging" / "licences" / "texts"
EXTRA: dict[str, Any] = tomllib.loads((TEXTS.parent / "extra.toml").read_text(encoding="utf-8"))
NAMES = re.compile(r"(licen[cs]e|copying|copyright|notice)([._-].*)?(\.(txt|md|rst))?$", re.IGNORECASE)
COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9]+(?:-[0-9]+(?:\.[0-9]+)*)?)")
RULE = "=" * 78


class MissingLicence(Exception):
    """Names the parts of a bundle for which no licence text was found."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing in the bundle. texts: its licences and notices, whole."""

    name: str
    version: str
    texts: tuple[str, ...]


def extra_text(name: str) -> str:
    return ((ROOT if name == "LICENSE" else TEXTS) / name).read_text(encoding="utf-8")


def of_packages(folder: Path | None, wanted: Mapping[str, str]) -> Iterator[Part]:
    """The packages of a folder of installed wheels (None: where this Python looks), and what is compiled into them."""
    places = {} if folder is None else {"path": [str(folder)]}
    found = {canonicalize_name(one.name): one for one in distributions(**places)}
    for name, version in wanted.items():
        texts = list(_own_texts(found[name])) if name in found else []
        texts += [extra_text(file) for file in EXTRA["packages"].get(name, ())]
        if texts and name in found:
            texts += _bill_of_materials(found[name])
        yield Part(name, version, tuple(texts))
    for inside in EXTRA["inside"]:
        if within := [name for name in inside["packages"] if name in wanted]:
            yield Part(f"{inside['name']}, in {', '.join(within)}", "", tuple(map(extra_text, inside["texts"])))


def _own_texts(package: Distribution) -> Iterator[str]:
    for file in package.files or ():
        if NAMES.match(file.name) and (path := Path(str(file.locate()))).is_file():
            yield path.read_text(encoding="utf-8", errors="replace")


def _bill_of_materials(package: Distribution) -> Iterator[str]:
    """What a wheel says of the libraries that are linked into it: names and licences, seldom their texts."""
    for file in package.files or ():
        if file.parent.name == "sboms" and file.name.endswith(".json"):
            listed = json.loads(file.read_text(encoding="utf-8")).get("components", [])
            lines = sorted({f"{part['name']} {part.get('version', '')}{_terms(part)}" for part in listed})
            if lines:
                yield "\n".join([f"Linked into it, says its bill of materials {file.name}:", "", *lines])


def _terms(part: Mapping[str, Any]) -> str:
    entries = part.get("licenses") or ()
    words = [e.get("expression") or e["license"].get("id") or e["license"].get("name", "") for e in entries]
    return f" ({', '.join(words)})" if words else ""


def of_system_libraries(paths: Iterable[Path]) -> Iterator[Part]:
    """Debian's packages that libraries were taken from, by their copyright files; then the licences that these name."""
    common: set[str] = set()
    owners = sorted({owner for path in paths for owner in _owners(path)})
    for owner in owners:
        file = Path("/usr/share/doc") / owner.partition(":")[0] / "copyright"
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        common |= set(COMMON.findall(text))
        command = ["dpkg-query", "--show", "--showformat", "${Version}", owner]
        version = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        yield Part(owner.partition(":")[0], version, (text,) if text else ())
    for name in sorted(common):
        file = Path("/usr/share/common-licenses") / name
        yield Part(f"Licence text {name}", "", (file.read_text(encoding="utf-8"),) if file.is_file() else ())


def _owners(path: Path) -> list[str]:
    # A merged /usr: dpkg knows a library of /lib by either name.
    for name in (path, Path(str(path).removeprefix("/usr")), Path(f"/usr{path}"), path.resolve()):
        asked = subprocess.run(["dpkg-query", "--search", str(name)], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return [line.rpartition(": ")[0].split(", ")[0] for line in asked.stdout.splitlines()]
    raise MissingLicence(f"{path} is of no Debian package: its licence is not known")


def of_python(version: str, file: Path, platform: str) -> Iterator[Part]:
    """file: LICENSE.txt of the Python in the bundle."""
    yield Part("Python", version, (file.read_text(encoding="utf-8", errors="replace"),) if file.is_file() else ())
    for linked in EXTRA["python"].get(platform, ()):
        yield Part(linked["name"], "", tuple(map(extra_text, linked["texts"])))


def ours() -> Part:
    return Part("Pacenote", "", tuple((ROOT / name).read_text(encoding="utf-8") for name in ("NOTICE", "LICENSE")))


def as_text(parts: Iterable[Part]) -> str:
    """One text: a list of the parts, then each with its licences.

    Raises:
        MissingLicence: names every part without one.
    """
    listed = list(parts)
    if without := [part.name for part in listed if not any(text.strip() for text in part.texts)]:
        raise MissingLicence(
            f"No licence text for {', '.join(without)}. Where a wheel brings none, put its text into "
            "packaging/licences/texts and name it in packaging/licences/extra.toml."
        )
    lines = ["This application consists of the following parts, each under its own licence.", ""]
    lines += [f"* {part.name} {part.version}".rstrip() for part in listed]
    for part in listed:
        lines += ["", RULE, f"{part.name} {part.version}".rstrip(), RULE]
        for text in dict.fromkeys(text.strip() for text in part.texts if text.strip()):
            lines += ["", text]
    return "\n".join(lines) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--platform", choices=("linux", "darwin"), required=True)
    arguments.add_argument("--python", required=True, help="version, such as 3.13")
    arguments.add_argument("--packages", type=Path, required=True, help="folder that the wheels are installed in")
    arguments.add_argument("--python-licence", type=Path, required=True, help="LICENSE.txt of the bundled Python")
    arguments.add_argument("--system-libraries", type=Path, help="file with a path in every line")
    arguments.add_argument("--out", type=Path, required=True)
    asked = arguments.parse_args()
    parts = [ours(), *of_python(asked.python, asked.python_licence, asked.platform)]
    parts += of_packages(asked.packages, packages(asked.platform, asked.python))
    if asked.system_libraries:
        parts += of_system_libraries(map(Path, asked.system_libraries.read_text(encoding="utf-8").split("\n")[:-1]))
    try:
        text = as_text(parts)
    except MissingLicence as error:
        raise SystemExit(str(error)) from None
    asked.out.write_text(text, encoding="utf-8")
    print(f"{asked.out}: licences of {len(parts)} parts, {len(text) // 1024} KiB")


if __name__ == "__main__":
    main()
