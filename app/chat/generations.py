"""Replies that are being written: events of the engine into items on screen and rows in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app import figures
from app.chat.item import Item, caption, end_note, from_stored
from app.chat.live import Live, refusal, state_before
from app.errorcard import as_dict
from app.happenings import Envelope, Failed, Ids, Started
from app.models.loader import Numbers
from app.panel.meter import Meter
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
        self.marked = False
        """Whether the speculation view is open: then a round changes what is on screen, not only a text."""
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

    def start(
        self,
        message: StoredMessage,
        conversation_uid: str,
        request: Request,
        *,
        before: StoredMessage | None = None,
    ) -> Item:
        """Queue a reply whose row is in the store already. before: what it was, when it goes on."""
        ids = Ids(self._numbers.next(), message.conversation_id, message.id, conversation_uid, message.uid)
        item = Item(
            id=message.id,
            role="assistant",
            content=message.content,
            reasoning=message.reasoning,
            state=State.STREAMING,
            branch=message.branch,
            branches=message.branches,
            waiting="Waiting for the model…",
        )
        trace = self._store.trace(message.id) if request.begun else None
        live = Live(ids, item, request.seed, before, stored_trace=trace)
        self._live[ids.generation] = live
        self._flush.start()
        self._thread.generate(ids, request)
        self.live_changed.emit()
        return item

    def stop(self, conversation: int) -> None:
        """Ask this chat's reply to end. What was written stays."""
        for live in self._live.values():
            if live.ids.conversation == conversation:
                self._thread.stop(live.ids.generation)
                if live.item.waiting or not live.item.content:
                    live.item.waiting = "Stopping…"
                    self.item_changed.emit(live.item.id)

    @Slot(object)
    def on_events(self, batch: list[Envelope]) -> None:
        touched: dict[int, Live] = {}
        for envelope in batch:
            live = self._live.get(envelope.ids.generation)
            if live is None:
                self.dropped += 1
                continue
            if self._take(live, envelope):
                touched[live.item.id] = live
        for number, live in touched.items():
            live.tell()
            self.item_changed.emit(number)
        for live in self._live.values():
            live.pack_more()

    def _take(self, live: Live, envelope: Envelope) -> bool:
        """One event. Returns whether the item is to be drawn again."""
        event, item = envelope.event, live.item
        if live.refused and isinstance(event, Round | Text | PrefillProgress):
            return False  # of a reply that does not go on
        if isinstance(event, Round):
            self._meter.round(event)
            live.trace.add(event)
            return self.marked
        if isinstance(event, Text):
            item.waiting = ""
            live.hear(event)
            if live.refused:
                self._thread.stop(live.ids.generation)
            return True
        live.tell()  # what follows may end the reply
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
            live.dirty = True
            item.waiting = "Reading the prompt…"
            if live.before is not None:
                live.refused = refusal(live.before, event.info.weights_hash, event.info.name)
                if live.refused:
                    self._thread.stop(live.ids.generation)
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
        if live.before is not None and (live.refused or live.fell_short(event)):
            self._as_before(live, live.before)
            return
        live.finish(event)
        self._meter.finish(event.stats)
        stats = live.figures(event.stats)
        notices = [notice["text"] for notice in live.notices]
        item.caption, item.caption_tip = caption(stats, event.seed, event.reason, notices)
        item.end_reason, item.end_note = str(event.reason), end_note(event.reason)
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

    def _as_before(self, live: Live, before: StoredMessage) -> None:
        """A reply that was to go on did not: it is what it was, to the last token."""
        was, item = from_stored(before), live.item
        for name in ("content", "reasoning", "caption", "caption_tip", "figures", "can_check", "end_reason", "error"):
            setattr(item, name, getattr(was, name))
        item.end_note = "\n".join(text for text in (was.end_note, live.refused) if text)
        live.model = before.reply.model if before.reply is not None else None
        self._end(live, state_before(before), end_reason=was.end_reason or None, error=was.error, **live.as_before())

    def _on_failed(self, live: Live, event: Failed) -> None:
        item = live.item
        stopped = event.error is None and not event.trace
        if live.before is not None and (stopped or live.refused):
            self._as_before(live, live.before)
            return
        if stopped:
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
                "todo": "Press Continue or Regenerate. If it happens again, report the detail.",
                "detail": event.trace,
            }
            self.bug.emit(event.trace)
        self._end(live, State.FAILED, end_reason="failed", error=item.error, **live.as_before())

    def _end(self, live: Live, state: State, **more: Any) -> None:
        item = live.item
        item.state, item.waiting = state, ""
        del self._live[live.ids.generation]
        if not self._live:
            self._flush.stop()
        content, reasoning, notices, model = item.content, item.reasoning, live.notices, live.model
        trace = live.packed_trace()

        def save() -> None:
            self._store.finish_reply(
                item.id, state, content, reasoning, notices=notices, model=model, trace=trace, **more
            )

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
                    self._store.flush_reply(live.item.id, live.item.content, live.item.reasoning, live.model)
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
