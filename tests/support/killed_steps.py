"""Kill a conversion with SIGKILL at every step that touches its folder, each time in a fresh process.

python -m tests.support.killed_steps SRC TARGET DST: prints, as JSON, for each step its name and what lay at DST
afterwards. The last entry is the run that was not killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from engine.checkpoint.convert import quantize_drafter
from engine.checkpoint.folder import open_folder


def main(source: str, target: str, folder: str) -> None:
    results = []
    for step in range(100):
        read, write = os.pipe()
        child = os.fork()  # MLX has not computed yet, so no thread of it is lost
        if child == 0:
            os.close(read)
            _convert(Path(source), Path(target), Path(folder), step, write)
        os.close(write)
        with os.fdopen(read) as pipe:
            names = pipe.read().split()
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        found = sorted(path.name for path in Path(folder).iterdir()) if Path(folder).exists() else None
        left = len(list(Path(folder).parent.glob(".*.partial")))
        results.append({"step": names[-1] if killed else "", "found": found, "left": left})
        if not killed:
            break
        if found is not None:
            shutil.rmtree(folder)
    print(json.dumps(results))  # noqa: T201 - read by the test


def _convert(source: Path, target: Path, folder: Path, last: int, pipe: int) -> None:
    seen = 0

    def watch(event: str, args: tuple) -> None:
        nonlocal seen
        if event in ("open", "os.mkdir", "os.rename", "os.rmdir", "shutil.rmtree") and str(folder.parent) in str(args):
            if seen == last:
                os.write(pipe, f" {event}".encode())
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    heads, models = open_folder(source), open_folder(target)
    sys.addaudithook(watch)
    quantize_drafter(heads, models, folder)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
