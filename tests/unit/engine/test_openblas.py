"""A real device where a block is not the chain: OpenBLAS, whose float32 rows depend on how many there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tiny_pair import Shape, write_head, write_target

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3")

SCRIPT = """
import sys
from pathlib import Path
from engine.request import Sampler
from tests.support.rig import Rig, load_tiny
pair = load_tiny(Path(sys.argv[1]), Path(sys.argv[2]))
rig = Rig(pair.target, pair.drafter, Sampler(temperature=0.7), length=40)
verdict = pair.info.verdict
same = all(rig.speculative([1, 2, 3], w).tokens == rig.classic([1, 2, 3]).tokens for w in verdict.widths)
print(verdict.state.value, verdict.kernel, list(verdict.widths), same, verdict.reason, sep="|")
"""


@pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not installed (Debian: libopenblas0-pthread)")
def test_the_ladder_leaves_stock_and_keeps_the_text(tmp_path: Path) -> None:
    shape = Shape(hidden_size=256, mlp=512)
    target = write_target(tmp_path / "target", shape, bits=None)
    head = write_head(tmp_path / "head", shape)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(LIBRARY),
        "PACENOTE_COMPUTE": "dense float32",
        "PACENOTE_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(target), str(head)],
        env=environment, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True, timeout=150,
    )  # fmt: skip
    state, kernel, widths, same, reason = done.stdout.strip().split("|")
    assert "stock: bytes differ at width" in reason
    assert kernel != "stock"
    assert state in ("exact with other kernels", "declined")
    assert same == "True", "whatever widths are left, the text is classic decode's"
    assert state == "declined" or widths != "[]"
