"""What a pair takes in memory, from configuration and headers; nothing is loaded.

Everything is counted that the engine holds while it answers: target and head as they will lie in memory, keys and
values and recurrent states at the chosen context, one boundary of that length (what lets the next turn begin without
reading the chat again), and what a forward works with.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from engine.backend import Compute
from engine.checkpoint import fp8
from engine.checkpoint.folder import Checkpoint
from engine.checkpoint.kind import find_prefix, is_standalone, language_model
from engine.checkpoint.safetensors_header import TensorEntry
from engine.checkpoint.sizes import Sizes, sizes
from engine.hub.types import Need
from engine.quantize import Plan, scheme_of
from engine.request import MAX_BLOCK

_KV_STEP = 256  # positions by which mlx-lm's KVCache grows


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
        if name.endswith(fp8.SCALE):
            continue
        # Fused experts have no `.weight`; they are matrices once they are stacked.
        matrix = name if len(entry.shape) < 2 else f"{name.removesuffix('.weight')}.weight"
        scheme, _ = scheme_of(matrix, entry.shape, tensors, plan)
        count = prod(entry.shape)
        total += itemsize * count if scheme is None else scheme.nbytes(count, itemsize)
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
