"""The offline converter: a head quantized once, in its target's scheme, into a folder of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.checkpoint.folder import Checkpoint
from engine.checkpoint.head import read_head
from engine.checkpoint.head_shapes import is_moe, linear_shapes
from engine.checkpoint.kind import is_standalone
from engine.checkpoint.write import require_absent, standalone_config, whole_or_not_at_all, write_head
from engine.errors import CheckpointError
from engine.quantize import Plan, Scheme, quantize_weights


@dataclass(frozen=True)
class Converted:
    """bytes_before, bytes_after: of the weights. skipped: (projection, reason) of what stayed dense."""

    folder: Path
    plan: Plan
    bytes_before: int
    bytes_after: int
    skipped: tuple[tuple[str, str], ...]


def quantize_drafter(source: Checkpoint, target: Checkpoint, folder: Path) -> Converted:
    """Write a quantized head. The same function as at load does the work, so equal schemes give equal bytes.

    Args:
        source: a stand-alone head, or a model that holds one.
        target: the model it is for; its scheme is taken.
        folder: where it goes; must not exist, or be empty.

    Raises:
        CheckpointError: no scheme to take or one that a drafter cannot have, a head that does not fit or is
            quantized already, something at `folder`, or a disk that refuses. Nothing is left behind.
    """
    require_absent(folder)
    plan = target_plan(target)
    try:
        tensors = read_head(source, target.text_config)
    except CheckpointError as error:  # in the words of a load, where other things are kept
        raise CheckpointError(error.what, kept="Nothing was written.", todo=error.todo, detail=error.detail) from error
    if tensors.packed:
        raise CheckpointError(
            f"The head in {source.name} is quantized already.",
            kept="Nothing was written.",
            todo="Use it as it is, or name the original head in 16 bit.",
        )
    try:
        quantized = quantize_weights(tensors.weights, plan)
    except ValueError as error:
        raise CheckpointError(
            "The head cannot be quantized as its target is.",
            kept="Nothing was written. At load it is quantized in its own scheme.",
            todo="Use the head as it is.",
            detail=str(error),
        ) from error
    if not any(name.endswith(".scales") for name in quantized.weights):
        raise CheckpointError(
            f"No projection of the head can be quantized at {plan.default}.",
            kept="Nothing was written.",
            todo="Use the head as it is.",
            detail="\n".join(f"{projection}: {reason}" for projection, reason in quantized.skipped),
        )
    config = standalone_config(source.config, moe=is_moe(target.text_config), plan=plan)
    if not is_standalone(source):
        # A target's own configuration describes more than the head; what the head needs is the same in both.
        config.pop("vision_config", None)
    with whole_or_not_at_all(folder) as work:
        write_head(work, quantized.weights, config, {})
    after = sum(w.nbytes for w in quantized.weights.values())
    return Converted(folder, plan, tensors.nbytes, after, quantized.skipped)


def target_plan(target: Checkpoint) -> Plan:
    """The target's scheme as a head gets it.

    Of a mixed target each projection takes the scheme of the target's projection with the same name, in the last
    layer that has one: the head stands behind that layer. `fc` has no counterpart and takes the default.

    Raises:
        CheckpointError: the target is not quantized, or in a mode that a drafter is not read in.
    """
    block = target.quantization()
    if block is None:
        raise CheckpointError(
            f"{target.name} is not quantized in MLX's way, so there is no scheme to take from it.",
            kept="Nothing was written. At load a head is quantized in its own scheme.",
            todo="Name the quantized model that the head will be used with.",
        )
    try:
        return _plan(target, block)
    except (TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(
            f"The quantization in the config.json of {target.name} cannot be read.",
            kept="Nothing was written.",
            todo="Choose another model.",
            detail=str(error),
        ) from error


def _plan(target: Checkpoint, block: dict[str, Any]) -> Plan:
    default = Scheme.from_block(block)
    named: dict[str, Scheme | None] = {}
    for projection in linear_shapes(target.text_config):
        twin = _twin(target, projection.removeprefix("layers.0."))
        if twin is None:
            continue
        own = block.get(twin)
        if own is False or f"{twin}.scales" not in target.tensors:
            named[projection] = None
        elif isinstance(own, dict) and (scheme := Scheme.from_block(own)) != default:
            named[projection] = scheme
    all_of_them: list[tuple[str, Scheme | None]] = [("by default", default), *named.items()]
    for projection, taken in all_of_them:
        if taken is not None and taken.mode != "affine":
            raise CheckpointError(
                f"{target.name} is quantized in mode {taken.mode} ({projection}); a drafter is read in affine.",
                kept="Nothing was written. At load a head is quantized in its own scheme, which is affine.",
                todo="Use the head as it is.",
            )
    return Plan(default, named)


def _twin(target: Checkpoint, part: str) -> str | None:
    """The module in the target's last layer that has a projection of this name, e.g. "...layers.63.mlp.up_proj"."""
    pattern = re.compile(rf"(?:.*\.)?layers\.(\d+)\.{re.escape(part)}\.weight")
    found = [
        (int(match[1]), name) for name in target.tensors if (match := pattern.fullmatch(name)) and "mtp." not in name
    ]
    return max(found)[1].removesuffix(".weight") if found else None
