"""Replies that are being written: events of the engine into items on screen and rows in the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app import figures
from app.chat.item import Item, caption, end_note
from app.errorcard import as_dict
from app.happenings import Envelope, Failed, Ids, Started
from app.models.loader import Numbers
from app.panel.meter import Meter, stats_dict
from app.store import Repository, StoreError
from app.store.values import State, StoredMessage
from app.worker import EngineThread
from engine import (
    ContextFull,
    ContextUse,
    EndReason,
    EngineInfo,
    Finished,
    Notice,
    PrefillProgress,
    Request,
    Round,
    Text,
)

FLUSH_MS = 400
"""The partial answer is on disk at least this often, so a crash costs at most half a second of it."""
RETRY_MS = 5000


@dataclass(slots=True)
class Live:
    """One reply that is queued or being written."""

    ids: Ids
    item: Item
    seed: int
    model: dict[str, Any] | None = None
    notices: list[dict[str, str]] = field(default_factory=list)
    dirty: bool = False


class Generations(QObject):
    """Several replies may wait; the engine writes one at a time. All of this runs on the GUI thread."""

    item_changed = Signal(int)
    """A message's item changed."""
    live_changed = Signal()
    """A reply began or ended."""
    finished = Signal(int, int)
    """(conversation, message): a reply ended, however it ended."""
    store_failed = Signal(dict)
    store_recovered = Signal()
    bug = Signal(str)
    alarm = Signal(str)
    """The head's drafts are accepted far less than expected, or no longer."""

    def __init__(
        self, thread: EngineThread, store: Repository, meter: Meter, numbers: Numbers, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._thread = thread
        self._store = store
        self._meter = meter
        self._numbers = numbers
        self._live: dict[int, Live] = {}
        self._unsaved: list[Callable[[], None]] = []
        self._failing = False
        self.dropped = 0
        """Events of generations that are over. Counted for the tests."""
        self._flush = QTimer(self)
        self._flush.setInterval(FLUSH_MS)
        self._flush.timeout.connect(self.flush)
        self._retry = QTimer(self)
        self._retry.setInterval(RETRY_MS)
        self._retry.timeout.connect(self.save_again)

    # asking

    def live_conversations(self) -> set[int]:
        return {live.ids.conversation for live in self._live.values()}

    def item_of(self, message: int) -> Item | None:
        """The item of a reply that is being written: ahead of what the store has."""
        return next((live.item for live in self._live.values() if live.item.id == message), None)

    def busy(self, conversation: int) -> bool:
        return conversation in self.live_conversations()

    def unsaved(self) -> int:
        """Finished replies that the disk would not take yet."""
        return len(self._unsaved)

    # doing

    def start(self, message: StoredMessage, conversation_uid: str, request: Request) -> Item:
        """Queue a reply whose row is in the store already."""
        ids = Ids(self._numbers.next(), message.conversation_id, message.id, conversation_uid, message.uid)
        item = Item(
            id=message.id,
            role="assistant",
            content="",
            state=State.STREAMING,
            branch=message.branch,
            branches=message.branches,
            waiting="Waiting for the model…",
        )
        self._live[ids.generation] = Live(ids, item, request.seed)
        self._flush.start()
        self._thread.generate(ids, request)
        self.live_changed.emit()
        return item

    def stop(self, conversation: int) -> None:
        """Ask this chat's reply to end. What was written stays."""
        for live in self._live.values():
            if live.ids.conversation == conversation:
                self._thread.stop(live.ids.generation)
                if not live.item.content:
                    live.item.waiting = "Stopping…"
                    self.item_changed.emit(live.item.id)

    @Slot(list)
    def on_events(self, batch: list[Envelope]) -> None:
        touched: dict[int, Live] = {}
        for envelope in batch:
            live = self._live.get(envelope.ids.generation)
            if live is None:
                self.dropped += 1
                continue
            if self._take(live, envelope):
                touched[live.item.id] = live
        for number in touched:
            self.item_changed.emit(number)

    def _take(self, live: Live, envelope: Envelope) -> bool:
        """One event. Returns whether the item is to be drawn again."""
        event, item = envelope.event, live.item
        if isinstance(event, Round):
            self._meter.round(event)
            return False
        if isinstance(event, Text):
            item.waiting = ""
            if event.channel == "answer":
                item.content += event.text
            else:
                item.reasoning += event.text
            live.dirty = True
            return True
        if isinstance(event, PrefillProgress):
            self._meter.prefill(event)
            item.waiting = prefill_text(event)
            return True
        if isinstance(event, ContextUse):
            self._meter.context(event)
            return False
        if isinstance(event, Notice):
            self._meter.note(event)
            if event.kind == "width":
                return False  # one at every change: the panel and the log have them
            live.notices.append({"kind": event.kind, "text": event.text})
            if event.kind == "drafter":
                self.alarm.emit(event.text)
            return False
        if isinstance(event, Started):
            self._meter.begin()
            live.model = model_dict(event.info)
            item.waiting = "Reading the prompt…"
            return True
        if isinstance(event, Finished):
            self._on_finished(live, event)
            return True
        if isinstance(event, Failed):
            self._on_failed(live, event)
            return True
        return False

    def _on_finished(self, live: Live, event: Finished) -> None:
        item = live.item
        self._meter.finish(event.stats)
        stats = stats_dict(event.stats)
        item.content, item.reasoning = event.answer, event.reasoning
        notices = [notice["text"] for notice in live.notices]
        item.caption, item.caption_tip = caption(stats, event.seed, event.reason, notices)
        item.end_note = end_note(event.reason)
        item.can_check = bool(event.tokens)
        item.figures = stats
        self._end(
            live,
            State.STOPPED if event.reason is EndReason.STOPPED else State.COMPLETE,
            end_reason=str(event.reason),
            segments=event.segments,
            last_token=event.tokens[-1] if event.tokens else None,
            figures=stats,
        )

    def _on_failed(self, live: Live, event: Failed) -> None:
        item = live.item
        if event.error is None and not event.trace:
            self._end(live, State.STOPPED, end_reason="stopped")
            return
        if event.error is not None:
            item.error = as_dict(event.error)
            if isinstance(event.error, ContextFull) and not item.content:
                # The same message would not fit again; what helps is a shorter one.
                item.error["kind"] = "context, too many turns" if event.error.can_drop else "context"
        else:
            item.error = {
                "what": "Pacenote made a mistake while writing this reply.",
                "kept": "What was written so far is kept." if item.content else "Your message is saved.",
                "todo": "Press Regenerate. If it happens again, report the detail.",
                "detail": event.trace,
            }
            self.bug.emit(event.trace)
        self._end(live, State.FAILED, end_reason="failed", error=item.error)

    def _end(self, live: Live, state: State, **more: Any) -> None:
        item = live.item
        item.state, item.waiting = state, ""
        del self._live[live.ids.generation]
        if not self._live:
            self._flush.stop()
        content, reasoning, notices, model = item.content, item.reasoning, live.notices, live.model

        def save() -> None:
            self._store.finish_reply(item.id, state, content, reasoning, notices=notices, model=model, **more)

        self._save(save)
        self.live_changed.emit()
        self.finished.emit(live.ids.conversation, item.id)

    # saving

    @Slot()
    def flush(self) -> None:
        """Put the partial answers on disk."""
        for live in self._live.values():
            if live.dirty:
                try:
                    self._store.flush_reply(live.item.id, live.item.content, live.item.reasoning)
                    live.dirty = False
                    self._recovered()
                except StoreError as error:
                    self._fail(error)

    def _save(self, save: Callable[[], None]) -> None:
        try:
            save()
            self._recovered()
        except StoreError as error:
            # Kept in memory and tried again: a full disk must not cost a finished reply.
            self._unsaved.append(save)
            self._retry.start()
            self._fail(error)

    @Slot()
    def save_again(self) -> None:
        """Try what could not be saved."""
        waiting, self._unsaved = self._unsaved, []
        for save in waiting:
            self._save(save)
        if not self._unsaved:
            self._retry.stop()
            self._recovered()

    def _fail(self, error: StoreError) -> None:
        # Told once, not every 400 ms.
        if not self._failing:
            self._failing = True
            told = as_dict(error)
            told["kept"] = "The reply is kept in this window and saved as soon as there is room."
            # This card has a button for it; others that tell of the same failure have none.
            told["todo"] = told["todo"].replace("try again", "press Save again")
            self.store_failed.emit(told)

    def _recovered(self) -> None:
        if self._failing and not self._unsaved:
            self._failing = False
            self.store_recovered.emit()

    def close(self) -> None:
        """At quit, after the engine's last events came: save what is there."""
        self.flush()
        self.save_again()
        self._flush.stop()
        self._retry.stop()


def prefill_text(event: PrefillProgress) -> str:
    """One line about the prompt being read."""
    text = (
        f"Reading the prompt: {event.done:,} of {figures.count(event.total, 'token')}, {figures.seconds(event.seconds)}"
    )
    if event.restored:
        text = f"{text}, {event.restored:,} kept from before"
    left = event.remaining or 0.0
    return f"{text}, about {figures.seconds(left)} left" if left >= 1 else text


def model_dict(info: EngineInfo) -> dict[str, Any]:
    """What is stored about the model that wrote a reply."""
    return {
        "name": info.name,
        "revision": info.revision,
        "weights_hash": info.weights_hash,
        "quantization": info.quantization,
        "drafter": info.drafter.representation if info.drafter is not None else None,
        "exactness": str(info.verdict.state),
        "kernel": info.verdict.kernel,
        "device": info.device,
    }
