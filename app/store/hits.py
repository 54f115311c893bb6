"""Which message of a chat a search is about."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from app.store.search import count, words
from app.store.tree import Tree, activate


class Hits(Tree):
    """Finds messages by their words, and shows them on whatever branch they are."""

    def best_hit(self, conversation: int, wanted: Sequence[str], visible: Collection[int]) -> int | None:
        """The message with most of the words; of equals a visible one, then the newest. None when all have none."""
        rows = self.db.rows(
            "SELECT id, content, attachments FROM message WHERE conversation_id = ? AND deleted_at IS NULL",
            conversation,
        )
        scores = [(count(row["content"] + row["attachments"], wanted), row["id"] in visible, row["id"]) for row in rows]
        for score, _, number in sorted(scores, reverse=True):
            # What follows a deleted message went with it.
            if score and self.in_sight(number):
                return int(number)
        return None

    def in_sight(self, message: int) -> bool:
        """Whether neither the message nor anything that it follows is deleted. It may be on another branch."""
        return all(row["deleted_at"] is None for row in self._up(message))

    def reveal(self, message: int) -> None:
        """Make the branch that has a message the visible one."""
        rows = self._up(message)
        with self.db.write() as tx:
            for row in rows:
                activate(tx, row["conversation_id"], row["parent_id"], row["id"])

    def _up(self, message: int) -> list[sqlite3.Row]:
        """A message and what it follows, up to the root."""
        return self.db.rows(
            """WITH RECURSIVE up(id, depth) AS (
                   VALUES (?, 0) UNION ALL
                   SELECT m.parent_id, depth + 1 FROM message m JOIN up ON m.id = up.id WHERE m.parent_id IS NOT NULL)
               SELECT m.id, m.parent_id, m.conversation_id, m.deleted_at
               FROM message m JOIN up ON m.id = up.id ORDER BY depth""",
            message,
        )


def located(store: Hits, conversation: int, search: str, *, stay: bool) -> int | None:
    """The message that a search is about; its branch becomes the visible one. None where there is none to go to.

    stay: not to another branch.
    """
    if not (conversation and search.strip()):
        return None
    visible = {message.id for message in store.path(conversation)}
    hit = store.best_hit(conversation, words(search), visible)
    if hit is not None and hit not in visible:
        if stay:
            return None
        store.reveal(hit)
    return hit
