"""Rules of the house that a reader could miss."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

APP = Path(__file__).parents[3] / "app"
FILES = sorted(APP.rglob("*.py"))


def trees() -> list[tuple[str, ast.Module]]:
    return [(str(path.relative_to(APP)), ast.parse(path.read_text("utf-8"))) for path in FILES]


@pytest.mark.parametrize(("name", "tree"), trees(), ids=[str(p.relative_to(APP)) for p in FILES])
def test_nothing_but_bound_methods_is_connected(name: str, tree: ast.Module) -> None:
    """A lambda, a partial or a plain function connected to a worker's signal runs in the worker's thread."""
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "connect"):
            continue
        for argument in node.args[:1]:
            assert not isinstance(argument, ast.Lambda), f"{name}:{node.lineno}"
            assert not (isinstance(argument, ast.Name) and argument.id in functions), f"{name}:{node.lineno}"
            partial = isinstance(argument, ast.Call) and "partial" in ast.dump(argument.func)
            assert not partial, f"{name}:{node.lineno}"


@pytest.mark.parametrize(("name", "tree"), trees(), ids=[str(p.relative_to(APP)) for p in FILES])
def test_only_the_engines_public_surface_is_used(name: str, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            assert not module.startswith(("engine.", "mlx")), f"{name}:{node.lineno} {module}"


@pytest.mark.parametrize(("name", "tree"), trees(), ids=[str(p.relative_to(APP)) for p in FILES])
def test_threads_are_never_terminated(name: str, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Attribute) and node.attr in ("terminate", "setTerminationEnabled")), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(APP)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 360


def test_only_the_engine_thread_is_a_thread() -> None:
    found = [
        (name, node.name)
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id in ("QThread", "Thread", "QRunnable") for base in node.bases)
    ]
    assert found == [("worker.py", "EngineThread")]
