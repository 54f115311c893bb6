"""The set-up scripts, run against machines made of stub commands: what is said, what is installed, what is left alone.

Each test has a folder of its own with a copy of the scripts and a PATH of a few stubs, so nothing real is installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.repo.tree import ROOT

# What the scripts may use anywhere; all else is there only when a test says so.
TOOLS = "bash cat cksum dirname awk sed sort head tr xargs echo rm ls env mkdir touch"


class Machine:
    """A folder with the project's set-up files and a PATH of stubs that log how they were called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.log = root / "calls.log"
        self.bin.mkdir(parents=True)
        shutil.copytree(ROOT / "packaging/setup", root / "packaging/setup")
        shutil.copyfile(ROOT / "packaging/constraints.txt", root / "packaging/constraints.txt")
        shutil.copyfile(ROOT / "pyproject.toml", root / "pyproject.toml")
        for tool in TOOLS.split():
            found = shutil.which(tool)
            assert found, tool
            (self.bin / tool).symlink_to(found)
        self.has("uname", "echo Linux")
        self.has("id", "echo 1000")

    def has(self, name: str, body: str) -> None:
        """Put a command on the PATH (or at a path below the folder)."""
        path = self.root / name if "/" in name else self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/bash\necho "${{0##*/}} $*" >>"{self.log}"\n{body}\n')
        path.chmod(0o755)

    def has_python(self, name: str, *, working_venv: bool = True) -> None:
        """A Python that answers the scripts' questions as this one does, and whose `-m venv` makes another such."""
        make = 'mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit' if working_venv else "exit 1"
        self.has(
            name,
            f"""case "$*" in
            *ensurepip*) {"exit 0" if working_venv else "exit 1"} ;;
            "-m venv"*) PATH={os.environ["PATH"]}; {make} ;;
            *"-m pip"*) exit 0 ;;
            "-c import pip") exit 0 ;;
            *) exec {sys.executable} "$@" ;;
            esac""",
        )

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", f"packaging/setup/{script}", *arguments],
            cwd=self.root,
            env={"PATH": str(self.bin), "HOME": str(self.root), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls(self, command: str) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.partition(" ")[2] for line in lines if line.split(" ")[0] == command]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "My Projects")  # a path as people have it


def test_without_python_the_exact_command_is_printed(machine: Machine) -> None:
    """Not root, Debian, no Python: one sentence and one command, and nothing is made."""
    machine.has("apt-get", "exit 9")
    machine.has("apt-cache", '[ "$2" = python3.11-venv ]')
    done = machine.run("venv.sh", "run")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "    sudo apt-get update && sudo apt-get install -y python3.11-venv\n" in done.stderr
    assert not machine.calls("apt-get")
    assert not (machine.root / ".venv").exists()


def test_on_a_mac_without_python_brew_is_named(machine: Machine) -> None:
    """macOS, no Python."""
    machine.has("uname", "echo Darwin")
    done = machine.run("venv.sh", "run")
    assert done.returncode == 1
    assert "brew install python@3.13" in done.stderr


def test_a_python_that_does_not_run_or_is_too_old_is_passed_over(machine: Machine) -> None:
    """A pyenv shim of an unselected version fails when run, and an old one answers that it is too old."""
    machine.has("python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    machine.has("python3.12", "exit 1")
    machine.has_python("python3.11")
    done = machine.run("venv.sh", "run")
    assert done.returncode == 0, done.stderr
    assert str(machine.bin / "python3.11") in done.stdout


def test_root_gets_python_installed(machine: Machine) -> None:
    """Root on a bare Debian: apt brings the newest Python that the release has, and the set-up goes on with it."""
    machine.has("id", "echo 0")
    machine.has_python("later/python3.11")
    machine.has("apt-cache", '[ "$2" = python3.11-venv ]')
    copy = f'PATH={os.environ["PATH"]} cp "{machine.root}/later/python3.11" "{machine.bin}/python3.11"'
    machine.has("apt-get", f'if [[ "$*" == *install* ]]; then {copy}; fi')
    done = machine.run("venv.sh", "run")
    assert done.returncode == 0, done.stderr
    update, install = machine.calls("apt-get")
    assert update.startswith("update")
    assert install.endswith(" python3.11-venv")
    assert (machine.root / ".venv/bin/python").exists()


def test_debian_python_without_venv_module_names_the_package(machine: Machine) -> None:
    """Debian's Python has no ensurepip of its own; `python -m venv` would leave half a .venv behind."""
    machine.has_python("python3", working_venv=False)
    machine.has("apt-get", "exit 9")
    done = machine.run("venv.sh", "run")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert done.returncode == 1
    assert f"sudo apt-get install -y python{version}-venv" in done.stderr
    assert not (machine.root / ".venv").exists()


def test_installs_once_and_again_only_when_it_must(machine: Machine) -> None:
    """A second run calls pip not at all; new pins, a moved folder or a wish for the test tools do."""
    machine.has_python("python3")

    def installs(kind: str, root: Path = machine.root) -> int:
        machine.log.unlink(missing_ok=True)
        machine.root = root
        done = machine.run("venv.sh", kind)
        assert done.returncode == 0, done.stderr
        return len([call for call in machine.calls("python") if call.startswith("-m pip install")])

    assert installs("run") == 1
    assert installs("run") == 0
    assert installs("dev") == 1
    assert installs("run") == 0, "the test tools are a superset"
    constraints = machine.root / "packaging/constraints.txt"
    constraints.write_text(constraints.read_text() + "added==1\n")
    assert installs("dev") == 1
    moved = machine.root.rename(machine.root.with_name("moved"))
    machine.bin, machine.log = moved / "bin", moved / "calls.log"
    machine.has_python("python3")
    shutil.copyfile(moved / "bin/python3", moved / ".venv/bin/python")
    assert installs("dev", moved) == 1


def test_an_interrupted_install_is_done_again(machine: Machine) -> None:
    """pip failed half way: the next run must not think that all is there."""
    machine.has_python("python3")
    assert machine.run("venv.sh", "run").returncode == 0
    python = machine.root / ".venv/bin/python"
    works = python.read_text()
    python.write_text(works.replace('*"-m pip"*) exit 0', '*"-m pip"*) exit 1'))
    assert machine.run("venv.sh", "dev").returncode == 1
    python.write_text(works)
    machine.log.unlink()
    assert machine.run("venv.sh", "run").returncode == 0
    assert [call for call in machine.calls("python") if call.startswith("-m pip install")]


def test_a_venv_whose_python_is_gone_is_made_anew(machine: Machine) -> None:
    """brew upgraded Python away, and .venv/bin/python leads nowhere."""
    machine.has_python("python3")
    (machine.root / ".venv/bin").mkdir(parents=True)
    (machine.root / ".venv/bin/python").symlink_to("/nowhere/python3")
    done = machine.run("venv.sh", "run")
    assert done.returncode == 0, done.stderr
    assert "making .venv anew" in done.stdout


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("Darwin x86_64 14.5", "Apple silicon"),
        ("Darwin arm64 13.6.1", "needs macOS 14 or newer; this is macOS 13.6.1"),
        ("Linux aarch64 2.36", "needs glibc 2.39 on aarch64"),
        ("Linux x86_64 2.31", "needs glibc 2.35 on x86_64"),
        ("Linux x86_64", "another C library"),
        ("Linux riscv64 2.41", "this is Linux riscv64"),
    ],
)
def test_a_machine_without_wheels_is_told_so(machine: Machine, answer: str, sentence: str) -> None:
    """MLX and PySide6 have no wheels there; said before anything is made."""
    machine.has("python3", f'case "$*" in *libc_ver*) echo {answer} ;; esac')
    done = machine.run("venv.sh", "run")
    assert done.returncode == 1
    assert sentence in done.stderr
    assert not (machine.root / ".venv").exists()


@pytest.fixture
def linux(machine: Machine) -> Callable[[str], None]:
    """Sets the machine's loader to miss some libraries until apt-get install was called."""

    def missing(sonames: str) -> None:
        qt = machine.root / "qt"
        for file in ("QtNetwork.abi3.so", "Qt/plugins/platforms/libqxcb.so", "Qt/plugins/platforms/libqoffscreen.so"):
            (qt / file).parent.mkdir(parents=True, exist_ok=True)
            (qt / file).touch()
        (qt / "Qt/plugins/xcbglintegrations").mkdir()
        (qt / "Qt/plugins/xcbglintegrations/libqxcb-glx-integration.so").touch()
        machine.has(".venv/bin/python", f"echo {qt}")
        lines = "\n".join(f"echo '    {soname} => not found'" for soname in sonames.split())
        machine.has(
            "ldd", f'echo "    libc.so.6 => /lib/libc.so.6 (0x1)"\n[ -e "{machine.root}/done" ] || {{ :\n{lines}\n}}'
        )

    return missing


def test_missing_qt_libraries_are_named_as_debian_packages(machine: Machine, linux: Callable[[str], None]) -> None:
    """Not root: the exact command, its package names made from sonames, those renamed in newer releases included."""
    linux("libEGL.so.1 libX11.so.6 libglib-2.0.so.0 libgthread-2.0.so.0 libgssapi_krb5.so.2 libdbus-1.so.3")
    machine.has("apt-get", "exit 9")
    machine.has("apt-cache", '[ "$2" != libglib2.0-0 ]')
    done = machine.run("system_libraries.sh")
    assert done.returncode == 1
    packages = "libdbus-1-3 libegl1 libglib2.0-0t64 libgssapi-krb5-2 libx11-6"
    assert f"    sudo apt-get update && sudo apt-get install -y --no-install-recommends {packages}\n" in done.stderr
    assert not machine.calls("apt-get")


def test_root_gets_qt_libraries_installed(machine: Machine, linux: Callable[[str], None]) -> None:
    """Root: apt installs them, and the loader is asked again."""
    linux("libEGL.so.1 libGL.so.1")
    machine.has("id", "echo 0")
    machine.has("apt-cache", "exit 0")
    machine.has("apt-get", f'[[ "$*" != *install* ]] || touch "{machine.root}/done"')
    done = machine.run("system_libraries.sh")
    assert done.returncode == 0, done.stderr
    assert machine.calls("apt-get")[-1].endswith(" libegl1 libgl1")


def test_libraries_that_apt_did_not_bring_fail_the_step(machine: Machine, linux: Callable[[str], None]) -> None:
    """Root, but apt's packages were not the right ones: said here, not by a crash of Qt later."""
    linux("libEGL.so.1")
    machine.has("id", "echo 0")
    machine.has("apt-cache", "exit 0")
    machine.has("apt-get", "exit 0")
    done = machine.run("system_libraries.sh")
    assert done.returncode == 1
    assert "still misses" in done.stderr


def test_elsewhere_the_libraries_are_named(machine: Machine, linux: Callable[[str], None]) -> None:
    """No apt on this Linux."""
    linux("libEGL.so.1 libGL.so.1")
    done = machine.run("system_libraries.sh")
    assert done.returncode == 1
    assert "    libEGL.so.1 libGL.so.1\n" in done.stderr


def test_nothing_missing_says_nothing(machine: Machine, linux: Callable[[str], None]) -> None:
    """The usual case, on every `make test`."""
    linux("")
    done = machine.run("system_libraries.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_a_display_chat_is_named(machine: Machine) -> None:
    """`make run` on a server: exit 2 and the command that works there, without a demand for Qt's libraries."""
    done = machine.run("window.sh")
    assert done.returncode == 2
    assert "no display" in done.stderr
    assert "    .venv/bin/pacenote chat\n" in done.stderr


@pytest.mark.parametrize("variable", ["DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"])
def test_with_a_display_the_window_opens(machine: Machine, linux: Callable[[str], None], variable: str) -> None:
    """X11, Wayland, or a platform that the caller chose; arguments are handed on."""
    linux("")
    (machine.root / "qt/Qt/plugins/platforms/libqwayland.so").touch()
    machine.has(".venv/bin/pacenote", "exit 0")
    done = machine.run("window.sh", "--flag", **{variable: ":0"})
    assert done.returncode == 0, done.stderr
    assert machine.calls("pacenote") == ["--flag"]


def compiler(machine: Machine, version: str) -> None:
    for tool in ("clang++", "llvm-dis", "llvm-objdump"):
        machine.has(f"{tool}-{version}", "exit 0")


def test_root_gets_the_compiler_of_the_kernel_tests(machine: Machine) -> None:
    """Root: apt brings the first LLVM that the release has; a second run asks apt nothing."""
    machine.has("id", "echo 0")
    machine.has("apt-cache", '[[ "$2" == *-18 ]]')
    machine.has("apt-get", "exit 0")
    done = machine.run("virtual_metal.sh")
    assert done.returncode == 0, done.stderr
    assert machine.calls("apt-get")[-1].endswith(" clang-18 llvm-18")
    machine.log.unlink()
    compiler(machine, "18")
    done = machine.run("virtual_metal.sh")
    assert (done.returncode, done.stdout, machine.calls("apt-get")) == (0, "", [])


def test_without_root_the_compiler_is_named_and_the_tests_go_on(machine: Machine) -> None:
    """Not root: the command is printed, nothing is installed, and `make test` is not stopped."""
    machine.has("apt-get", "exit 9")
    machine.has("apt-cache", '[[ "$2" == *-19 ]]')
    done = machine.run("virtual_metal.sh")
    assert done.returncode == 0
    assert "skipped" in done.stdout
    assert (
        "    sudo apt-get update && sudo apt-get install -y --no-install-recommends clang-19 llvm-19\n" in done.stdout
    )
    assert not machine.calls("apt-get")


@pytest.mark.parametrize("works", ["exit 0", '[[ "$*" != *install* ]]'])
def test_a_compiler_that_apt_cannot_bring_stops_nothing(machine: Machine, works: str) -> None:
    """Root, but the release has none, or the download fails: said, and the other tests run."""
    machine.has("id", "echo 0")
    machine.has("apt-get", works)
    machine.has("apt-cache", f"[ {int(works != 'exit 0')} = 1 ]")
    done = machine.run("virtual_metal.sh")
    assert done.returncode == 0, done.stderr
    assert "are skipped" in done.stdout


def test_scripts_are_executable() -> None:
    """A clone keeps the mode that git recorded."""
    scripts = ("venv", "system_libraries", "virtual_metal", "window")
    for name in (".ci/run", *(f"packaging/setup/{n}.sh" for n in scripts)):
        assert os.access(ROOT / name, os.X_OK), name
