"""Where the MTP head lives and whether it is whole.

A head is recognised by its tensors, never by `mtp_num_hidden_layers` in a config: most 4-bit conversions
of the target keep that line and hold no head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx

from engine.checkpoint.folder import Checkpoint
from engine.checkpoint.safetensors_header import TensorEntry
from engine.errors import CheckpointError

PREFIXES = ("mtp.", "language_model.mtp.", "model.mtp.")
"""Prefixes under which a head lies inside a target checkpoint. Such tensors are in HF convention (norms - 1)."""

_NORMS = (
    "pre_fc_norm_embedding",
    "pre_fc_norm_hidden",
    "norm",
    "layers.0.input_layernorm",
    "layers.0.post_attention_layernorm",
    "layers.0.self_attn.q_norm",
    "layers.0.self_attn.k_norm",
)
_PARTS = (".weight", ".scales", ".biases")


@dataclass(frozen=True)
class HeadTensors:
    """A head's tensors by stand-alone name, ready to bind. Norms are as used (shifted)."""

    weights: dict[str, mx.array]
    config: dict[str, Any]
    quantization: dict[str, Any] | None
    source: str

    @property
    def nbytes(self) -> int:
        return sum(w.nbytes for w in self.weights.values())


def linear_shapes(text_config: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """The eight 2-D projections of a dense head, (out, in) by name. Source: reference mtp.md 1.1."""
    hidden = int(text_config["hidden_size"])
    heads = int(text_config["num_attention_heads"])
    kv_heads = int(text_config["num_key_value_heads"])
    head_dim = int(text_config.get("head_dim") or hidden // heads)
    mlp = int(text_config["intermediate_size"])
    attn, ffn = "layers.0.self_attn.", "layers.0.mlp."
    return {
        "fc": (hidden, 2 * hidden),
        attn + "q_proj": (2 * heads * head_dim, hidden),  # query and gate per head
        attn + "k_proj": (kv_heads * head_dim, hidden),
        attn + "v_proj": (kv_heads * head_dim, hidden),
        attn + "o_proj": (hidden, heads * head_dim),
        ffn + "gate_proj": (mlp, hidden),
        ffn + "up_proj": (mlp, hidden),
        ffn + "down_proj": (hidden, mlp),
    }


def norm_shapes(text_config: Mapping[str, Any]) -> dict[str, tuple[int]]:
    """The seven 1-D norms by name."""
    hidden = int(text_config["hidden_size"])
    head_dim = int(text_config.get("head_dim") or hidden // int(text_config["num_attention_heads"]))
    return {name: ((head_dim if name.endswith(("q_norm", "k_norm")) else hidden),) for name in _NORMS}


def find_prefix(checkpoint: Checkpoint) -> str | None:
    """The prefix under which a target checkpoint holds a head, or None."""
    for prefix in PREFIXES:
        if any(name.startswith(prefix) for name in checkpoint.tensors):
            return prefix
    return None


def is_standalone(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a stand-alone head: `fc.weight` and no prefix."""
    return "fc.weight" in checkpoint.tensors


def read_head(checkpoint: Checkpoint, text_config: Mapping[str, Any]) -> HeadTensors:
    """Read a head from a stand-alone folder or from inside a target, and check it against the target.

    Args:
        checkpoint: where the head lies.
        text_config: the *target's* configuration; the head must fit it.

    Raises:
        CheckpointError: no head there, or a missing, unknown or misshapen tensor, each by name.
    """
    prefix = find_prefix(checkpoint)
    if prefix is None and not is_standalone(checkpoint):
        raise CheckpointError(
            f"{checkpoint.path.name} holds no MTP head: none of its tensors is named mtp.*, and it has no fc.weight.",
            kept="The model works without a head, at classic speed.",
            todo="Choose a folder that holds this model's MTP head.",
            detail=str(checkpoint.path),
        )
    if int(text_config.get("num_experts") or 0):
        raise CheckpointError(
            "This model is a mixture of experts, and heads of such models are not supported yet.",
            kept="The model works without its head, at classic speed.",
            todo="Use a dense model to have speculation.",
        )
    entries = {n.removeprefix(prefix or ""): t for n, t in checkpoint.tensors.items() if n.startswith(prefix or "")}
    _check(checkpoint, entries, text_config)
    weights: dict[str, mx.array] = {}
    by_file: dict[str, list[tuple[str, TensorEntry]]] = {}
    for name, entry in entries.items():
        by_file.setdefault(str(entry.file), []).append((name, entry))
    for file, wanted in by_file.items():
        loaded = cast(dict[str, mx.array], mx.load(file))
        for name, entry in wanted:
            weights[name] = loaded[entry.name]
    if prefix is not None:
        # HF stores RMSNorm weights as w - 1. Only tensors that still carry the prefix are in that convention.
        for norm in _NORMS:
            weights[f"{norm}.weight"] = weights[f"{norm}.weight"] + 1.0
    return HeadTensors(weights, checkpoint.config, checkpoint.quantization(), str(checkpoint.path))


def _check(checkpoint: Checkpoint, entries: Mapping[str, TensorEntry], text_config: Mapping[str, Any]) -> None:
    def refuse(what: str) -> CheckpointError:
        return CheckpointError(
            f"The MTP head in {checkpoint.path.name} cannot be used: {what}.",
            kept="The model works without it, at classic speed.",
            todo="Choose the head that was made for this model.",
            detail=str(checkpoint.path),
        )

    linears, norms = linear_shapes(text_config), norm_shapes(text_config)
    known = {f"{n}.weight" for n in norms} | {n + part for n in linears for part in _PARTS}
    required = {f"{n}.weight" for n in (*norms, *linears)}
    if missing := sorted(required - entries.keys()):
        raise refuse(f"{len(missing)} tensors are missing ({', '.join(missing[:3])})")
    if unknown := sorted(entries.keys() - known):
        raise refuse(f"it holds tensors this program does not know ({', '.join(unknown[:3])})")
    for name, norm_shape in norms.items():
        entry = entries[f"{name}.weight"]
        if entry.shape != norm_shape:
            raise refuse(f"{name}.weight has shape {list(entry.shape)}, this model needs {list(norm_shape)}")
        if entry.dtype not in ("BF16", "F16", "F32"):
            raise refuse(f"{name}.weight has type {entry.dtype}")
    for name, shape in linears.items():
        entry = entries[f"{name}.weight"]
        packed = f"{name}.scales" in entries
        if packed:
            rows = entry.shape[0] if entry.shape else 0
            groups = entries[f"{name}.scales"].shape[-1]
            if rows != shape[0] or entry.dtype != "U32" or groups == 0 or shape[1] % groups:
                raise refuse(f"{name}.weight is packed for another shape than {list(shape)}")
        elif entry.shape != shape:
            raise refuse(f"{name}.weight has shape {list(entry.shape)}, this model needs {list(shape)}")
        elif entry.dtype not in ("BF16", "F16", "F32"):
            raise refuse(f"{name}.weight has type {entry.dtype}")
