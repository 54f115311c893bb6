"""Load a pair: target, head, exactness verdict, costs. Everything happens on the calling thread."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from engine import backend as backends
from engine.backend import Compute
from engine.calibrate import Measured, measure, sample
from engine.chat.tokenizer import Tokenizer
from engine.checkpoint import fp8
from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.head import HeadTensors, read_head
from engine.checkpoint.head_shapes import is_moe
from engine.checkpoint.kind import language_model
from engine.checkpoint.locate import demo_target, head_checkpoint, locate
from engine.checkpoint.sizes import sizes
from engine.drafter import Drafter
from engine.drafter.head import build_head
from engine.errors import CheckpointError, KnownError, LoadCancelled
from engine.events import DrafterInfo, EngineInfo, ExactnessState, LoadProgress, Verdict
from engine.exactness import cache, ladder
from engine.hub.fit import require_fit
from engine.quantize import Plan, Quantized, Scheme, quantize_weights, quantized_nbytes
from engine.request import LoadOptions
from engine.target import Target, compute
from engine.target.load import load_target

SWITCH = "PACENOTE_MTP_QUANTIZE_DRAFTER"
"""Environment variable: 0 keeps the drafter dense. A setting given by the caller wins."""

Report = Callable[[LoadProgress], None]


@dataclass
class Pair:
    """A loaded pair. drafter is None when there is no usable head; info says why.

    measured: what its rounds cost here. None when there is nothing to choose between.
    """

    target: Target
    drafter: Drafter | None
    tokenizer: Tokenizer
    info: EngineInfo
    measured: Measured | None


def load_pair(options: LoadOptions, report: Report, cancel: threading.Event) -> Pair:
    """Load what the options name.

    A head that cannot be used does not stop the target from loading: the reason goes into `EngineInfo`.

    Raises:
        KnownError: the target cannot be used, with what to do.
        LoadCancelled: `cancel` was set.
    """
    started = perf_counter()
    report(LoadProgress("Looking at the model"))
    path, revision = locate(options.target) if options.target is not None else (demo_target(), "")
    checkpoint = open_folder(path, revision)
    require_fit(options)
    parameters = _count_parameters(checkpoint)
    backend = backends.detect(dense_bytes=2 * parameters, experts=is_moe(checkpoint.text_config))
    backends.prepare(backend)
    tokenizer = Tokenizer.load(path)

    def weights_read(done: int, total: int) -> None:
        report(LoadProgress("Reading weights", done, total))

    target = load_target(checkpoint, backend, weights_read, cancel)
    report(LoadProgress("Looking for the MTP head"))
    drafter, why_none = None, ""
    try:
        drafter = load_drafter(checkpoint, target, options)
    except KnownError as e:
        why_none = str(e)
    if cancel.is_set():
        raise LoadCancelled
    weights_hash = checkpoint.fingerprint()
    context_length = int(checkpoint.text_config.get("max_position_embeddings", 32768))
    verdict = _decide(target, drafter, options, weights_hash, context_length, report, cancel)
    measured = None
    if drafter is not None and verdict.widths and not cancel.is_set():
        report(LoadProgress("Measuring speed"))
        measured = measure(target, drafter, verdict.widths, sample(tokenizer))
    if cancel.is_set():
        raise LoadCancelled
    info = EngineInfo(
        name=_name(options, checkpoint),
        path=str(path),
        parameters=parameters,
        target_bytes=_resident_bytes(target.model),
        quantization=_quantization(checkpoint),
        context_length=context_length,
        device=f"{backend.name} ({backend.architecture})",
        policy=backend.words(),
        weights_hash=weights_hash,
        revision=revision,
        drafter=drafter.info if drafter else None,
        drafter_reason=why_none,
        verdict=verdict,
        load_seconds=perf_counter() - started,
        supports_thinking=tokenizer.supports_thinking,
        classic_ms=measured.costs.rounds[1] if measured else 0.0,
    )
    return Pair(target, drafter, tokenizer, info, measured)


def quantize_switch(asked: bool | None) -> tuple[bool, str]:
    """Whether to quantize the drafter at load, and who decided: setting, environment or default."""
    if asked is not None:
        return asked, "setting"
    value = os.environ.get(SWITCH)
    if value is not None:
        return value.strip().lower() not in ("0", "false", "off", "no"), f"environment ({SWITCH}={value})"
    return True, "default"


def load_drafter(checkpoint: Checkpoint, target: Target, options: LoadOptions) -> Drafter:
    tensors = read_head(head_checkpoint(checkpoint, options), checkpoint.text_config)
    wanted, decided_by = quantize_switch(options.quantize_drafter)
    weights = tensors.weights
    skipped: tuple[str, ...] = ()
    if tensors.packed:
        decided_by = "checkpoint"
    try:
        if wanted and not tensors.packed:
            quantized = _quantized(tensors)
            weights = quantized.weights
            skipped = tuple(f"{name}: {reason}" for name, reason in quantized.skipped)
        head = build_head(checkpoint.text_config, weights, tensors.plan)
    except ValueError as e:
        raise CheckpointError(
            "The MTP head does not fit this model.",
            kept="The model works without it, at classic speed.",
            todo="Choose the head that was made for this model.",
            detail=str(e)[:4000],
        ) from e
    packed = any(name.endswith(".scales") for name in weights)
    # Only now: quantization must see the checkpoint's own type, so that scales and biases keep it.
    compute.apply(head, target.backend.compute)
    head.set_dtype(target.dtype)
    mx.eval(head.parameters())
    dtype = str(target.dtype).removeprefix("mlx.core.")
    words = representation(weights, tensors.plan) if packed else f"dense {dtype}"
    if packed and target.backend.compute in (Compute.DENSE_BF16, Compute.DENSE_FLOAT32):
        words += f", unpacked to {dtype} on this device"
    info = DrafterInfo(
        source=tensors.source,
        representation=words,
        decided_by=decided_by,
        bytes=_resident_bytes(head),
        dense_bytes=_dense_bytes(tensors),
        skipped=skipped,
        packed_bytes=quantized_nbytes(tensors.weights, tensors.plan),
        hash=tensors.hash,
    )
    return Drafter(head, target, info)


def _quantized(tensors: HeadTensors) -> Quantized:
    try:
        return quantize_weights(tensors.weights, tensors.plan)
    except ValueError as e:
        raise CheckpointError(
            "The MTP head cannot be quantized as its config.json says.",
            kept="The model works without it, at classic speed.",
            todo="Switch quantization of the drafter off to use the head as it is.",
            detail=str(e),
        ) from e


def representation(weights: Mapping[str, mx.array], plan: Plan) -> str:
    """The schemes of packed weights in words, the one with the most projections first."""
    packed = [name.removesuffix(".scales") for name in weights if name.endswith(".scales")]
    schemes = Counter(str(plan.named.get(projection) or plan.default) for projection in packed)
    return ", ".join(scheme for scheme, _ in schemes.most_common())


def _dense_bytes(tensors: HeadTensors) -> int:
    """Bytes of the head in 16 bit, whatever it is packed as."""
    total = 0
    for name, w in tensors.weights.items():
        if name.endswith((".scales", ".biases")):
            continue
        projection = name.removesuffix(".weight")
        if (scales := tensors.weights.get(f"{projection}.scales")) is not None:
            total += 2 * scales.size * (tensors.plan.named.get(projection) or tensors.plan.default).group_size
        else:
            total += w.nbytes
    return total


def _decide(
    target: Target,
    drafter: Drafter | None,
    options: LoadOptions,
    weights_hash: str,
    context_length: int,
    report: Report,
    cancel: threading.Event,
) -> Verdict:
    if drafter is None:
        return Verdict(ExactnessState.NOT_RUN, "", "There is no MTP head, so there is nothing to check.")
    report(LoadProgress("Checking exactness"))
    widths = tuple(range(2, options.max_block + 1))
    key = cache.verdict_key(weights_hash, target.backend, target.dtype, widths)
    decision = None if options.probe_again else cache.recall(key)
    if decision is not None and ladder.holds(target, decision, widths):
        ladder.engage(target, decision.engaged)
    else:
        decision = ladder.decide(target, widths, context_length, cancel)
        cache.remember(key, decision)
    if options.allow_inexact:
        decision = ladder.allow_inexact(decision, target, widths)
    return decision.verdict


def _resident_bytes(module: nn.Module) -> int:
    return sum(p.nbytes for _, p in tree_flatten(module.parameters()))


def _name(options: LoadOptions, checkpoint: Checkpoint) -> str:
    if options.target is None:
        return "Pacenote demo"
    return options.target if checkpoint.revision else Path(options.target).expanduser().resolve().name


def _quantization(checkpoint: Checkpoint) -> str:
    if (block := checkpoint.quantization()) is not None:
        return str(Scheme.from_block(block))
    if any(entry.dtype == fp8.DTYPE for entry in checkpoint.tensors.values()):
        return "fp8 in blocks, unpacked to bfloat16"
    return "none"


def _count_parameters(checkpoint: Checkpoint) -> int:
    """Of the language model alone, without MTP and vision. Packed tensors count what they stand for."""
    tensors = {entry.name: entry for entry in language_model(checkpoint.tensors)}
    return sizes(tensors, checkpoint.quantization()).parameters
