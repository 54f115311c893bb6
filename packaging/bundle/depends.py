"""What a frozen folder needs of the system, as a Depends line of Debian: libraries that are not in the folder.

PYTHONPATH=packaging python -m bundle.depends FOLDER
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
GLIBC = re.compile(r"Name: GLIBC_([0-9.]+)")
LIBC = re.compile(r"(lib(c|m|dl|rt|pthread|util|resolv)|ld-linux.*)\.so\.\d+")
# Qt tries this plugin only where there is Wayland, and takes X11 without its libraries.
OPTIONAL = re.compile(r"wayland", re.IGNORECASE)


def binaries(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not OPTIONAL.search(str(path.relative_to(folder))):
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def described(paths: Iterable[Path]) -> str:
    """What readelf says of the dynamic section and the symbol versions."""
    command = ["readelf", "--wide", "--dynamic", "--version-info", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def missing(text: str, inside: set[str]) -> tuple[set[str], tuple[int, ...]]:
    """(sonames that are asked for and not inside, the newest version of the C library that is asked for)."""
    sonames = {name for name in NEEDED.findall(text) if name not in inside and not LIBC.fullmatch(name)}
    versions = [tuple(map(int, version.split("."))) for version in GLIBC.findall(text)]
    return sonames, max(versions, default=())


def package_of(soname: str) -> str:
    """Debian's package of a library that this system has."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, path = line.strip().partition(" => ")
        if name.split(" ")[0] == soname:
            for place in (path, f"/usr{path}", str(Path(path).resolve())):
                asked = subprocess.run(["dpkg-query", "--search", place], capture_output=True, text=True, check=False)
                if asked.returncode == 0:
                    return asked.stdout.split(":")[0].split(",")[0]
    raise SystemExit(f"{soname} is needed, but not in the folder and of no package here")


def main(folder: Path) -> None:
    inside = {path.name for path in folder.rglob("*.so*")}
    sonames, glibc = missing(described(binaries(folder)), inside)
    names = sorted({package_of(soname) for soname in sonames})
    print(", ".join([f"libc6 (>= {'.'.join(map(str, glibc))})", *names]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
