"""Write packaging/constraints.txt: one pinned version for everything that Pacenote can pull in, from what .venv holds.

Only the closure of our own requirements is written, so that a package someone tried out by hand stays out of it.
Run it with `make lock`.
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = {"linux": ("Linux", "x86_64"), "darwin": ("Darwin", "arm64")}
HEADER = """\
# Written by `make lock` from a .venv that passed the tests; not edited by hand. How to update it: CONTRIBUTING.md.
# Holds for Linux and macOS, Python 3.11 to 3.13. The extra `cuda` is not in it.
"""


def environments() -> list[dict[str, str]]:
    """The marker environments that the file must hold for."""
    return [
        {
            **default_environment(),
            "python_version": python,
            "python_full_version": f"{python}.9",
            "sys_platform": platform,
            "platform_system": system,
            "platform_machine": machine,
        }
        for python in PYTHONS
        for platform, (system, machine) in PLATFORMS.items()
    ]


def pinned(requirement: Requirement) -> str:
    """The version in .venv; of a package that only another platform installs, the one its parent demands."""
    try:
        return distribution(requirement.name).version
    except PackageNotFoundError:
        exact = [s.version for s in requirement.specifier if s.operator == "=="]
        if len(exact) == 1:
            return exact[0]
        raise SystemExit(f"{requirement} is not in .venv and has no exact version: pin it in pyproject.toml") from None


@cache
def requirements_of(name: str) -> list[Requirement]:
    try:
        return [Requirement(line) for line in distribution(name).requires or ()]
    except PackageNotFoundError:
        return []  # another platform's package: seen by name only


def closure(environment: dict[str, str], extras: Sequence[str] = ("", "dev")) -> dict[str, str]:
    """Name -> version of all that pacenote needs in `environment`, with these extras."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    todo = [("pacenote", extra) for extra in extras]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for requirement in requirements_of(name):
            if requirement.marker and not requirement.marker.evaluate({**environment, "extra": extra}):
                continue
            child = canonicalize_name(requirement.name)
            found[child] = pinned(requirement)
            todo += [(child, e) for e in ("", *requirement.extras)]
    return found


def main() -> None:
    lines: dict[str, set[str]] = {}
    for environment in environments():
        for name, version in closure(environment).items():
            lines.setdefault(f"{name}=={version}", set()).add(environment["sys_platform"])
    text = "".join(
        f"{pin}\n" if len(platforms) == len(PLATFORMS) else f'{pin} ; sys_platform == "{min(platforms)}"\n'
        for pin, platforms in sorted(lines.items())
    )
    (ROOT / "packaging/constraints.txt").write_text(HEADER + text, encoding="utf-8")
    print(f"packaging/constraints.txt: {len(lines)} packages")


if __name__ == "__main__":
    main()
