"""The recipe's package lies in packaging/, beside the repository root, whose own `packaging` would shadow PyPI's."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "packaging"))
