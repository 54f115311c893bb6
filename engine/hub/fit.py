"""Does a pair fit in memory? What it needs, against what is free now; before anything is downloaded or loaded."""

from __future__ import annotations

from engine.backend import Backend, Device, detect
from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.head_shapes import is_moe
from engine.checkpoint.kind import language_model, require_target
from engine.checkpoint.locate import demo_target, head_checkpoint, locate
from engine.checkpoint.sizes import sizes
from engine.errors import CheckpointError, KnownError
from engine.hub.errors import size
from engine.hub.need import head_tensors, need_of
from engine.hub.types import DoesNotFit, Fit, FitVerdict, Need
from engine.memory import free_memory
from engine.request import LoadOptions
from engine.session.budget import working_set

DEFAULT_CONTEXT = 8192


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
        head = head_checkpoint(target, options)
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
    require_target(target)
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
