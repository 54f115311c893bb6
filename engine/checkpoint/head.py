"""Reading an MTP head whole, checked against its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx

from engine.checkpoint import fp8
from engine.checkpoint.folder import Checkpoint
from engine.checkpoint.head_shapes import EXPERTS, NORMS, STACKED, ExpertLayout, expert_layout, is_moe
from engine.checkpoint.inventory import Unfit, check_finite, check_norms, check_schemes, check_tensors
from engine.checkpoint.kind import find_prefix, is_standalone
from engine.checkpoint.safetensors_header import TensorEntry
from engine.errors import CheckpointError
from engine.quantize import Plan


@dataclass(frozen=True)
class HeadTensors:
    """A head's tensors by stand-alone name, ready to bind: norms as used, experts stacked, no fp8.

    plan: how packed tensors are packed, and how dense ones are to be quantized at load.
    hash: of the tensors as they lie there, see `Checkpoint.fingerprint`.
    """

    weights: dict[str, mx.array]
    config: dict[str, Any]
    plan: Plan
    source: str
    hash: str

    @property
    def nbytes(self) -> int:
        return sum(w.nbytes for w in self.weights.values())

    @property
    def packed(self) -> bool:
        """Whether the checkpoint holds quantized projections, all or some."""
        return any(name.endswith(".scales") for name in self.weights)


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
            f"{checkpoint.name} holds no MTP head: none of its tensors is named mtp.*, and it has no fc.weight.",
            kept="The model works without a head, at classic speed.",
            todo="Choose a folder that holds this model's MTP head.",
            detail=str(checkpoint.path),
        )
    entries = {n.removeprefix(prefix or ""): t for n, t in checkpoint.tensors.items() if n.startswith(prefix or "")}
    try:
        block, plan = _packing(checkpoint, prefix or "")
        _check_vocabulary(checkpoint, text_config)
        check_tensors(entries, text_config, block)
        weights = _stacked(fp8.dequantize_all(_load(entries), block), text_config)
        if prefix is not None:
            # HF stores RMSNorm weights as w - 1. Only tensors that still carry the prefix are in that convention.
            for norm in NORMS:
                weights[f"{norm}.weight"] = weights[f"{norm}.weight"] + 1.0
        check_schemes(weights, plan, text_config)
        check_finite(weights)
        check_norms(weights, shifted_here=prefix is not None)
    except Unfit as error:
        raise CheckpointError(
            f"The MTP head in {checkpoint.name} cannot be used: {error}.",
            kept="The model works without it, at classic speed.",
            todo="Choose the head that was made for this model.",
            detail=str(checkpoint.path),
        ) from error
    own = Checkpoint(checkpoint.path, {}, entries)
    return HeadTensors(weights, checkpoint.config, plan, str(checkpoint.path), own.fingerprint())


def _packing(checkpoint: Checkpoint, prefix: str) -> tuple[tuple[int, int], Plan]:
    """Block size of fp8 scales, and the plan of MLX's packing."""
    try:
        return fp8.block_size(checkpoint.config), Plan.from_block(checkpoint.quantization(), prefix)
    except (TypeError, ValueError, OverflowError) as error:  # the last: a number as large as 1e999
        raise Unfit(f"the quantization in its config.json cannot be read ({error})") from error


def _check_vocabulary(checkpoint: Checkpoint, text_config: Mapping[str, Any]) -> None:
    """A head has no tensor of the vocabulary's size; what its own configuration says is all there is to compare."""
    own, needed = checkpoint.text_config.get("vocab_size"), text_config.get("vocab_size")
    if own is not None and needed is not None and own != needed:
        raise Unfit(f"it is made for a vocabulary of {own} tokens, this model has {needed} (vocab_size)")


def _load(entries: Mapping[str, TensorEntry]) -> dict[str, mx.array]:
    weights: dict[str, mx.array] = {}
    by_file: dict[str, list[tuple[str, TensorEntry]]] = {}
    for name, entry in entries.items():
        by_file.setdefault(str(entry.file), []).append((name, entry))
    for file, wanted in by_file.items():
        try:
            loaded = cast(dict[str, mx.array], mx.load(file))
        except (RuntimeError, ValueError) as error:  # MLX reads parts of the header that are nothing to us
            raise Unfit(f"{wanted[0][1].file.name} cannot be read ({error})") from error
        for name, entry in wanted:
            weights[name] = loaded[entry.name]
    return weights


def _stacked(weights: dict[str, mx.array], text_config: Mapping[str, Any]) -> dict[str, mx.array]:
    """Experts of any layout as three stacks [experts, out, in]. Nothing changes in a dense head."""
    if not is_moe(text_config):
        return weights
    layout = expert_layout(weights)
    if layout is ExpertLayout.STACKED:
        return weights
    rest = {name: w for name, w in weights.items() if not name.startswith(EXPERTS)}
    if layout is ExpertLayout.FUSED:
        gate, up = mx.split(weights[EXPERTS + "gate_up_proj"], 2, axis=-2)
        stacks = {"gate_proj": gate, "up_proj": up, "down_proj": weights[EXPERTS + "down_proj"]}
        return rest | {f"{STACKED}{part}.weight": mx.contiguous(stack) for part, stack in stacks.items()}
    experts = range(int(text_config["num_experts"]))
    for part in ("gate_proj", "up_proj", "down_proj"):
        for tail in (".weight", ".scales", ".biases"):
            names = [f"{EXPERTS}{e}.{part}{tail}" for e in experts]
            pieces = [weights[name] for name in names if name in weights]
            if not pieces:
                continue
            if len(pieces) < len(names) or len({piece.shape for piece in pieces}) > 1:
                raise Unfit(f"{EXPERTS}*.{part} are not all packed alike")
            rest[f"{STACKED}{part}{tail}"] = mx.stack(pieces)
    return rest
