"""Target layouts that mlx-lm's loader does not read: experts one by one, and fp8 with block scales.

Qwen's fp8 releases come so. The tensors are brought into the form that mlx-lm's `sanitize` knows, in a subclass made
for one load; mlx-lm itself stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from engine.checkpoint import fp8

_EXPERT = re.compile(r"(.*\.mlp\.)experts\.(\d+)\.(gate_proj|up_proj|down_proj)(\.weight|\.scales|\.biases)")

Classes = Callable[[dict[str, Any]], tuple[type[nn.Module], type]]


def stack_experts(weights: Mapping[str, mx.array]) -> dict[str, mx.array]:
    """`...mlp.experts.7.up_proj.weight` for each expert -> one `...mlp.switch_mlp.up_proj.weight` [experts, out, in].

    Raises:
        ValueError: an expert in the middle is missing, by name.
    """
    rest: dict[str, mx.array] = {}
    stacks: dict[str, dict[int, mx.array]] = {}
    for name, w in weights.items():
        match = _EXPERT.fullmatch(name)
        if match is None:
            rest[name] = w
        else:
            before, expert, part, tail = match.groups()
            stacks.setdefault(f"{before}switch_mlp.{part}{tail}", {})[int(expert)] = w
    for name, experts in stacks.items():
        if missing := sorted(set(range(max(experts) + 1)) - experts.keys()):
            raise ValueError(f"{name}: expert {missing[0]} is missing")
        rest[name] = mx.stack([experts[n] for n in range(len(experts))])
    return rest


def _require_groups(model: nn.Module, weights: Mapping[str, mx.array]) -> None:
    """mlx-lm divides inputs by groups to learn the group size, and a group size of 0 ends the process (SIGFPE).

    Raises:
        ValueError: a layer has fewer inputs than its scales have groups, by name.
    """
    for path, module in model.named_modules():
        scales = weights.get(f"{path}.scales")
        if scales is None or "weight" not in module:
            continue
        inputs, groups = module["weight"].shape[-1], scales.shape[-1] if scales.ndim else 0
        if not 0 < groups <= inputs:
            raise ValueError(f"{path} has {inputs} inputs by its configuration and {groups} groups of scales")


def reading_all_layouts(classes: Classes) -> Classes:
    """`get_model_classes` for mlx-lm's `load_model`: its own classes, with a `sanitize` that reads more."""

    def found(config: dict[str, Any]) -> tuple[type[nn.Module], type]:
        model, args = classes(config)
        block = fp8.block_size(config)

        def sanitize(self: nn.Module, weights: dict[str, mx.array]) -> dict[str, mx.array]:
            # The head is read apart (checkpoint.head); mlx-lm drops it.
            own = {name: w for name, w in weights.items() if "mtp." not in name}
            read: dict[str, mx.array] = model.sanitize(self, stack_experts(fp8.dequantize_all(own, block)))
            _require_groups(self, read)
            return read

        return type(model.__name__, (model,), {"sanitize": sanitize}), args

    return found
