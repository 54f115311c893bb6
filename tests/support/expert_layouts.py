"""The layouts of a mixture of experts in files, made from MLX's stacks."""

from __future__ import annotations

import mlx.core as mx

_STACK = "mlp.switch_mlp."


def fused(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """Qwen3.5's: gate above up in one tensor, without `.weight`."""
    out = {n: w for n, w in weights.items() if _STACK not in n}
    for name in [n for n in weights if n.endswith(_STACK + "gate_proj.weight")]:
        before = name.removesuffix("switch_mlp.gate_proj.weight")
        gate, up, down = (weights[f"{before}switch_mlp.{p}_proj.weight"] for p in ("gate", "up", "down"))
        out[before + "experts.gate_up_proj"] = mx.concatenate([gate, up], axis=-2)
        out[before + "experts.down_proj"] = down
    return out


def per_expert(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """Three matrices for each expert."""
    out = {n: w for n, w in weights.items() if _STACK not in n}
    for name, stack in weights.items():
        if _STACK in name:
            before, after = name.split("switch_mlp.")
            out |= {f"{before}experts.{e}.{after}": mx.contiguous(stack[e]) for e in range(stack.shape[0])}
    return out


def stacked(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """As MLX conversions have them."""
    return dict(weights)


def as_original(weights: dict[str, mx.array], prefix: str = "mtp.") -> dict[str, mx.array]:
    """Norms - 1, behind the prefix."""
    return {prefix + n: (w - 1 if w.ndim == 1 else w) for n, w in weights.items()}
