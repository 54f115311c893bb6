"""What comes back from the engine's thread: the engine's events and ours, each with whose it is."""

from __future__ import annotations

from dataclasses import dataclass

from engine import EngineInfo, Event, Finished, KnownError, LoadProgress, MemoryUse, PrefillProgress, Receipt, Text


@dataclass(frozen=True, slots=True)
class Ids:
    """Which generation something belongs to. conversation and message are 0 for loading."""

    generation: int
    conversation: int = 0
    message: int = 0
    conversation_uid: str = ""
    message_uid: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model is ready. The former one was closed. before, after: the load and that, None when nobody measured."""

    info: EngineInfo
    before: MemoryUse | None = None
    after: MemoryUse | None = None


@dataclass(frozen=True, slots=True)
class Unloaded:
    """No model is loaded any more. before, after: as above."""

    before: MemoryUse | None = None
    after: MemoryUse | None = None


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """Loading failed. `current` is the model that is still usable, None when there is none."""

    error: KnownError | None
    trace: str
    current: EngineInfo | None
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """The engine took up this generation."""

    info: EngineInfo


@dataclass(frozen=True, slots=True)
class Failed:
    """A generation ended without `Finished`. error: for the user; trace: of a bug, "" for a KnownError.

    Both empty: it was stopped while it waited its turn.
    """

    error: KnownError | None
    trace: str


Happening = Event | LoadProgress | Loaded | Unloaded | LoadFailed | Started | Failed | Receipt
TERMINAL = (Finished, Failed, Loaded, Unloaded, LoadFailed, Receipt)


@dataclass(frozen=True, slots=True)
class Envelope:
    """An event and whose it is."""

    ids: Ids
    event: Happening


def coalesce(envelopes: list[Envelope]) -> list[Envelope]:
    """Join neighbouring texts of one generation and channel; of neighbouring progress keep the last. Order is kept."""
    result: list[Envelope] = []
    parts: list[str] = []

    def flush() -> None:
        if len(parts) > 1:
            last = result[-1]
            assert isinstance(last.event, Text)  # only texts are collected
            result[-1] = Envelope(last.ids, Text("".join(parts), last.event.channel))
        parts.clear()

    for envelope in envelopes:
        event, last = envelope.event, result[-1] if result else None
        before = last.event if last is not None and last.ids.generation == envelope.ids.generation else None
        if isinstance(event, Text) and isinstance(before, Text) and event.channel == before.channel:
            parts.append(event.text)
            continue
        flush()
        if isinstance(event, PrefillProgress | LoadProgress) and type(before) is type(event):
            result[-1] = envelope
            continue
        result.append(envelope)
        if isinstance(event, Text):
            parts.append(event.text)
    flush()
    return result
