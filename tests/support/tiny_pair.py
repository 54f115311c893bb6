"""Tiny random pairs in the real formats, made on the spot. They decode at hundreds of tokens a second.

A random head would agree with a random target about once in V tokens, and then accept and rollback would
hardly run. So the LM head is a shuffled copy of the embeddings: the next token is mostly a fixed successor
of the present one, disturbed by the context. The head sees the same embedding, so it agrees about half of
the time, and every walk length occurs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models.qwen3_5 import Model, ModelArgs

from engine.checkpoint.head_shapes import linear_shapes, norm_shapes
from tests.support.tiny_tokenizer import VOCAB_SIZE, write_tiny_tokenizer


@dataclass(frozen=True)
class Shape:
    hidden_size: int = 64
    layers: int = 4
    vocab_size: int = VOCAB_SIZE
    mlp: int = 128
    tied: bool = False
    context: int = 2048
    experts: int = 0
    """0: dense. Else a mixture, of which each token takes a quarter."""
    extra: dict[str, Any] = field(default_factory=dict)

    def text_config(self) -> dict[str, Any]:
        return {
            "model_type": "qwen3_5_text",
            "hidden_size": self.hidden_size,
            "intermediate_size": self.mlp,
            "num_hidden_layers": self.layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "vocab_size": self.vocab_size,
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 32,
            "linear_value_head_dim": 32,
            "linear_conv_kernel_dim": 4,
            "tie_word_embeddings": self.tied,
            "full_attention_interval": 4,
            "max_position_embeddings": self.context,
            "rms_norm_eps": 1e-6,
            "mtp_num_hidden_layers": 1,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
            **self._experts(),
            **self.extra,
        }

    def _experts(self) -> dict[str, Any]:
        if not self.experts:
            return {}
        return {
            "model_type": "qwen3_5_moe_text",
            "num_experts": self.experts,
            "num_experts_per_tok": max(2, self.experts // 4),
            "moe_intermediate_size": self.mlp // 2,
            "shared_expert_intermediate_size": self.mlp,
        }

    @property
    def model_type(self) -> str:
        return "qwen3_5_moe" if self.experts else "qwen3_5"


def target_weights(shape: Shape, seed: int = 0) -> dict[str, mx.array]:
    """Target tensors in mlx-lm's names (norms as used), float32."""
    mx.random.seed(seed)
    model = Model(ModelArgs.from_dict({"model_type": shape.model_type, "text_config": shape.text_config()}))
    weights = dict(tree_flatten(model.parameters()))
    for name, w in weights.items():
        if name.endswith("norm.weight"):
            weights[name] = w + 0.1 * mx.random.normal(w.shape)
        elif name.endswith("embed_tokens.weight"):
            weights[name] = mx.random.normal(w.shape)
        elif w.ndim == 2:
            weights[name] = mx.random.normal(w.shape) * (1.0 / w.shape[-1] ** 0.5)
    if not shape.tied:
        embeddings = weights["language_model.model.embed_tokens.weight"]
        successor = mx.random.permutation(shape.vocab_size)
        weights["language_model.lm_head.weight"] = 0.2 * embeddings[successor]
    mx.eval(weights)
    return weights


def head_weights(shape: Shape, seed: int = 1, agree: float = 1.0) -> dict[str, mx.array]:
    """Head tensors in the stand-alone layout (norms as used), bfloat16.

    agree: how much of the fused input is the embedding of the next token; the rest is noise.
    """
    mx.random.seed(seed)
    config = shape.text_config()
    weights: dict[str, mx.array] = {}
    for name, size in linear_shapes(config).items():
        weights[f"{name}.weight"] = mx.random.normal(size) * (0.1 / size[-1] ** 0.5)
    eye = mx.eye(shape.hidden_size)
    noise = mx.random.normal((shape.hidden_size, shape.hidden_size)) / shape.hidden_size**0.5
    weights["fc.weight"] = mx.concatenate([agree * eye, (1.2 - agree) * noise], axis=1)
    for name, size in norm_shapes(config).items():
        weights[f"{name}.weight"] = mx.ones(size)
    weights = {k: v.astype(mx.bfloat16) for k, v in weights.items()}
    mx.eval(weights)
    return weights


def write_target(
    folder: Path, shape: Shape | None = None, *, bits: int | None = 4, seed: int = 0, group: int = 32
) -> Path:
    """Write a target as an MLX conversion would lie on the hub. bits None: not quantized. Returns `folder`."""
    shape = shape or Shape()
    folder.mkdir(parents=True, exist_ok=True)
    weights = target_weights(shape, seed)
    config: dict[str, Any] = {
        "model_type": shape.model_type,
        "text_config": shape.text_config(),
        "tie_word_embeddings": shape.tied,
    }
    if bits is not None:
        model = Model(ModelArgs.from_dict(config))
        model.load_weights(list(weights.items()))
        block: dict[str, Any] = {"group_size": group, "bits": bits, "mode": "affine"}
        router = model.quant_predicate or (lambda *_: True)  # mlx-lm keeps routers at 8 bit

        def scheme(path: str, module: nn.Module) -> bool | dict[str, Any]:
            own = router(path, module) if hasattr(module, "to_quantized") else False
            if isinstance(own, dict):
                block[path] = own
            return own

        nn.quantize(model, group_size=group, bits=bits, class_predicate=scheme)
        weights = dict(tree_flatten(model.parameters()))
        config["quantization"] = block
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    write_tiny_tokenizer(folder, vocab_size=shape.vocab_size)
    return folder


def write_head(folder: Path, shape: Shape | None = None, *, agree: float = 1.0, seed: int = 1) -> Path:
    """Write a stand-alone head folder. Returns it."""
    shape = shape or Shape()
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), head_weights(shape, seed, agree), metadata={"format": "mlx"})
    config = {"model_type": f"{shape.model_type}_mtp", "text_config": shape.text_config(), "block_size": 3}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return folder


if __name__ == "__main__":
    # python -m tests.support.tiny_pair FOLDER [rewriting]: FOLDER/target and FOLDER/head, for commands with --model.
    import sys

    from tests.support.tiny_tokenizer import REWRITING

    place = Path(sys.argv[1])
    write_target(place / "target")
    write_head(place / "head")
    if "rewriting" in sys.argv[2:]:
        write_tiny_tokenizer(place / "target", template=REWRITING)
