"""The Linux package, as far as it is known without building it; `make linux-smoke` tries the built one."""

from __future__ import annotations

import configparser
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from bundle import depends

from tests.unit.repo.test_setup import Machine
from tests.unit.repo.tree import ROOT

LINUX = ROOT / "packaging/linux"
READELF = """
File: a
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libEGL.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libssl.so.3]
 0x0000000000000001 (NEEDED)             Shared library: [ld-linux-x86-64.so.2]
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 3
  0x0020:   Name: GLIBC_2.34  Flags: none  Version: 4
  0x0030:   Name: GLIBCXX_3.4.30  Flags: none  Version: 4
"""


def test_what_the_package_depends_on_is_what_is_not_inside() -> None:
    """The newest C library that a binary asks for, by number and not by letters, and each library of the system."""
    assert depends.missing(READELF, {"libssl.so.3"}) == ({"libEGL.so.1"}, (2, 34))
    assert depends.missing(READELF, set())[0] == {"libEGL.so.1", "libssl.so.3"}


def test_only_binaries_are_asked_and_none_of_wayland(tmp_path: Path) -> None:
    """Qt's Wayland plugin is left alone where there is no Wayland; a link is looked at once."""
    for name in ("a.so", "libQt6WaylandClient.so", "plugins/wayland-shell/b.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"\x7fELF...")
    (tmp_path / "text.so").write_text("INPUT(libc.so.6)")
    (tmp_path / "link.so").symlink_to("a.so")
    assert list(depends.binaries(tmp_path)) == [tmp_path / "a.so"]


def test_the_menu_entry_is_what_the_window_calls_itself() -> None:
    """Its name is the one that the application gives itself, or Wayland shows no icon; what it starts is installed."""
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[assignment,method-assign]
    entry.read(LINUX / "pacenote.desktop")
    values = entry["Desktop Entry"]
    assert 'setDesktopFileName("pacenote")' in (ROOT / "app/desktop.py").read_text()
    script = (LINUX / "deb.sh").read_text()
    assert values["Exec"] == "/usr/bin/pacenote"
    assert "/usr/bin/pacenote" in script
    assert values["Icon"] == "pacenote"
    for size in re.search(r"for size in ([\d ]+);", script).group(1).split():
        data = (ROOT / f"packaging/icons/pacenote-{size}.png").read_bytes()
        assert struct.unpack(">II", data[16:24]) == (int(size), int(size))


def launched(environment: dict[str, str]) -> dict[str, str]:
    code = (
        "import os, runpy, sys; sys.frozen = True;"
        f"space = runpy.run_path({str(ROOT / 'packaging/launcher/pacenote.py')!r}, run_name='launcher');"
        "space['restore_library_path'](); print(dict(os.environ))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return dict(re.findall(r"'(LD_\w+|PYINSTALLER_\w+)': '([^']*)'", done.stdout))


def test_programs_that_it_starts_do_not_get_its_libraries() -> None:
    """A browser with our libssl may not start. Pacenote itself, started again, is told to set them up anew:
    without that the children of the self-test found no libssl at all.
    """
    home = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/bundle"}
    assert launched(home) == {"PYINSTALLER_RESET_ENVIRONMENT": "1"}
    before = launched({**home, "LD_LIBRARY_PATH_ORIG": "/users"})
    assert before == {"LD_LIBRARY_PATH": "/users", "PYINSTALLER_RESET_ENVIRONMENT": "1"}


def test_source_and_marker_files_travel_along() -> None:
    """The self-test compares app/ and engine/ with the record of the wheel: as bytecode alone they would be missing."""
    spec = (LINUX / "pacenote.spec").read_text()
    assert 'module_collection_mode={"engine": "pyz+py", "app": "pyz+py"}' in spec
    assert 'collect_data_files("app")' in spec
    assert 'collect_data_files("engine")' in spec


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "My Projects")
    target = made.root / "packaging/linux"
    target.mkdir()
    for script in LINUX.glob("*.sh"):
        (target / script.name).write_bytes(script.read_bytes())
    return made


def test_tools_that_are_missing_are_named_with_their_package(machine: Machine) -> None:
    """As everywhere in this project: what is missing, and the command that installs it."""
    done = machine.run("../linux/build.sh")
    assert done.returncode == 1
    assert "The command objdump is missing" in done.stderr
    assert "apt-get install -y binutils" in done.stderr
    for name in ("objdump", "dpkg-deb", "xz"):
        machine.has(name, "")
    machine.has("base/python3.11", 'case "$*" in *"%d.%d"*) echo 3.11 ;; *) exit 1 ;; esac')
    machine.has(".venv/bin/python", f'echo "{machine.root}/base/python3.11"')
    done = machine.run("../linux/build.sh")
    assert "apt-get install -y libpython3.11" in done.stderr


def test_the_smoke_test_asks_for_root(machine: Machine) -> None:
    """It makes a Debian of its own."""
    machine.has("realpath", 'echo "$1"')
    assert "needs root" in machine.run("../linux/smoke.sh", "x.deb").stderr
