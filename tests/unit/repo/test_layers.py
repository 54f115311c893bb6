"""The house rules that keep engine/ and app/ apart, read from the source and tried in a bare interpreter."""

import subprocess
import sys

import engine
from tests.unit.repo.tree import ROOT, imports, python_files

# Nothing but the engine's own modules may be seen: Qt and the window are made unimportable before the first import.
WITHOUT_QT = """
import importlib, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"PySide6", "shiboken6", "app"}:
            raise ImportError(f"{name} must not be needed by the engine")

sys.meta_path.insert(0, Refuse())
import engine
names = [m.name for m in pkgutil.walk_packages(engine.__path__, "engine.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def test_engine_imports_without_qt_and_without_the_window() -> None:
    """Every module of the engine imports where PySide6 and app/ cannot be imported."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_QT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    modules = [
        path
        for path in python_files("engine")
        if path.name != "__main__.py" and path.as_posix() != "engine/__init__.py"
    ]
    assert int(done.stdout) == len(modules), "a folder of engine/ without __init__.py is skipped by the import above"


def test_the_guard_against_qt_bites() -> None:
    """The hook above really refuses Qt; otherwise the test before it shows nothing."""
    code = WITHOUT_QT.replace("import engine\n", "import PySide6\n", 1)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "must not be needed by the engine" in done.stderr


def test_the_surface_and_the_download_leave_mlx_alone() -> None:
    """MLX takes seconds to import and is bound to the thread that does it; a window and a transfer need none of it."""
    code = "import engine, engine.cli.main, engine.hub.download, sys; sys.exit('mlx.core' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120).returncode == 0


def test_window_uses_the_public_surface_of_the_engine_only() -> None:
    """app/ says `from engine import Name` with names that the engine exports, and nothing deeper."""
    wrong = []
    for path in python_files("app"):
        for node in imports(path):
            if hasattr(node, "module"):
                module, names = node.module or "", [alias.name for alias in node.names]
                if module.startswith("engine.") or (module == "engine" and not set(names) <= set(engine.__all__)):
                    wrong.append(f"{path}:{node.lineno}: from {module} import {', '.join(names)}")
            else:
                wrong += [
                    f"{path}:{node.lineno}: import {a.name}" for a in node.names if a.name.split(".")[0] == "engine"
                ]
    assert not wrong, "\n".join(wrong)


def test_imports_are_absolute() -> None:
    """No relative import anywhere: a line says where its names come from, wherever it is moved."""
    wrong = [
        f"{path}:{node.lineno}"
        for path in python_files("engine", "app", "resources", "tests", "packaging")
        for node in imports(path)
        if getattr(node, "level", 0)
    ]
    assert not wrong, "\n".join(wrong)


def test_files_stay_short() -> None:
    """No file of the product has over 500 lines: it can be read in one sitting."""
    lengths = {
        str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in python_files("engine", "app")
    }
    assert not {path: length for path, length in lengths.items() if length > 500}
