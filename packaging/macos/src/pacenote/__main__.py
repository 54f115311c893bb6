"""Started by the bundle's executable: the command line of `pacenote`, which without arguments opens the window."""

import sys
from pathlib import Path


def own_executable(launcher: Path) -> Path | None:
    """Contents/MacOS/Pacenote for a launcher at Contents/Resources/app/pacenote/__main__.py, None outside a bundle."""
    found = launcher.resolve().parents[3] / "MacOS" / "Pacenote"
    return found if found.is_file() else None


if __name__ == "__main__":
    # An embedded Python may call itself by a name that does not exist; the self-test starts this program again by it.
    if executable := own_executable(Path(__file__)):
        sys.executable = str(executable)
    from engine.cli.main import main

    sys.exit(main())
