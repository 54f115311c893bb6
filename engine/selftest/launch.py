"""How to start this program again, from a checkout, an installed wheel or a bundled application."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

_CODE = "import sys; sys.path[:] = {path!r}; from engine.cli.main import main; sys.exit(main(sys.argv[1:]))"


def own_command(arguments: Sequence[str]) -> list[str]:
    """The command line that runs `pacenote` with these arguments.

    Where a Python runs us it is that Python with the same search path. A bundle's own launcher is not a Python (its
    `sys.executable` has the name of the application) and takes the arguments itself.
    """
    if not Path(sys.executable).name.lower().startswith("python"):
        return [sys.executable, *arguments]
    isolated = ["-I"] if sys.flags.isolated else []
    return [sys.executable, *isolated, "-c", _CODE.format(path=sys.path), *arguments]
