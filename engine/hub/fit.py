"""Does a pair fit in memory? From configuration and headers, before anything is downloaded or loaded.

Everything is counted that the engine holds while it answers: target and head as they will lie in memory, keys and
values and recurrent states at the chosen context, one boundary of that length (what lets the next turn begin without
reading the chat again), and what a forward works with.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from engine.backend import Backend, Compute, Device, detect
from engine.checkpoint import fp8
from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.head import find_prefix, is_standalone
from engine.checkpoint.head_shapes import is_moe
from engine.checkpoint.locate import demo_head, demo_target, locate
from engine.checkpoint.safetensors_header import TensorEntry
from engine.checkpoint.sizes import Sizes, language_model, sizes
from engine.errors import CheckpointError, KnownError
from engine.hub.errors import size
from engine.hub.types import DoesNotFit, Fit, FitVerdict, Need
from engine.memory import free_memory
from engine.quantize import Plan
from engine.request import MAX_BLOCK, LoadOptions
from engine.session.budget import working_set

_KV_STEP = 256  # positions by which mlx-lm's KVCache grows
DEFAULT_CONTEXT = 8192


def need_of(
    target: Checkpoint,
    head: Checkpoint | None,
    *,
    context: int,
    compute: Compute = Compute.STORED,
    prefill_chunk: int = 2048,
    quantize_head: bool = True,
) -> Need:
    """What a pair takes.

    Args:
        target: looked at, here or on the hub.
        head: where the head's tensors are (may be the target); None counts none.
        quantize_head: whether a dense head is quantized at load.
        compute: how weights are held.

    Raises:
        CheckpointError: the configuration does not say a size.
    """
    config = target.text_config
    held = sizes({e.name: e for e in language_model(target.tensors)}, target.quantization())
    itemsize = _itemsize(target, compute)
    tensors = head_tensors(head) if head is not None else {}
    full, linear = _layers(config)
    cache = (full + bool(tensors)) * _kv_bytes(config, context, itemsize)
    recurrent = linear * _recurrent_bytes(config, itemsize)
    return Need(
        target=_resident(held, compute),
        head=_head_resident(tensors, head, compute, itemsize, quantize_head) if head is not None else 0,
        cache=cache,
        recurrent=recurrent,
        boundary=cache + recurrent,
        working=_working(config, prefill_chunk, itemsize),
    )


def head_tensors(head: Checkpoint) -> dict[str, TensorEntry]:
    """Of a head inside a target or alone, by stand-alone name; empty where there is none."""
    prefix = find_prefix(head)
    if prefix is None and not is_standalone(head):
        return {}
    return {n.removeprefix(prefix or ""): e for n, e in head.tensors.items() if n.startswith(prefix or "")}


def fit(need: Need, context: int, backend: Backend, free: int, head_reason: str = "") -> Fit:
    """Compare a need with what this device has now.

    Args:
        free: bytes that the system can give, see `free_memory`; 0 when unknown.
    """
    limit = backend.memory if backend.device is Device.CUDA else backend.wired_limit or free or working_set(backend)
    reason = f"this device has {size(limit)}"
    if backend.device is not Device.CUDA and free and free <= limit:
        limit, reason = free, f"{size(free)} are free"
    elif backend.wired_limit:
        reason = f"the system lends at most {size(limit)} to one program"
    return Fit(need, context, free, limit, reason, head_reason)


def fit_of(options: LoadOptions, context: int | None = None, *, held: int = 0) -> Fit:
    """The fit of what `options` names, which is on this computer.

    Args:
        context: tokens; None: 8192, or the model's own limit where that is less.
        held: bytes that become free before it is loaded, such as those of the model in use.

    Raises:
        CheckpointError: it cannot be found or read.
    """
    path, revision = locate(options.target) if options.target is not None else (demo_target(), "")
    target = open_folder(path, revision)
    head, why_none = target, ""
    try:
        if options.head:
            head_path, head_revision = locate(options.head)
            head = open_folder(head_path, head_revision)
        elif options.target is None:
            head = open_folder(demo_head())
        elif not head_tensors(target) and (target.path / "mtp" / "config.json").exists():
            head = open_folder(target.path / "mtp")
    except KnownError as error:
        why_none = error.what
    return fit_checkpoints(target, head, context, held=held, quantize_head=options.quantize_drafter, why_none=why_none)


def require_fit(options: LoadOptions) -> None:
    """Before a pair is read: refuse what needs more memory than there is now, unless it was asked for all the same.

    Raises:
        DoesNotFit: with the figures.
    """
    if options.load_anyway:
        return
    found = fit_of(options)
    if found.verdict is FitVerdict.NOT:
        raise DoesNotFit(
            f"{options.target or 'The demo pair'} does not fit in memory: it needs about {size(found.need.total)} at "
            f"{found.context:,} tokens of context, {found.limit_reason}.",
            todo=f"Close other programs to free {size(found.missing)}, choose a smaller model, or load it anyway.",
            fit=found,
        )


def fit_checkpoints(
    target: Checkpoint,
    head: Checkpoint | None,
    context: int | None = None,
    *,
    held: int = 0,
    quantize_head: bool | None = None,
    why_none: str = "",
) -> Fit:
    """The same for a pair that was looked at, here or on the hub.

    Raises:
        CheckpointError: the configuration does not say a size, or says one that is no number.
    """
    try:
        return _fit_checkpoints(target, head, context, held, quantize_head, why_none)
    except (TypeError, ValueError, ArithmeticError) as error:
        if head is not None and head is not target:  # a head that cannot be used does not stop its target
            why = f"A number in its config.json cannot be read: {error}."
            return fit_checkpoints(target, None, context, held=held, quantize_head=quantize_head, why_none=why)
        raise CheckpointError(
            f"A number in the config.json of {target.name} cannot be read: {error}.",
            todo="Download the model again, or choose another one.",
            detail=str(target.path),
        ) from error


def _fit_checkpoints(
    target: Checkpoint,
    head: Checkpoint | None,
    context: int | None,
    held: int,
    quantize_head: bool | None,
    why_none: str,
) -> Fit:
    config = target.text_config
    held_sizes = sizes({e.name: e for e in language_model(target.tensors)}, target.quantization())
    backend = detect(dense_bytes=held_sizes.dense_bf16, experts=is_moe(config))
    longest = int(config.get("max_position_embeddings", DEFAULT_CONTEXT))
    chosen = min(context or DEFAULT_CONTEXT, longest)
    if head is not None and not head_tensors(head):
        head, why_none = None, why_none or "There is no MTP head in it."
    need = need_of(
        target,
        head,
        context=chosen,
        compute=backend.compute,
        prefill_chunk=backend.prefill_chunk,
        quantize_head=quantize_head is not False,
    )
    return fit(need, chosen, backend, free_memory() + held, why_none)


def _resident(held: Sizes, compute: Compute) -> int:
    return {
        Compute.STORED: held.stored,
        Compute.FLOAT32: held.float32,
        Compute.DENSE_BF16: held.dense_bf16,
        Compute.DENSE_FLOAT32: held.dense_float32,
    }[compute]


def _itemsize(target: Checkpoint, compute: Compute) -> int:
    """Bytes of an activation: of float32 where the device or the checkpoint computes so, else of 16 bit."""
    norm = next((e for name, e in target.tensors.items() if name.endswith("norm.weight")), None)
    wide = compute in (Compute.FLOAT32, Compute.DENSE_FLOAT32) or (
        compute is Compute.STORED and norm is not None and norm.dtype == "F32"
    )
    return 4 if wide else 2


def _head_resident(
    tensors: Mapping[str, TensorEntry], head: Checkpoint, compute: Compute, itemsize: int, quantize: bool
) -> int:
    """A head takes the target's activation type. Dense ones are quantized at load, see `quantize_weights`."""
    held = sizes(tensors, head.quantization())
    if compute in (Compute.DENSE_BF16, Compute.DENSE_FLOAT32):
        return _resident(held, compute)
    if held.quantized or not quantize:
        return held.packed_bytes + itemsize * (held.companions + held.parameters - held.packed)
    plan = Plan.from_block(head.quantization(), find_prefix(head) or "")
    total = 0
    for name, entry in tensors.items():
        count = prod(entry.shape)
        scheme = plan.of(name.removesuffix(".weight"))
        if name.endswith(fp8.SCALE):
            continue
        if len(entry.shape) < 2 or scheme is None or entry.shape[-1] % scheme.group_size:
            total += itemsize * count
        else:
            total += count * scheme.bits // 8 + 2 * itemsize * count // scheme.group_size
    return total


def _layers(config: Mapping[str, Any]) -> tuple[int, int]:
    """How many layers attend over all positions, how many are recurrent."""
    layers = int(config.get("num_hidden_layers", 0))
    full = layers // max(1, int(config.get("full_attention_interval", 4)))
    return full, layers - full


def _kv_bytes(config: Mapping[str, Any], context: int, itemsize: int) -> int:
    """Keys and values of one layer."""
    heads = int(config.get("num_attention_heads", 1))
    head_dim = int(config.get("head_dim") or int(config.get("hidden_size", 0)) // heads)
    positions = -(-context // _KV_STEP) * _KV_STEP
    return 2 * int(config.get("num_key_value_heads", heads)) * head_dim * positions * itemsize


def _recurrent_bytes(config: Mapping[str, Any], itemsize: int) -> int:
    """State (float32) and convolution window of one Gated DeltaNet layer."""
    key_heads, value_heads = (int(config.get(f"linear_num_{kind}_heads", 0)) for kind in ("key", "value"))
    key_dim, value_dim = (int(config.get(f"linear_{kind}_head_dim", 0)) for kind in ("key", "value"))
    window = int(config.get("linear_conv_kernel_dim", 4)) - 1
    channels = 2 * key_heads * key_dim + value_heads * value_dim
    return 4 * value_heads * value_dim * key_dim + window * channels * itemsize


def _working(config: Mapping[str, Any], chunk: int, itemsize: int) -> int:
    """Activations of the widest layer over one prefill chunk, and float32 logits of the widest block."""
    hidden = int(config.get("hidden_size", 0))
    experts = int(config.get("num_experts_per_tok", 0) or 0) * int(config.get("moe_intermediate_size", 0) or 0)
    inner = max(int(config.get("intermediate_size", 0) or 0), experts)
    return chunk * (4 * hidden + 3 * inner) * itemsize + 4 * MAX_BLOCK * int(config.get("vocab_size", 0))
