"""Is a head whole? Every tensor is known, none is missing, shapes and types are what the target needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import mlx.core as mx

from engine.checkpoint import fp8
from engine.checkpoint.head_shapes import NORMS, ExpertLayout, expert_layout, linear_shapes, norm_shapes, stored_shapes
from engine.checkpoint.safetensors_header import TensorEntry
from engine.quantize import Plan

_FLOATS = ("BF16", "F16", "F32")

UNSHIFTED_BELOW = 0.3
"""Median of a decoder layer's norm, which lies around 1 when it is as used, around 0 when 1 is missing."""
DOUBLED_ABOVE = 1.2
"""Smallest median of the seven. pre_fc_norm_embedding damps: 0.27 and 0.56 in Qwen3.6's two heads, so 1.27 and 1.56
when shifted twice (oMLX #3750, vllm-mlx #400)."""


class Unfit(Exception):
    """What is wrong with a head, in words that complete "cannot be used: ..."."""


def check_tensors(
    entries: Mapping[str, TensorEntry], text_config: Mapping[str, Any], block: tuple[int, int] = fp8.BLOCK
) -> None:
    """Names, shapes and types, without loading a weight.

    Args:
        entries: by name without prefix.
        text_config: the target's.
        block: of fp8 scales.

    Raises:
        Unfit: the first thing that is wrong, with the tensors' names.
    """
    layout = expert_layout(entries)
    experts = max((shape[0] for shape in linear_shapes(text_config).values() if len(shape) == 3), default=0)
    if layout is ExpertLayout.PER_EXPERT and experts > len(entries):
        raise Unfit(f"it holds {len(entries)} tensors, too few for {experts:,} experts")
    matrices = stored_shapes(text_config, layout)
    norms = {f"{name}.weight": shape for name, shape in norm_shapes(text_config).items()}
    known = {*matrices, *norms, *(name + fp8.SCALE for name in matrices)}
    known |= {stem(name) + part for name in matrices for part in (".scales", ".biases")}
    required = {*matrices, *norms}
    if missing := sorted(required - entries.keys()):
        raise Unfit(f"{_count(missing)} missing ({_some(missing)})")
    if unknown := sorted(entries.keys() - known):
        raise Unfit(f"it holds tensors this program does not know ({_some(unknown)})")
    for name, norm in norms.items():
        _check_plain(entries[name], name, norm)
    for name, shape in matrices.items():
        dtype, packed = entries[name].dtype, f"{stem(name)}.scales" in entries
        if name + fp8.SCALE in entries and dtype != fp8.DTYPE:
            raise Unfit(f"{name} has block scales and type {dtype} instead of {fp8.DTYPE}")
        if packed and not name.endswith(".weight"):
            raise Unfit(f"{name} is packed, and fused experts are read unpacked only")
        if packed:
            _check_packed(entries, name, shape)
        elif dtype == fp8.DTYPE:
            _check_fp8(entries, name, shape, block)
        else:
            _check_plain(entries[name], name, shape)
        if f"{stem(name)}.biases" in entries and not packed:
            raise Unfit(f"{stem(name)}.biases is there without {stem(name)}.scales")


def check_norms(weights: Mapping[str, mx.array], shifted_here: bool) -> None:
    """Whether the norms look like weights of an RMSNorm: w, neither w - 1 nor w + 1.

    A wrong shift does not crash, it silently costs acceptance. What cannot be told from the weights, the
    acceptance alarm tells in use.

    Args:
        weights: with the norms as they will be used.
        shifted_here: whether 1 was added because they came in HF convention.

    Raises:
        Unfit: a shift is missing, or was done twice.
    """
    medians = {name: _median(weights[f"{name}.weight"]) for name in NORMS}
    for name, median in medians.items():
        if median < (UNSHIFTED_BELOW if name.startswith("layers.") else 0.0):
            raise Unfit(
                f"its norms look unshifted: {name}.weight has median {median:.2f}, it should lie around 1 and seems to "
                "be stored as w - 1"
            )
    low = min(medians, key=medians.__getitem__)
    if medians[low] > DOUBLED_ABOVE:
        cause = "they were shifted already, though the names still carry mtp." if shifted_here else "saved that way"
        raise Unfit(
            f"its norms look shifted twice ({cause}): the smallest median is {medians[low]:.2f}, of {low}.weight, and "
            "that norm should lie below 1"
        )


def check_finite(weights: Mapping[str, mx.array]) -> None:
    """Whether all values are numbers. A head with others cannot change the text: it drafts what is never accepted.

    One sum a row: NaN and infinity survive it, it needs no second copy, and 16-bit floats do not run over in a row.
    The weights are read at load anyway; this passes over them once more.

    Raises:
        Unfit: NaN or infinity is in a tensor, by name.
    """
    floats = [name for name, weight in weights.items() if mx.issubdtype(weight.dtype, mx.floating)]
    sums = [weights[name].sum(axis=-1).astype(mx.float32).sum() for name in floats]
    mx.eval(sums)
    for name, total in zip(floats, sums, strict=True):
        if not mx.isfinite(total).item():
            raise Unfit(f"{name} holds values that are no numbers")


def check_schemes(weights: Mapping[str, mx.array], plan: Plan, text_config: Mapping[str, Any]) -> None:
    """Whether packed projections are packed as the configuration says.

    Raises:
        Unfit: one is not, by name.
    """
    for name, shape in linear_shapes(text_config).items():
        scales = weights.get(f"{name}.scales")
        if scales is None:
            continue
        scheme = plan.named.get(name) or plan.default
        columns = weights[f"{name}.weight"].shape[-1]
        if scheme.mode != "affine":
            raise Unfit(f"{name} is packed in mode {scheme.mode}, and a drafter is read in affine only")
        if scales.shape[-1] * scheme.group_size != shape[-1] or 32 * columns != scheme.bits * shape[-1]:
            bits, group = 32 * columns / shape[-1], shape[-1] / scales.shape[-1]
            raise Unfit(f"{name} is packed at {bits:g}-bit group {group:g}, its config.json says {scheme}")


def stem(name: str) -> str:
    """A tensor's name without `.weight`: its projection."""
    return name.removesuffix(".weight")


def _check_plain(entry: TensorEntry, name: str, shape: tuple[int, ...]) -> None:
    if entry.shape != shape:
        raise Unfit(f"{name} has shape {list(entry.shape)}, this model needs {list(shape)}")
    if entry.dtype not in _FLOATS:
        raise Unfit(f"{name} has type {entry.dtype}")


def _check_packed(entries: Mapping[str, TensorEntry], name: str, shape: tuple[int, ...]) -> None:
    entry, scales = entries[name], entries[f"{stem(name)}.scales"]
    groups = scales.shape[-1] if scales.shape else 0
    bits, rest = divmod(32 * (entry.shape[-1] if entry.shape else 0), shape[-1])
    if (
        entry.dtype != "U32"
        or entry.shape[:-1] != shape[:-1]
        or scales.shape[:-1] != shape[:-1]
        or rest
        or not bits
        or not groups
        or shape[-1] % groups
    ):
        raise Unfit(f"{name} is packed for another shape than {list(shape)}")
    biases = entries.get(f"{stem(name)}.biases")
    if biases is None:
        raise Unfit(f"{name} is packed without biases, so not in affine mode, the only one a drafter is read in")
    if biases.shape != scales.shape:
        raise Unfit(f"{stem(name)}.biases has shape {list(biases.shape)}, its scales {list(scales.shape)}")
    for part in (scales, biases):
        if part.dtype not in _FLOATS:
            raise Unfit(f"{part.name} has type {part.dtype}")


def _check_fp8(entries: Mapping[str, TensorEntry], name: str, shape: tuple[int, ...], block: tuple[int, int]) -> None:
    entry, scale = entries[name], entries.get(name + fp8.SCALE)
    if scale is None:
        raise Unfit(f"{name} has type {entry.dtype} and no {name}{fp8.SCALE}")
    if entry.shape != shape:
        raise Unfit(f"{name} has shape {list(entry.shape)}, this model needs {list(shape)}")
    _check_plain(scale, name + fp8.SCALE, fp8.scale_shape(shape, block))


def _median(norm: mx.array) -> float:
    ordered = mx.sort(norm.astype(mx.float32))
    return cast(float, ordered[ordered.size // 2].item())


def _count(names: list[str]) -> str:
    return "1 tensor is" if len(names) == 1 else f"{len(names)} tensors are"


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
