"""Chooses the wheels of the macOS bundle, on purpose and not by what the building machine happens to be.

MLX ships other binaries for each macOS: those for macOS 26 hold a Metal library that macOS 14 and 15 refuse. So they
are fetched for the oldest macOS that Pacenote supports, and Briefcase is given these files and no index.

PYTHONPATH=packaging python -m bundle.wheels FOLDER PACENOTE-WHEEL
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from bundle.closure import environment, packages

MINIMUM = (14, 0)
"""The oldest macOS: MLX's wheels begin there."""
PYTHON = "3.13"
PLATFORM = f"macosx_{MINIMUM[0]}_{MINIMUM[1]}_arm64"


def fetch(folder: Path, pins: Iterable[str]) -> None:
    """Wheels of exactly these pins, for the oldest macOS; fails when one has none."""
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet"]
    command += ["--no-deps", "--only-binary=:all:", "--platform", PLATFORM, "--implementation", "cp"]
    command += ["--python-version", PYTHON, "--dest", str(folder), *pins]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(f"Not every package has a wheel for {PLATFORM} and Python {PYTHON}: see pip's words above.")


def problems(wheels: Iterable[Path]) -> Iterator[str]:
    """What is wrong with a set of wheels: tags that the oldest Mac cannot load, requirements that are not met."""
    where = environment("darwin", PYTHON)
    names = {}
    for wheel in sorted(wheels):
        name, version, _, tags = parse_wheel_filename(wheel.name)
        names[name] = (version, wheel)
        if not any(_loads(tag.platform) for tag in tags):
            yield f"{wheel.name} is not for macOS {MINIMUM[0]} on arm64"
    for name, (_, wheel) in names.items():
        for line in requirements(wheel):
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({**where, "extra": ""}):
                found = names.get(canonicalize_name(need.name))
                if found is None:
                    yield f"{name} needs {need}, which is not in the set"
                elif not need.specifier.contains(found[0], prereleases=True):
                    yield f"{name} needs {need}, and the set has {found[0]}"
    if "mlx" in names and "mlx-metal" in names and names["mlx"][0] != names["mlx-metal"][0]:
        yield "mlx and mlx-metal have different versions"


def _loads(platform: str) -> bool:
    """Whether the oldest macOS loads binaries of a wheel with this platform tag."""
    if platform == "any":
        return True
    system, _, rest = platform.partition("_")
    if system != "macosx":
        return False
    major, minor, machine = rest.split("_", 2)
    return (int(major), int(minor)) <= MINIMUM and machine in ("arm64", "universal2")


def requirements(wheel: Path) -> list[str]:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.count("/") == 1 and name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    return metadata.get_all("Requires-Dist") or []


def main(folder: Path, pacenote: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(pacenote, folder)
    fetch(folder, [f"{name}=={version}" for name, version in packages("darwin", PYTHON).items()])
    if found := list(problems(folder.glob("*.whl"))):
        raise SystemExit("\n".join(found))
    wheels = sorted(folder.glob("*.whl"))
    print(f"{folder}: {len(wheels)} wheels, {sum(wheel.stat().st_size for wheel in wheels) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
