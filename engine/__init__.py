"""The engine: exact speculative decoding for Qwen3.5-family models on MLX.

This is the whole public surface. `app/` and the terminal import from here and nowhere deeper.
"""

from engine.engine import Engine, load
from engine.errors import CheckpointError, ContextFull, KnownError, LoadCancelled, OutOfMemory
from engine.events import (
    DrafterInfo,
    EndReason,
    EngineInfo,
    Event,
    ExactnessState,
    Finished,
    LoadProgress,
    Notice,
    PrefillProgress,
    ReplyStats,
    Round,
    Text,
    Verdict,
)
from engine.request import MAX_BLOCK, LoadOptions, Message, Request, Sampler, Segment, Speculation

__all__ = [
    "MAX_BLOCK",
    "CheckpointError",
    "ContextFull",
    "DrafterInfo",
    "EndReason",
    "Engine",
    "EngineInfo",
    "Event",
    "ExactnessState",
    "Finished",
    "KnownError",
    "LoadCancelled",
    "LoadOptions",
    "LoadProgress",
    "Message",
    "Notice",
    "OutOfMemory",
    "PrefillProgress",
    "ReplyStats",
    "Request",
    "Round",
    "Sampler",
    "Segment",
    "Speculation",
    "Text",
    "Verdict",
    "load",
]
