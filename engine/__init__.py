"""The engine: exact speculative decoding for Qwen3.5-family models on MLX.

This is the whole public surface. `app/` and the terminal import from here and nowhere deeper.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.bench.design import blocks
from engine.bench.statistics import LEAST_PAIRS, Ratio, noise_band, speed_ratio, spread
from engine.errors import CheckpointError, ContextFull, KnownError, LoadCancelled, OutOfMemory
from engine.events import (
    ContextUse,
    DrafterInfo,
    EndReason,
    EngineInfo,
    Event,
    ExactnessState,
    Finished,
    LoadProgress,
    Notice,
    PrefillProgress,
    Receipt,
    ReplyStats,
    Round,
    Text,
    Verdict,
)
from engine.hub.errors import DiskFull, HubError
from engine.hub.hub import Hub
from engine.hub.rate import coarse_duration
from engine.hub.types import (
    Begun,
    CataloguePair,
    DoesNotFit,
    DownloadProgress,
    Fit,
    FitVerdict,
    Found,
    LocalModel,
    Need,
    Step,
    Unusable,
)
from engine.memory import MemoryUse, free_memory, memory_use
from engine.request import MAX_BLOCK, LoadOptions, Message, Request, Sampler, Segment, Speculation, WhenFull
from engine.selftest.check import Check, Finding, Skip
from engine.selftest.launch import own_command
from engine.selftest.report import Report, text_of
from engine.telemetry.environment import conditions, environment
from engine.telemetry.event_log import EventLog
from engine.telemetry.export import Exported, ExportKind, export_logs
from engine.telemetry.log import SessionLog
from engine.telemetry.reader import Generation as LoggedReply
from engine.telemetry.reader import read_files as read_logs
from engine.telemetry.reader import with_older as log_files
from engine.telemetry.schema import read_stats
from engine.telemetry.stats import STAGES, StatsBuilder, merge, stage_shares
from engine.telemetry.why import Part, speed_reason, time_parts

if TYPE_CHECKING:
    from engine.engine import Engine

__all__ = [
    "LEAST_PAIRS",
    "MAX_BLOCK",
    "STAGES",
    "Begun",
    "CataloguePair",
    "Check",
    "CheckpointError",
    "ContextFull",
    "ContextUse",
    "DiskFull",
    "DoesNotFit",
    "DownloadProgress",
    "DrafterInfo",
    "EndReason",
    "Engine",
    "EngineInfo",
    "Event",
    "EventLog",
    "ExactnessState",
    "ExportKind",
    "Exported",
    "Finding",
    "Finished",
    "Fit",
    "FitVerdict",
    "Found",
    "Hub",
    "HubError",
    "KnownError",
    "LoadCancelled",
    "LoadOptions",
    "LoadProgress",
    "LocalModel",
    "LoggedReply",
    "MemoryUse",
    "Message",
    "Need",
    "Notice",
    "OutOfMemory",
    "Part",
    "PrefillProgress",
    "Ratio",
    "Receipt",
    "ReplyStats",
    "Request",
    "Round",
    "Sampler",
    "Segment",
    "SessionLog",
    "Skip",
    "Speculation",
    "StatsBuilder",
    "Step",
    "Text",
    "Unusable",
    "Verdict",
    "WhenFull",
    "blocks",
    "coarse_duration",
    "conditions",
    "environment",
    "export_logs",
    "free_memory",
    "load",
    "log_files",
    "memory_use",
    "merge",
    "noise_band",
    "own_command",
    "read_logs",
    "read_stats",
    "self_test",
    "self_test_text",
    "speed_ratio",
    "speed_reason",
    "spread",
    "stage_shares",
    "time_parts",
]


def load(
    options: LoadOptions | None = None,
    progress: Callable[[LoadProgress], None] | None = None,
    cancel: threading.Event | None = None,
) -> Engine:
    """Load a target and its MTP head. Call it on the thread that will generate: MLX streams are bound to it.

    Args:
        options: what to load; the bundled demo pair when None.
        progress: called on this thread with what is being done.
        cancel: set it from another thread to stop.

    Raises:
        KnownError: the target cannot be used; says what to do. A head that cannot be used is no error: see
            `EngineInfo.drafter_reason`.
        LoadCancelled: `cancel` was set.
    """
    # Imported here: MLX and mlx-lm take seconds, and a window should be up before them.
    from engine.engine import load_engine

    return load_engine(options or LoadOptions(), progress or (lambda _: None), cancel or threading.Event())


def self_test(arguments: Sequence[str]) -> int:
    """`pacenote doctor --self-test` with these arguments, for a program of another name. Returns its exit status."""
    # Imported here: a window does not need the commands.
    from engine.cli.main import main

    return main(["doctor", "--self-test", *arguments])


def self_test_text(told: Mapping[str, object]) -> str:
    """The report for people of one that was written as JSON.

    Raises:
        ValueError: it is something else.
    """
    return text_of(Report.from_json(told))


def __getattr__(name: str) -> object:
    """`engine.Engine`, imported when it is asked for, for the same reason."""
    if name == "Engine":
        from engine.engine import Engine

        return Engine
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
