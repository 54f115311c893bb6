"""The project file, the wheel, the licences and the documents agree with what is there."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import requires
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.unit.repo.tree import ROOT, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Written in two parts, so that this file passes its own test.
REGISTRY_HOSTS = [
    f"{a}.{b}"
    for a, b in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("debian", "org"),
        ("ubuntu", "com"),
        ("crates", "io"),
        ("proxy.golang", "org"),
        ("maven", "org"),
        ("rubygems", "org"),
        ("anaconda", "org"),
    ]
]


def test_wheel_holds_the_product_and_nothing_else(tmp_path: Path) -> None:
    """The wheel has every file of engine/, app/ and resources/, the demo pair and the licences, and no other file."""
    files = tracked("engine", "app", "resources")
    for path in (*files, *map(Path, ["pyproject.toml", "README.md", "LICENSE", "NOTICE", "tests/__init__.py"])):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, tmp_path / path)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        ".",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        "out",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / "out").glob("pacenote-*-py3-none-any.whl")
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    metadata = {name for name in names if ".dist-info" in name.parts[0]}
    assert names - metadata == set(files)
    assert {"LICENSE", "NOTICE", "entry_points.txt"} <= {name.name for name in metadata}


def test_every_requirement_is_pinned_within_its_bounds() -> None:
    """packaging/constraints.txt has a version for all that we ask for by name, and one that we allow."""
    lines = (ROOT / "packaging/constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {}
    for line in lines:
        if line and not line.startswith("#"):
            pin = Requirement(line)
            (version,) = (s.version for s in pin.specifier)
            pins[canonicalize_name(pin.name)] = version
    project = PROJECT["project"]
    for line in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(pins[canonicalize_name(wanted.name)]), line


def test_pins_are_complete_here() -> None:
    """Nothing that Pacenote pulls in on this machine is left to chance: the closure of its requirements is pinned."""
    pins = (ROOT / "packaging/constraints.txt").read_text(encoding="utf-8")
    todo, seen = [("pacenote", ""), ("pacenote", "dev")], set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for line in requires(name) or []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({**default_environment(), "extra": extra}):
                assert re.search(rf"^{canonicalize_name(need.name)}==", pins, re.M), (
                    f"{need} (from {name}): run `make lock`"
                )
                todo += [(canonicalize_name(need.name), e) for e in ("", *need.extras)]
    assert len(seen) > 20


def test_no_file_names_a_registry_host() -> None:
    """Registries are used by package name: a host in a file breaks mirrors and closed networks."""
    found = []
    for path in tracked():
        text = (ROOT / path).read_bytes().decode("utf-8", errors="ignore")
        found += [f"{path}: {host}" for host in REGISTRY_HOSTS if host in text]
    assert not found


def test_notice_names_every_direct_dependency() -> None:
    """What Pacenote installs by name is named in NOTICE with its licence."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8").lower()
    names = {Requirement(line).name.removesuffix("-Essentials") for line in PROJECT["project"]["dependencies"]}
    assert not {name for name in names if name.lower() not in notice}


def test_notice_names_every_source_of_the_demo_model() -> None:
    """What the bundled demo model was made from is named in NOTICE, which travels in the wheel."""
    recipe = ROOT / "packaging/demo_model/NOTICE.md"
    sources = source_names(recipe.read_text(encoding="utf-8")) if recipe.exists() else set()
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert not {name for name in sources if name not in notice}


def source_names(markdown: str) -> set[str]:
    """The packages that a NOTICE.md names: `code` words in the first column of its tables or in its list items."""
    return {
        match
        for line in markdown.splitlines()
        if line.startswith(("|", "- ", "* "))
        for match in re.findall(r"`([a-z0-9][a-z0-9._-]+)`", line.strip("|").split("|")[0])
    }


def test_every_decision_is_in_the_index() -> None:
    """docs/adr/0000-index.md links each page beside it."""
    pages = [path for path in tracked("docs/adr") if path.name != "0000-index.md"]
    index = (ROOT / "docs/adr/0000-index.md").read_text(encoding="utf-8")
    assert not [str(path) for path in pages if f"({path.name})" not in index]
