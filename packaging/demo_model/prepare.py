"""Pack whatever chats there are into rows for training.

python -m demo_model.prepare natural rules taught      (in packaging/) -> .work/corpus/NAME.npy
"""

import sys
import time
from itertools import chain

import numpy as np

from demo_model.pack import pack_chats, pack_natural, read_chats
from demo_model.paths import CORPUS


def main() -> None:
    for name in sys.argv[1:]:
        start = time.time()
        if name == "natural":
            rows = pack_natural(CORPUS / "natural.txt")
        else:
            rows = pack_chats(chain.from_iterable(read_chats(p) for p in sorted(CORPUS.glob(f"{name}*.jsonl"))))
        np.save(CORPUS / f"{name}.npy", rows)
        print(f"{name}: {len(rows):,} rows, {rows.size:,} tokens, {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
