"""What a bundle starts: the command line of `pacenote`, which without arguments opens the window."""

import os
import sys


def restore_library_path() -> None:
    """PyInstaller's starter points the loader at our libraries. A browser that we open must not get them."""
    if getattr(sys, "frozen", False):
        before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
        os.environ.pop("LD_LIBRARY_PATH", None)
        # The self-test starts this program again: as a new one, not as a part of this one that would need that path.
        os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
        if before is not None:
            os.environ["LD_LIBRARY_PATH"] = before


if __name__ == "__main__":
    restore_library_path()
    from engine.cli.main import main

    sys.exit(main())
