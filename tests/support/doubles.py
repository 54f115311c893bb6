"""Stand-ins for kernels whose bytes depend on how rows are grouped. MLX's CPU hides every such mistake."""

from __future__ import annotations

import random
from typing import Any

import mlx.core as mx

_real = mx.quantized_matmul


def _two_halves(x: mx.array, w: mx.array, scales: mx.array, biases: mx.array, **kwargs: Any) -> mx.array:
    """The same product with K summed in two parts: another order of additions, so other last bits."""
    half_groups = scales.shape[-1] // 2
    if half_groups == 0:
        return _real(x, w, scales, biases, **kwargs) * (1 + 2**-22)
    k = half_groups * kwargs["group_size"]
    packed = k * kwargs["bits"] // 32
    first = _real(x[..., :k], w[..., :packed], scales[..., :half_groups], biases[..., :half_groups], **kwargs)
    rest = _real(x[..., k:], w[..., packed:], scales[..., half_groups:], biases[..., half_groups:], **kwargs)
    return first + rest


def qmv_wide(x: mx.array, w: mx.array, scales: mx.array, biases: mx.array, **kwargs: Any) -> mx.array:
    """For `mx.quantized_matmul`: two rows and more with 2-D weights sum K in another order, as on M3 and later."""
    if w.ndim == 2 and x.shape[-2] >= 2:
        return _two_halves(x, w, scales, biases, **kwargs)
    return _real(x, w, scales, biases, **kwargs)


class NeverTheSame:
    """Also breaks one-row calls: now this order, now that one, so that nothing can be exact."""

    def __init__(self) -> None:
        self._luck = random.Random(0)

    def __call__(self, x: mx.array, w: mx.array, scales: mx.array, biases: mx.array, **kwargs: Any) -> mx.array:
        other = self._luck.random() < 0.5
        return (_two_halves if other else _real)(x, w, scales, biases, **kwargs)
