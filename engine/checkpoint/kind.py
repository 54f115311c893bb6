"""What a checkpoint is: a model of the family, a head that stands alone, or neither.

A head is recognised by its tensors, never by `mtp_num_hidden_layers` in a config: most 4-bit conversions
of the target keep that line and hold no head.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from engine.checkpoint.folder import Checkpoint
from engine.checkpoint.safetensors_header import TensorEntry
from engine.errors import CheckpointError

MODEL_TYPES = ("qwen3_5", "qwen3_5_moe", "qwen3_5_text", "qwen3_5_moe_text")
"""`model_type` values of the family. Qwen3.6 and 3.8 use the same ones."""
_LAYER = re.compile(r"(?:^|\.)layers\.(\d{1,9})\.")

PREFIXES = ("mtp.", "language_model.mtp.", "model.mtp.")
"""Prefixes under which a head lies inside a target checkpoint. Such tensors are in HF convention (norms - 1)."""


def prefix_of(names: Iterable[str]) -> str | None:
    """The prefix under which a head lies among a target's tensors, or None."""
    present = list(names)
    return next((p for p in PREFIXES if any(name.startswith(p) for name in present)), None)


def find_prefix(checkpoint: Checkpoint) -> str | None:
    """The same for a checkpoint."""
    return prefix_of(checkpoint.tensors)


def is_standalone(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a stand-alone head: `fc.weight` and no prefix."""
    return "fc.weight" in checkpoint.tensors


def language_model(tensors: Mapping[str, TensorEntry]) -> Iterator[TensorEntry]:
    """Without MTP head and vision."""
    for name, entry in tensors.items():
        if ".mtp." not in f".{name}" and "visual" not in name and "vision" not in name:
            yield entry


def require_target(checkpoint: Checkpoint) -> None:
    """Raises CheckpointError for what cannot be a target: another architecture, or fewer layers than it says."""
    if checkpoint.model_type not in MODEL_TYPES:
        raise CheckpointError(
            f"{checkpoint.name} is {what_it_is(checkpoint.model_type)}.",
            kept="The model that was open stays usable.",
            todo="Pacenote runs the Qwen3.5 family (3.5, 3.6, 3.8); choose one of those.",
            detail=str(checkpoint.path),
        )
    # Before anybody builds them: one line of a configuration can ask for 2^40 layers.
    said, held = checkpoint.text_config.get("num_hidden_layers"), _layers(checkpoint)
    if isinstance(said, int | float) and said > held:
        raise CheckpointError(
            f"The config.json of {checkpoint.name} says {said:,} layers; its tensors make {held}.",
            kept="The model that was open stays usable.",
            todo="Download the model again, or choose another one.",
            detail=str(checkpoint.path),
        )


def _layers(checkpoint: Checkpoint) -> int:
    """How many layers the language model's tensors make: the highest index and one."""
    names = (entry.name for entry in language_model(checkpoint.tensors))
    return 1 + max((int(match[1]) for name in names if (match := _LAYER.search(name))), default=-1)


def is_head_type(model_type: str) -> bool:
    """Whether a `model_type` is one of stand-alone heads."""
    return model_type.endswith("_mtp")


def what_it_is(model_type: str) -> str:
    if is_head_type(model_type):
        return "an MTP head, not a model"
    return f"a {model_type} model" if model_type else "a model of a type that its config.json does not name"
