"""The visible branch of a chat as items. A reply that is being written, or checked, is ahead of the store."""

from __future__ import annotations

from typing import Any

from app.chat.checks import Checks, receipt_text
from app.chat.generations import Generations
from app.chat.item import Item, from_stored
from app.chat.trace import Trace, unpack
from app.store import Repository, StoredMessage


class Shown:
    """Reads only. All raise StoreError."""

    def __init__(self, store: Repository, generations: Generations, checks: Checks) -> None:
        self._store = store
        self._generations = generations
        self._checks = checks

    def items(self, conversation: int) -> list[Item]:
        path = self._store.path(conversation)
        receipts = self._store.last_receipts(conversation) if path else {}
        return [self._item(message, receipts.get(message.id)) for message in path]

    def _item(self, message: StoredMessage, receipt: dict[str, Any] | None) -> Item:
        live = self._generations.item_of(message.id) or self._checks.item_of(message.id)
        if live is not None:
            return live
        item = from_stored(message)
        # A reply that went on after it was verified is another one.
        if receipt is not None and receipt.get("tokens") == (item.figures or {}).get("tokens"):
            item.check = receipt_text(receipt)
        return item

    def trace(self, message: int) -> Trace | None:
        """Which text of a reply came of which round; None when that was not kept."""
        return unpack(self._store.trace(message))
