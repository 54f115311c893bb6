"""Pairs of real shapes with random packed weights: for costs and exactness on machines that hold no checkpoint.

They say nothing about text or acceptance, and every record that uses one says so.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.qwen3_5 import Model, ModelArgs

from engine.backend import Backend
from engine.checkpoint.head_shapes import linear_shapes, norm_shapes
from engine.drafter.head import MTPHead, build_head
from engine.quantize import Plan, Scheme, quantize_weights
from engine.target import Target

_COMMON: dict[str, Any] = {
    "model_type": "qwen3_5_text",
    "head_dim": 256,
    "vocab_size": 248320,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 262144,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
}

SHAPES: dict[str, dict[str, Any]] = {
    "4B": {
        **_COMMON, "hidden_size": 2560, "intermediate_size": 9216, "num_hidden_layers": 32, "num_attention_heads": 16,
        "num_key_value_heads": 4, "linear_num_value_heads": 32, "tie_word_embeddings": True,
    },
    "27B": {
        **_COMMON, "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64, "num_attention_heads": 24,
        "num_key_value_heads": 4, "linear_num_value_heads": 48, "tie_word_embeddings": False,
    },
}  # fmt: skip
"""Text configurations. 27B: reference mtp.md 1. 4B: the family's proportions at that size."""


def random_target(
    shape: str, backend: Backend, *, scheme: Scheme | None = None, layers: int | None = None, seed: int = 0
) -> Target:
    """A target of this shape, bfloat16 with packed linear layers, materialised layer by layer.

    layers: another number of layers than the shape's.
    """
    scheme = scheme or Scheme()
    mx.random.seed(seed)
    config = {**SHAPES[shape], **({"num_hidden_layers": layers} if layers else {})}
    model = Model(ModelArgs.from_dict({"model_type": "qwen3_5", "text_config": config}))
    model.set_dtype(mx.bfloat16)
    inner = model.language_model.model
    for layer in inner.layers:
        if layer.is_linear:
            layer.linear_attn.A_log = layer.linear_attn.A_log.astype(mx.float32)
    nn.quantize(model, group_size=scheme.group_size, bits=scheme.bits)
    for piece in (inner.embed_tokens, *inner.layers, model):
        mx.eval(piece.parameters())
        mx.clear_cache()
    model.eval()
    return Target(model, config, backend)


def random_head(shape: str, target: Target, *, quantized: bool, seed: int = 1) -> MTPHead:
    """A head for it, dense bfloat16 or packed as at load."""
    mx.random.seed(seed)
    config = SHAPES[shape]
    weights = {
        f"{name}.weight": (mx.random.normal(size) * size[-1] ** -0.5).astype(mx.bfloat16)
        for name, size in linear_shapes(config).items()
    }
    weights |= {f"{name}.weight": mx.ones(size, dtype=mx.bfloat16) for name, size in norm_shapes(config).items()}
    if quantized:
        weights = quantize_weights(weights, Plan()).weights
    head = build_head(config, weights, Plan())
    head.set_dtype(target.dtype)
    mx.eval(head.parameters())
    return head
