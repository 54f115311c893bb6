"""Small conversions between Python and MLX that the whole engine shares. Token ids are uint32 everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import mlx.core as mx


def token_array(ids: Sequence[int]) -> mx.array:
    """[n] token ids on the device."""
    return mx.array(list(ids), dtype=mx.uint32)


def token_list(ids: mx.array) -> list[int]:
    """[n] token ids on the host. Evaluates and waits."""
    return cast(list[int], ids.tolist())


def token(ids: mx.array) -> int:
    """The one token of a [1] array. Evaluates and waits."""
    return cast(int, ids.item())


def queue(*arrays: Any) -> None:
    """Start evaluating without waiting."""
    mx.async_eval(*arrays)  # type: ignore[no-untyped-call]
