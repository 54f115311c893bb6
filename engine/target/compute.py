"""Hold a model's weights the way the backend computes fastest. Runs once, at load."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map, tree_map_with_path

from engine.backend import Compute


def _unpacked(module: nn.Module, dtype: mx.Dtype) -> mx.array:
    return mx.dequantize(
        module.weight,
        module.scales,
        module.get("biases"),
        group_size=module.group_size,
        bits=module.bits,
        mode=module.mode,
    ).astype(dtype)


def _dense(module: nn.Module, dtype: mx.Dtype) -> nn.Module:
    """A dense twin of a quantized linear or embedding; any other module unchanged."""
    if isinstance(module, nn.QuantizedLinear):
        linear = nn.Linear(1, 1, bias=False)
        linear.weight = _unpacked(module, dtype)
        if "bias" in module:
            linear.bias = module.bias
        return linear
    if isinstance(module, nn.QuantizedEmbedding):
        embedding = nn.Embedding(1, 1)
        embedding.weight = _unpacked(module, dtype)
        return embedding
    return module


def apply(model: nn.Module, compute: Compute) -> None:
    """Convert `model` in place. Conversion of packed scales to float32 is exact; unpacking to bfloat16 rounds."""
    if compute is Compute.STORED:
        return
    dtype = mx.bfloat16 if compute is Compute.DENSE_BF16 else mx.float32
    if compute is not Compute.FLOAT32:
        model.update_modules(tree_map(lambda m: _dense(m, dtype), model.leaf_modules(), is_leaf=nn.Module.is_module))

    def cast(path: str, p: mx.array) -> mx.array:
        # The decay exponent is float32 in every checkpoint and must stay so.
        return p.astype(dtype) if mx.issubdtype(p.dtype, mx.floating) and not path.endswith("A_log") else p

    model.update(tree_map_with_path(cast, model.parameters()))
