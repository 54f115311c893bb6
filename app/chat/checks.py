"""Verify: a reply is replayed by classic decode, and the receipt is kept with it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal, Slot

from app import figures
from app.chat.item import Item
from app.errorcard import as_dict
from app.happenings import Envelope, Failed, Ids, Started
from app.models.loader import Numbers
from app.store import Repository, StoredMessage, StoreError
from app.worker import EngineThread
from engine import PrefillProgress, Receipt, Request


@dataclass(slots=True)
class _Check:
    item: Item
    weights_hash: str
    refused: bool = False


class Checks(QObject):
    """Several may wait their turn. `item_changed` carries the message."""

    item_changed = Signal(int)
    failed = Signal(dict)
    bug = Signal(str)

    def __init__(
        self, thread: EngineThread, store: Repository, numbers: Numbers, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._thread = thread
        self._store = store
        self._numbers = numbers
        self._running: dict[int, _Check] = {}

    def item_of(self, message: int) -> Item | None:
        """The item of a reply that is being checked."""
        return next((check.item for check in self._running.values() if check.item.id == message), None)

    def start(self, item: Item, stored: StoredMessage, request: Request) -> None:
        """request: the one that wrote the reply."""
        if stored.reply is None or not stored.reply.tokens or self.item_of(stored.id) is not None:
            return
        ids = Ids(self._numbers.next(), stored.conversation_id, stored.id)
        self._running[ids.generation] = _Check(item, str(stored.reply.model.get("weights_hash", "")))
        self._say(item, "Verify: waiting for the model…")
        self._thread.verify(ids, request, stored.reply.tokens)

    @Slot(object)
    def on_events(self, batch: list[Envelope]) -> None:
        for envelope in batch:
            check = self._running.get(envelope.ids.generation)
            if check is not None:
                self._take(check, envelope)

    def _take(self, check: _Check, envelope: Envelope) -> None:
        event, item, generation = envelope.event, check.item, envelope.ids.generation
        if isinstance(event, Started):
            if event.info.weights_hash != check.weights_hash:
                check.refused = True
                self._thread.stop(generation)
                self._say(item, f"Not verified: another model wrote this. {event.info.name} is loaded.")
            else:
                self._say(item, "Verify: reading the prompt…")
        elif isinstance(event, PrefillProgress) and not check.refused:
            if event.done >= event.total:
                self._say(item, "Verify: replaying the reply by classic decode…")
        elif isinstance(event, Receipt):
            del self._running[generation]
            if not check.refused:
                self._keep(item, event)
        elif isinstance(event, Failed):
            del self._running[generation]
            if event.trace:
                self.bug.emit(event.trace)
            self._say(item, f"Not verified: {event.error.what if event.error else 'it was stopped.'}")

    def _keep(self, item: Item, receipt: Receipt) -> None:
        body = dataclasses.asdict(receipt)
        self._say(item, receipt_text(body))
        try:
            self._store.add_receipt(item.id, "classic replay", body)
        except StoreError as error:
            self.failed.emit(as_dict(error))

    def _say(self, item: Item, text: str) -> None:
        item.check = text
        self.item_changed.emit(item.id)


def receipt_text(body: dict[str, object]) -> str:
    """A receipt in one sentence. body: its fields, as they are stored."""
    receipt = Receipt(**body)  # type: ignore[arg-type]
    if not receipt.complete:
        return f"Not verified to the end: stopped after {receipt.compared:,} equal tokens."
    if receipt.identical:
        return f"Verified: classic decode gives the same {figures.count(receipt.tokens, 'token')}."
    return f"Differs from classic decode: {receipt}."
