"""Conversations, drafts and search. The message tree is in `tree`."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from typing import Any

from app.store import attachments
from app.store.database import Database
from app.store.hits import Hits
from app.store.search import GONE, condition
from app.store.values import Conversation, Draft, Template

TITLE_LENGTH = 60
LONGEST_TITLE = 200
KEEP_DELETED_SECONDS = 7 * 24 * 3600.0
NEW_CHAT = 0
"""Key of the draft of the chat that does not exist yet."""


class Repository(Hits):
    """Everything the window keeps about chats. Every method is one transaction; all raise StoreError."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.gone: tuple[str, ...] = ()
        """Uids of the chats that the last `recover` deleted for good: what else is kept of them can go, too."""
        self.recover()

    def recover(self) -> None:
        """At start: a reply that was streaming when the program ended is interrupted; old deletions go for good."""
        with self.db.write() as tx:
            tx.execute("UPDATE message SET state = 'interrupted' WHERE state = 'streaming'")
            limit = time.time() - KEEP_DELETED_SECONDS
            rows = tx.execute("SELECT uid FROM conversation WHERE deleted_at < ?", (limit,)).fetchall()
            self.gone = tuple(row["uid"] for row in rows)
            tx.execute("DELETE FROM conversation WHERE deleted_at < ?", (limit,))
            tx.execute("DELETE FROM message WHERE deleted_at < ?", (limit,))
            tx.execute(
                "DELETE FROM draft WHERE conversation_id != 0 AND conversation_id NOT IN (SELECT id FROM conversation)"
            )

    # conversations

    def create_conversation(self, title: str = "") -> Conversation:
        now = time.time()
        with self.db.write() as tx:
            cursor = tx.execute(
                "INSERT INTO conversation(uid, title, created_at, updated_at) VALUES (?, ?, ?, ?)",
                (uuid.uuid4().hex, title, now, now),
            )
            number = int(cursor.lastrowid or 0)
        found = self.conversation(number)
        assert found is not None  # written above
        return found

    def conversation(self, number: int) -> Conversation | None:
        """None when there is none or it was deleted."""
        row = self.db.row("SELECT * FROM conversation WHERE id = ? AND deleted_at IS NULL", number)
        return _conversation(row) if row else None

    def conversations(self, search: str = "") -> list[Conversation]:
        """The newest first. `search` looks into titles, every branch's text and attachments; empty means all.

        What was deleted is not found, nor what followed it.
        """
        if not search.strip():
            rows = self.db.rows("SELECT * FROM conversation WHERE deleted_at IS NULL ORDER BY updated_at DESC, id DESC")
            return [_conversation(row) for row in rows]
        where, values = condition(search)
        rows = self.db.rows(
            f"""{GONE} SELECT * FROM conversation c WHERE deleted_at IS NULL AND {where}
                ORDER BY updated_at DESC, id DESC""",
            *values,
        )
        return [_conversation(row) for row in rows]

    def rename(self, number: int, title: str) -> None:
        """Set the title that the user gave it, of LONGEST_TITLE at most: every drawing of the list measures it."""
        kept = " ".join(title.split())[:LONGEST_TITLE]
        with self.db.write() as tx:
            tx.execute("UPDATE conversation SET title = ?, title_is_users = 1 WHERE id = ?", (kept, number))

    def set_system_prompt(self, number: int, text: str) -> None:
        with self.db.write() as tx:
            tx.execute("UPDATE conversation SET system_prompt = ? WHERE id = ?", (text, number))

    def set_sampler(self, number: int, sampler: dict[str, Any] | None) -> None:
        """Sampling of this chat only; None follows the settings again."""
        with self.db.write() as tx:
            tx.execute(
                "UPDATE conversation SET sampler = ? WHERE id = ?",
                (None if sampler is None else json.dumps(sampler), number),
            )

    def delete_conversation(self, number: int) -> None:
        """Out of sight; `restore_conversation` brings it back until the next start after a week."""
        with self.db.write() as tx:
            tx.execute("UPDATE conversation SET deleted_at = ? WHERE id = ?", (time.time(), number))

    def restore_conversation(self, number: int) -> None:
        with self.db.write() as tx:
            tx.execute("UPDATE conversation SET deleted_at = NULL WHERE id = ?", (number,))

    # drafts

    def draft(self, number: int) -> Draft:
        row = self.db.row("SELECT text, attachments FROM draft WHERE conversation_id = ?", number)
        return Draft(str(row["text"]), attachments.from_json(row["attachments"])) if row else Draft()

    def save_draft(self, number: int, draft: Draft) -> None:
        with self.db.write() as tx:
            if draft != Draft():
                tx.execute(
                    """INSERT INTO draft(conversation_id, text, attachments, updated_at) VALUES (?, ?, ?, ?)
                       ON CONFLICT(conversation_id) DO UPDATE SET text = excluded.text,
                           attachments = excluded.attachments, updated_at = excluded.updated_at""",
                    (number, draft.text, attachments.to_json(draft.attachments), time.time()),
                )
            else:
                tx.execute("DELETE FROM draft WHERE conversation_id = ?", (number,))

    def edit(self, message: int) -> Draft | None:
        """What a message was changed to, and not sent."""
        row = self.db.row("SELECT text, attachments FROM edit WHERE message_id = ?", message)
        return Draft(row["text"], attachments.from_json(row["attachments"])) if row else None

    def save_edit(self, message: int, draft: Draft | None) -> None:
        """draft: None when it was given up."""
        with self.db.write() as tx:
            tx.execute("DELETE FROM edit WHERE message_id = ?", (message,))
            if draft is not None:
                tx.execute(
                    "INSERT INTO edit(message_id, text, attachments, updated_at) VALUES (?, ?, ?, ?)",
                    (message, draft.text, attachments.to_json(draft.attachments), time.time()),
                )

    def edits(self, conversation: int) -> list[int]:
        """Messages that were changed and not sent, the newest change first."""
        rows = self.db.rows(
            """SELECT message_id FROM edit JOIN message ON id = message_id
               WHERE conversation_id = ? ORDER BY edit.updated_at DESC""",
            conversation,
        )
        return [row["message_id"] for row in rows]

    # templates

    def templates(self) -> list[Template]:
        """By name."""
        rows = self.db.rows("SELECT id, name, text FROM template ORDER BY name COLLATE NOCASE")
        return [Template(row["id"], row["name"], row["text"]) for row in rows]

    def save_template(self, name: str, text: str) -> None:
        """Keep a prompt under a name; one of that name is replaced."""
        with self.db.write() as tx:
            tx.execute(
                "INSERT INTO template(name, text) VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET text = excluded.text",
                (name.strip(), text),
            )

    def delete_template(self, number: int) -> None:
        with self.db.write() as tx:
            tx.execute("DELETE FROM template WHERE id = ?", (number,))


def title_from(text: str) -> str:
    """A chat's title: the first line with words in it. Never asks the model, so it costs nothing."""
    for line in text.splitlines():
        words = " ".join(line.split())
        if words:
            return words if len(words) <= TITLE_LENGTH else words[: TITLE_LENGTH - 1].rstrip() + "…"
    return "New chat"


def _conversation(row: sqlite3.Row) -> Conversation:
    return Conversation(
        id=row["id"],
        uid=row["uid"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        system_prompt=row["system_prompt"],
        sampler=json.loads(row["sampler"]) if row["sampler"] else None,
    )
