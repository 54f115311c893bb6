"""Build the target from a checkpoint with mlx-lm's model code, layer by layer, with progress and cancel."""

from __future__ import annotations

import threading
from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn

from engine.backend import Backend
from engine.checkpoint.folder import Checkpoint
from engine.checkpoint.kind import require_target
from engine.errors import CheckpointError, LoadCancelled
from engine.target import compute
from engine.target.layouts import reading_all_layouts
from engine.target.model import Target

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all)."""


def load_target(checkpoint: Checkpoint, backend: Backend, progress: Progress, cancel: threading.Event) -> Target:
    """Load the weights on this thread.

    Raises:
        CheckpointError: another architecture, or tensors that do not fit the configuration, by name.
        LoadCancelled: `cancel` was set.
    """
    require_target(checkpoint)
    from mlx_lm.utils import _get_classes, load_model  # takes seconds to import; refusals above need none of it

    try:
        model, _ = load_model(
            checkpoint.path, lazy=True, strict=True, get_model_classes=reading_all_layouts(_get_classes)
        )
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, FileNotFoundError) as e:
        # mlx-lm names missing, surplus or misshapen parameters in the message.
        raise CheckpointError(
            f"The weights in {checkpoint.name} do not fit its configuration.",
            kept="The model that was open stays usable.",
            todo="Download the model again, or choose another one.",
            detail=str(e)[:4000],
        ) from e
    except RuntimeError as e:
        raise CheckpointError(
            f"The weights in {checkpoint.name} cannot be read.",
            kept="The model that was open stays usable.",
            todo="Download the model again.",
            detail=str(e)[:4000],
        ) from e
    compute.apply(model, backend.compute)
    _materialise(model, progress, cancel)
    return Target(model, checkpoint.text_config, backend)


def _materialise(model: nn.Module, progress: Progress, cancel: threading.Event) -> None:
    """Read the weights piece by piece, so that progress shows and cancel answers within a layer."""
    inner = model.language_model.model
    pieces = [inner.embed_tokens, *inner.layers, model]  # the model last: whatever is not evaluated yet
    sizes = [_nbytes(piece) for piece in pieces]
    total, done = sizes[-1], 0
    for piece, size in zip(pieces, sizes, strict=True):
        if cancel.is_set():
            raise LoadCancelled
        mx.eval(piece.parameters())
        done = total if piece is model else done + size
        progress(done, total)


def _nbytes(module: nn.Module) -> int:
    from mlx.utils import tree_flatten

    return sum(p.nbytes for _, p in tree_flatten(module.parameters()))
