"""What the tests of the repository look at: its files, as git knows them."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@cache
def tracked(*folders: str) -> tuple[Path, ...]:
    """Tracked files, and new ones that git does not ignore, below `folders` (all without any), relative to the root."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files belong to the project is not known")
    # safe.directory: root may test a clone that another user made.
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run([*command, "--", *folders], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted({Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()}))


def python_files(*folders: str) -> list[Path]:
    return [path for path in tracked(*folders) if path.suffix == ".py"]


def imports(path: Path) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import statement of a file, those inside functions included."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
