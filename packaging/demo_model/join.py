"""Join the parts of a checkpoint that came home from the GPU machine: `python -m demo_model.join FOLDER`."""

import sys
from pathlib import Path

import mlx.core as mx

from demo_model.paths import WORK


def main() -> None:
    weights: dict[str, mx.array] = {}
    for part in sorted(Path(sys.argv[1]).glob("pair-*.safetensors")):
        weights |= mx.load(str(part))
    out = WORK / "ckpt" / "pair.safetensors"
    out.parent.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(out), weights)
    print(f"{len(weights)} tensors -> {out}")


if __name__ == "__main__":
    main()
