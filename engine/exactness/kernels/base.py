"""What a verify kernel is, and the scope in which one is active."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Protocol

import mlx.core as mx

THRESHOLDS = (1024, 4096)
"""Key lengths at which, or just above, MLX's vector attention changes kernel or splits (reference mtp.md 3.1)."""


class Attention(StrEnum):
    """How a block's queries attend. ONE_ROW is exact by construction: each row runs as a decode step's."""

    BLOCK = "block"
    ONE_ROW = "one_row"


class MatmulKernel(Protocol):
    """A way to multiply K rows with one linear module's weights.

    name: as it appears in verdicts and logs. cost_note: what it costs, in words.
    """

    name: str
    cost_note: str

    def linear(self, module: Any, x: mx.array) -> mx.array:
        """x: [..., K, in] with K > 1, on an `nn.QuantizedLinear` or `nn.Linear` without its scope."""
        ...

    def experts(self, module: Any, x: mx.array, indices: mx.array) -> mx.array:
        """The same for a `SwitchGLU`: x [..., K, in], indices [..., K, experts per token]."""
        ...


class Scope:
    """Shared by all wrapped modules of one target. Outside `verifying` every module runs as it always does.

    So prefill, decode steps, and a second loaded model are never touched.

    kernel: None is the stock call. block_limit: keys up to which a block attends as a block; beyond what was
    probed, and at first, its rows attend one at a time. So they do across a threshold: a block attends by its last
    row's number of keys, and its first rows would get another kernel than as single steps.
    """

    def __init__(self) -> None:
        self.kernel: MatmulKernel | None = None
        self.block_limit = 0
        self.attention = Attention.ONE_ROW
        self.active = False
        self.calls = 0  # products that ran through a kernel: proof in benchmarks that the arms differ

    @contextmanager
    def verifying(self, keys: int, rows: int) -> Iterator[None]:
        """keys: entries that the attention caches hold after this forward. rows: how many of them it adds."""
        self.active = True
        straddles = any(keys - rows < threshold <= keys for threshold in THRESHOLDS)
        block = keys <= self.block_limit and not straddles
        self.attention = Attention.BLOCK if block else Attention.ONE_ROW
        try:
            yield
        finally:
            self.active = False

    def for_rows(self, rows: int) -> MatmulKernel | None:
        """The kernel to use for a product of this many rows, None for the stock call."""
        if not self.active or rows < 2 or self.kernel is None:
            return None
        self.calls += 1
        return self.kernel
