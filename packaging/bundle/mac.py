"""What is done to the macOS bundle between Briefcase's `create` and `build`, and what must be inside afterwards.

PYTHONPATH=packaging python -m bundle.mac finish PACENOTE.app    removes, repairs, completes
PYTHONPATH=packaging python -m bundle.mac check PACENOTE.app     fails when something is missing
PYTHONPATH=packaging python -m bundle.mac check WHEEL-FOLDER     the same, computed from the wheels
"""

from __future__ import annotations

import plistlib
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

OURS = Path(__file__).parents[1] / "macos" / "Info.plist"
QT = {"QtCore", "QtGui", "QtWidgets", "QtNetwork", "QtSvg"}
"""The modules that app/ imports."""
QT_BELOW = {"QtDBus", "QtOpenGL"}
"""What these and the plugins are linked with."""
PLUGINS = {"platforms", "styles", "iconengines", "imageformats"}
# Developers' programs and data of PySide6, whose nested bundles also make signing fail, and pip's scripts.
REMOVED = (
    "bin/*",
    "PySide6/*.app/*",
    "PySide6/*.pyi",
    *(f"PySide6/{tool}" for tool in ("lrelease", "lupdate", "qmlformat", "qmllint", "qmlls", "svgtoqml")),
    *(f"PySide6/{folder}/*" for folder in ("doc", "glue", "include", "lib", "scripts", "support", "typesystems")),
    *(f"PySide6/Qt/{folder}/*" for folder in ("libexec", "metatypes", "modules", "qml", "translations")),
    "PySide6/libpyside6qml.*",
    # Needs QtPdf, which is in no wheel that we install.
    "PySide6/Qt/plugins/imageformats/libqpdf.dylib",
)
REQUIRED = (
    *(f"PySide6/{module}.abi3.so" for module in sorted(QT)),
    *(f"PySide6/Qt/lib/{name}.framework/Versions/A/{name}" for name in sorted(QT | QT_BELOW)),
    "PySide6/Qt/plugins/platforms/libqcocoa.dylib",
    "PySide6/Qt/plugins/platforms/libqoffscreen.dylib",
    "PySide6/Qt/plugins/styles/libqmacstyle.dylib",
    "PySide6/Qt/plugins/iconengines/libqsvgicon.dylib",
    "PySide6/Qt/plugins/imageformats/libqsvg.dylib",
    "app/main.py",
    "engine/cli/main.py",
    "mlx/core.cpython-*-darwin.so",
    "mlx_lm/models/qwen3_5.py",
    "resources/catalogue.toml",
    "resources/demo/demo.json",
    "resources/demo/head/config.json",
    "resources/demo/head/model.safetensors",
    "resources/demo/target/config.json",
    "resources/demo/target/model.safetensors",
    "resources/demo/target/tokenizer.json",
    "resources/icons/pacenote.svg",
    "pacenote-*.dist-info/METADATA",
)
"""Below app_packages."""
LINKED = re.compile(rb"@rpath/(Qt\w+)\.framework")


def removed(name: str) -> bool:
    """Whether a file of app_packages is not wanted in the bundle."""
    parts = PurePosixPath(name).parts
    if any(fnmatch(name, pattern) for pattern in REMOVED):
        return True
    if parts[:3] == ("PySide6", "Qt", "lib") and len(parts) > 3:
        return parts[3].removesuffix(".framework") not in QT | QT_BELOW
    if parts[:3] == ("PySide6", "Qt", "plugins") and len(parts) > 3:
        return parts[3] not in PLUGINS
    if parts[0] == "PySide6" and len(parts) == 2 and name.endswith(".abi3.so"):
        return parts[1].removesuffix(".abi3.so") not in QT | QT_BELOW
    return False


def missing(names: Iterable[str]) -> Iterator[str]:
    """What is wrong with the files of app_packages, given by their names."""
    have = set(names)
    for pattern in REQUIRED:
        if not any(fnmatch(name, pattern) for name in have):
            yield f"{pattern} is missing"
    libraries = [PurePosixPath(name) for name in have if name.endswith("/libmlx.dylib")]
    if len(libraries) != 1:
        yield f"there are {len(libraries)} libmlx.dylib, not one: {', '.join(map(str, libraries))}"
    # MLX looks for its kernels beside the library that was loaded, then in places that exist only where it was built.
    for library in libraries:
        if str(library.with_name("mlx.metallib")) not in have:
            yield f"mlx.metallib is not beside {library}"


def unlinked(binaries: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    """Qt's frameworks that a binary in the bundle asks for and that are not kept."""
    for name, data in binaries:
        for framework in sorted({match.decode() for match in LINKED.findall(data)} - QT - QT_BELOW):
            yield f"{name} is linked with {framework}, which is not in the bundle"


def finish(app: Path) -> None:
    """Remove what is not wanted, give frameworks the links that wheels cannot hold, complete Info.plist."""
    packages = app / "Contents" / "Resources" / "app_packages"
    for path in sorted(packages.rglob("*"), reverse=True):  # what is inside comes before its folder
        name = path.relative_to(packages).as_posix()
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif removed(name):
            path.unlink()
    for framework in packages.rglob("*.framework"):
        restore_links(framework)
    # Briefcase's metadata of its launcher has our name too, and would hide the wheel's: requirements, record of files.
    for metadata in (app / "Contents" / "Resources" / "app").glob("*.dist-info"):
        shutil.rmtree(metadata)
    file = app / "Contents" / "Info.plist"
    merged = plistlib.loads(file.read_bytes()) | plistlib.loads(OURS.read_bytes())
    file.write_bytes(plistlib.dumps(merged))


def restore_links(framework: Path) -> None:
    """A framework's upper level is links into Versions/Current. A wheel has copies or nothing there, and codesign then
    says that the bundle is ambiguous.
    """
    versions = framework / "Versions"
    (version,) = (path.name for path in versions.iterdir() if not path.is_symlink())
    current = versions / "Current"
    if not current.is_symlink():
        current.symlink_to(version)
    for inside in (versions / version).iterdir():
        link = framework / inside.name
        if not link.is_symlink():
            if link.is_dir():
                shutil.rmtree(link)
            link.unlink(missing_ok=True)
            link.symlink_to(f"Versions/Current/{inside.name}")


def of_wheels(folder: Path) -> tuple[list[str], Iterator[tuple[str, bytes]]]:
    """(names of the files that the bundle will hold, its Qt binaries), from the wheels that are installed into it."""
    wheels = [ZipFile(path) for path in sorted(folder.glob("*.whl"))]
    entries = [(name, wheel) for wheel in wheels for name in wheel.namelist() if not name.endswith("/")]
    kept = [(name, wheel) for name, wheel in entries if not removed(name)]
    binaries = ((name, wheel.read(name)) for name, wheel in kept if name.startswith("PySide6/") and _binary(name))
    return [name for name, _ in kept], binaries


def of_bundle(app: Path) -> tuple[list[str], Iterator[tuple[str, bytes]]]:
    packages = app / "Contents" / "Resources" / "app_packages"
    names = [path.relative_to(packages).as_posix() for path in packages.rglob("*") if path.is_file()]
    binaries = ((n, (packages / n).read_bytes()) for n in names if n.startswith("PySide6/") and _binary(n))
    return names, binaries


def _binary(name: str) -> bool:
    return name.endswith((".so", ".dylib")) or ".framework/Versions/A/Qt" in name


def check(place: Path) -> None:
    bundle = place.suffix == ".app"
    names, binaries = of_bundle(place) if bundle else of_wheels(place)
    found = [*missing(names), *unlinked(binaries)]
    if bundle and not (place / "Contents/Resources/app_packages/resources/licences.txt").is_file():
        found.append("the licences are missing")
    if found:
        raise SystemExit("\n".join([f"{place} is not whole:", *found]))
    print(f"{place}: all {len(REQUIRED)} required files, libmlx with its metallib, and {len(names)} files in all")


if __name__ == "__main__":
    {"finish": finish, "check": check}[sys.argv[1]](Path(sys.argv[2]))
