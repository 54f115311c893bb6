"""The packages in a bundle: what Pacenote needs at run time, in the versions of packaging/constraints.txt."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setup.lock import closure, environments

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def environment(platform: str, python: str) -> dict[str, str]:
    """The marker environment (PEP 508) of `linux` or `darwin` for a Python such as 3.13."""
    for found in environments():
        if (found["sys_platform"], found["python_version"]) == (platform, python):
            return found
    raise ValueError(f"no bundle for {platform} with Python {python}")


def pins(where: Mapping[str, str]) -> dict[str, str]:
    """Name -> version of what packaging/constraints.txt says for this environment."""
    found = {}
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            if pin.marker is None or pin.marker.evaluate(dict(where)):
                (version,) = (specifier.version for specifier in pin.specifier)
                found[canonicalize_name(pin.name)] = version
    return found


@cache
def packages(platform: str, python: str) -> dict[str, str]:
    """Name -> pinned version of all that a bundle holds, Pacenote itself left out.

    Read from the metadata of the environment that runs this, so that must be one that `make` has set up.
    """
    where = environment(platform, python)
    pinned = pins(where)
    needed = closure(where, extras=("",))
    if missing := sorted(set(needed) - set(pinned)):
        raise SystemExit(f"packaging/constraints.txt has no version of {', '.join(missing)}: run `make lock`")
    return {name: pinned[name] for name in sorted(needed)}


if __name__ == "__main__":
    for name, version in packages(sys.argv[1], sys.argv[2]).items():
        print(f"{name}=={version}")
