"""`python -m engine.cli`: the `pacenote` command where no entry point is installed."""

import sys

from engine.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
