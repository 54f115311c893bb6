"""The tensors of an MTP head and their shapes, from a target's configuration. Source: reference mtp.md 1.1, 1.2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from engine.errors import CheckpointError

ATTENTION = "layers.0.self_attn."
MLP = "layers.0.mlp."
EXPERTS = MLP + "experts."
STACKED = MLP + "switch_mlp."

NORMS = (
    "pre_fc_norm_embedding",
    "pre_fc_norm_hidden",
    "norm",
    "layers.0.input_layernorm",
    "layers.0.post_attention_layernorm",
    "layers.0.self_attn.q_norm",
    "layers.0.self_attn.k_norm",
)


class ExpertLayout(Enum):
    """How a mixture of experts lies in a file."""

    FUSED = "fused"  # Qwen3.5: [experts, 2 x out, in], gate above up
    PER_EXPERT = "per expert"  # Qwen3.6 and fp8 checkpoints: three matrices for each
    STACKED = "stacked"  # MLX conversions: three of [experts, out, in]


def is_moe(text_config: Mapping[str, Any]) -> bool:
    return (
        "num_experts" in text_config
        and text_config["num_experts"] is not None
        and _size(text_config, "num_experts") > 0
    )


def _size(text_config: Mapping[str, Any], key: str) -> int:
    """A size that a configuration must state.

    Raises:
        CheckpointError: it does not, or as something other than a number.
    """
    try:
        return int(text_config[key])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(
            f"The model's config.json does not say its {key}.", todo="Download the model again, or choose another one."
        ) from error


def _head_dim(text_config: Mapping[str, Any]) -> int:
    if text_config.get("head_dim"):
        return _size(text_config, "head_dim")
    return _size(text_config, "hidden_size") // max(1, _size(text_config, "num_attention_heads"))


def linear_shapes(text_config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The projections of a head as the engine binds them: (out, in) by name, experts (experts, out, in).

    Eight of a dense head. Of a mixture of experts: fc, four of attention, router, shared expert and its gate,
    and three stacks.
    """
    hidden, heads = _size(text_config, "hidden_size"), _size(text_config, "num_attention_heads")
    kv_heads, head_dim = _size(text_config, "num_key_value_heads"), _head_dim(text_config)
    shapes: dict[str, tuple[int, ...]] = {
        "fc": (hidden, 2 * hidden),
        ATTENTION + "q_proj": (2 * heads * head_dim, hidden),  # query and gate per head
        ATTENTION + "k_proj": (kv_heads * head_dim, hidden),
        ATTENTION + "v_proj": (kv_heads * head_dim, hidden),
        ATTENTION + "o_proj": (hidden, heads * head_dim),
    }
    if not is_moe(text_config):
        return shapes | _swiglu(MLP, (), _size(text_config, "intermediate_size"), hidden)
    experts = _size(text_config, "num_experts")
    shapes |= {MLP + "gate": (experts, hidden), MLP + "shared_expert_gate": (1, hidden)}
    shapes |= _swiglu(MLP + "shared_expert.", (), _size(text_config, "shared_expert_intermediate_size"), hidden)
    return shapes | _swiglu(STACKED, (experts,), _size(text_config, "moe_intermediate_size"), hidden)


def _swiglu(prefix: str, lead: tuple[int, ...], inner: int, hidden: int) -> dict[str, tuple[int, ...]]:
    return {
        prefix + "gate_proj": (*lead, inner, hidden),
        prefix + "up_proj": (*lead, inner, hidden),
        prefix + "down_proj": (*lead, hidden, inner),
    }


def norm_shapes(text_config: Mapping[str, Any]) -> dict[str, tuple[int]]:
    """The seven 1-D norms by name."""
    hidden, head_dim = _size(text_config, "hidden_size"), _head_dim(text_config)
    return {name: ((head_dim if name.endswith(("q_norm", "k_norm")) else hidden),) for name in NORMS}


def expert_layout(names: Iterable[str]) -> ExpertLayout:
    """Told by the tensors' names. Where there are no experts at all: the fused one, so that its names are missed."""
    present = list(names)
    if any(name.startswith(STACKED) for name in present):
        return ExpertLayout.STACKED
    if any(name[len(EXPERTS) :][:1].isdigit() for name in present if name.startswith(EXPERTS)):
        return ExpertLayout.PER_EXPERT
    return ExpertLayout.FUSED


def stored_shapes(text_config: Mapping[str, Any], layout: ExpertLayout) -> dict[str, tuple[int, ...]]:
    """Matrices as they lie in a file of that layout, by full tensor name. `layout` counts for experts only."""
    stored: dict[str, tuple[int, ...]] = {}
    for name, shape in linear_shapes(text_config).items():
        part = name.removeprefix(STACKED)
        if len(shape) == 2 or layout is ExpertLayout.STACKED:
            stored[f"{name}.weight"] = shape
        elif layout is ExpertLayout.PER_EXPERT:
            stored |= {f"{EXPERTS}{e}.{part}.weight": shape[1:] for e in range(shape[0])}
        elif part == "down_proj":
            stored[EXPERTS + "down_proj"] = shape
        else:  # gate_proj and up_proj, twice the same entry
            stored[EXPERTS + "gate_up_proj"] = (shape[0], 2 * shape[1], shape[2])
    return stored
