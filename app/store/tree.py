"""The tree of messages: every edit and every regeneration is a sibling, nothing is overwritten."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Sequence
from typing import Any

from app.store import segments as codec
from app.store.attachments import Attachment, from_json, to_json
from app.store.database import Database, StoreError
from app.store.values import Reply, State, StoredMessage
from engine import Segment

_REPLY_COLUMNS = """r.message_id, r.seed, r.request, r.model, r.last_token, r.end_reason, r.figures, r.notices,
    r.error"""


class Tree:
    """Reads and writes of messages. Every method is one transaction; all raise StoreError."""

    def __init__(self, database: Database) -> None:
        self.db = database

    # reading

    def path(self, conversation: int) -> list[StoredMessage]:
        """The visible branch, oldest first. Segments are left out: the screen has no use for them, requests have."""
        rows = self.db.rows(
            "SELECT * FROM message WHERE conversation_id = ? AND deleted_at IS NULL ORDER BY id", conversation
        )
        chosen = self.db.row("SELECT active_root_id FROM conversation WHERE id = ?", conversation)
        children: dict[int | None, list[sqlite3.Row]] = {}
        for row in rows:
            children.setdefault(row["parent_id"], []).append(row)
        visible: list[tuple[sqlite3.Row, int, int]] = []
        parent: int | None = None
        active: int | None = chosen["active_root_id"] if chosen else None
        while siblings := children.get(parent):
            # A deleted active child falls back to the newest sibling that is left.
            index = next((i for i, row in enumerate(siblings) if row["id"] == active), len(siblings) - 1)
            row = siblings[index]
            visible.append((row, index + 1, len(siblings)))
            parent, active = row["id"], row["active_child_id"]
        replies = self._replies(conversation, segments=False)
        return [_message(row, n, of, replies.get(row["id"])) for row, n, of in visible]

    def message(self, number: int) -> StoredMessage | None:
        row = self.db.row("SELECT * FROM message WHERE id = ? AND deleted_at IS NULL", number)
        if row is None:
            return None
        siblings = self._siblings(row)
        reply = self.db.row(f"SELECT {_REPLY_COLUMNS}, r.segments FROM reply r WHERE message_id = ?", number)
        return _message(row, siblings.index(number) + 1, len(siblings), _reply(reply, segments=True) if reply else None)

    def history(self, leaf: int) -> list[StoredMessage]:
        """The messages from the root down to and including `leaf`, segments included."""
        rows = self.db.rows(
            """WITH RECURSIVE up(id, depth) AS (
                   VALUES (?, 0) UNION ALL
                   SELECT m.parent_id, depth + 1 FROM message m JOIN up ON m.id = up.id WHERE m.parent_id IS NOT NULL)
               SELECT m.* FROM message m JOIN up ON m.id = up.id WHERE m.deleted_at IS NULL ORDER BY depth DESC""",
            leaf,
        )
        replies = self._replies(rows[0]["conversation_id"], segments=True) if rows else {}
        return [_message(row, 1, 1, replies.get(row["id"])) for row in rows]

    def _siblings(self, row: sqlite3.Row) -> list[int]:
        found = self.db.rows(
            "SELECT id FROM message WHERE conversation_id = ? AND parent_id IS ? AND deleted_at IS NULL ORDER BY id",
            row["conversation_id"],
            row["parent_id"],
        )
        return [int(r["id"]) for r in found]

    def _replies(self, conversation: int, *, segments: bool) -> dict[int, Reply]:
        # The blobs are by far the most of a reply; they are read only where they are used.
        columns = f"{_REPLY_COLUMNS}, r.segments" if segments else _REPLY_COLUMNS
        rows = self.db.rows(
            f"SELECT {columns} FROM reply r JOIN message m ON m.id = r.message_id WHERE m.conversation_id = ?",
            conversation,
        )
        return {row["message_id"]: _reply(row, segments=segments) for row in rows}

    # writing

    def add_user_message(
        self,
        conversation: int,
        parent: int | None,
        text: str,
        *,
        attachments: Sequence[Attachment] = (),
        title: str = "",
        edited: int | None = None,
    ) -> StoredMessage:
        """Commit a user's message as the active child of `parent`, and its draft away in the same transaction.

        title: for a chat that has none yet. edited: the message that this one stands beside; what is unsent of it
        goes, and the draft stays.
        """
        with self.db.write() as tx:
            number = self._insert(tx, conversation, parent, "user", text, State.COMPLETE, to_json(attachments))
            if title:
                tx.execute("UPDATE conversation SET title = ? WHERE id = ? AND title = ''", (title, conversation))
            if edited is None:
                tx.execute("DELETE FROM draft WHERE conversation_id = ?", (conversation,))
            else:
                tx.execute("DELETE FROM edit WHERE message_id = ?", (edited,))
        return self._read_back(number)

    def begin_reply(
        self, conversation: int, parent: int, *, seed: int, request: dict[str, Any], model: dict[str, Any]
    ) -> StoredMessage:
        """An empty streaming reply, with everything that is needed to write it again."""
        with self.db.write() as tx:
            number = self._insert(tx, conversation, parent, "assistant", "", State.STREAMING)
            tx.execute(
                "INSERT INTO reply(message_id, seed, request, model) VALUES (?, ?, ?, ?)",
                (number, seed, json.dumps(request), json.dumps(model)),
            )
        return self._read_back(number)

    def go_on(self, message: int) -> StoredMessage:
        """A reply that was cut streams again. One that has messages after it stays, and its copy beside it streams.

        Deleted messages count: they may be brought back, and were written after the reply as it is.
        """
        with self.db.write() as tx:
            followed = tx.execute("SELECT 1 FROM message WHERE parent_id = ? LIMIT 1", (message,)).fetchone()
            number = self._copy_reply(tx, message) if followed else message
            tx.execute("UPDATE message SET state = 'streaming' WHERE id = ?", (number,))
        return self._read_back(number)

    def _copy_reply(self, tx: sqlite3.Connection, message: int) -> int:
        row = tx.execute("SELECT * FROM message WHERE id = ?", (message,)).fetchone()
        number = self._insert(
            tx, row["conversation_id"], row["parent_id"], "assistant", row["content"], State.STREAMING
        )
        tx.execute("UPDATE message SET reasoning = ? WHERE id = ?", (row["reasoning"], number))
        names = "seed, request, model, segments, last_token, end_reason, figures, notices, error, finished_at, trace"
        tx.execute(
            f"INSERT INTO reply(message_id, {names}) SELECT ?, {names} FROM reply WHERE message_id = ?",
            (number, message),
        )
        return number

    def trace(self, message: int) -> bytes | None:
        """Which text of a reply came of which round, as `finish_reply` was given it."""
        row = self.db.row("SELECT trace FROM reply WHERE message_id = ?", message)
        return row["trace"] if row else None

    def flush_reply(self, message: int, content: str, reasoning: str, model: dict[str, Any] | None = None) -> None:
        """The text so far, and what writes it. Only a streaming reply is touched."""
        with self.db.write() as tx:
            if model is not None:
                tx.execute("UPDATE reply SET model = ? WHERE message_id = ?", (json.dumps(model), message))
            tx.execute(
                "UPDATE message SET content = ?, reasoning = ? WHERE id = ? AND state = 'streaming'",
                (content, reasoning, message),
            )

    def finish_reply(
        self,
        message: int,
        state: State,
        content: str,
        reasoning: str,
        *,
        end_reason: str | None = None,
        segments: Sequence[Segment] = (),
        last_token: int | None = None,
        figures: dict[str, Any] | None = None,
        notices: Sequence[dict[str, str]] = (),
        error: dict[str, str] | None = None,
        model: dict[str, Any] | None = None,
        trace: bytes | None = None,
    ) -> None:
        """The end of a reply, whatever the end was. Segments are kept only when the engine gave them.

        trace: see `trace`.
        """
        now = time.time()
        with self.db.write() as tx:
            tx.execute(
                "UPDATE message SET content = ?, reasoning = ?, state = ? WHERE id = ?",
                (content, reasoning, state, message),
            )
            tx.execute(
                """UPDATE reply SET end_reason = ?, segments = ?, last_token = ?, figures = ?, notices = ?, error = ?,
                       finished_at = ?, trace = ?,
                       model = COALESCE(?, model) WHERE message_id = ?""",
                (
                    end_reason,
                    codec.pack(segments) if segments else None,
                    last_token,
                    None if figures is None else json.dumps(figures),
                    json.dumps(list(notices)),
                    None if error is None else json.dumps(error),
                    now,
                    trace,
                    None if model is None else json.dumps(model),
                    message,
                ),
            )
            tx.execute(
                "UPDATE conversation SET updated_at = ? WHERE id = (SELECT conversation_id FROM message WHERE id = ?)",
                (now, message),
            )

    def switch_branch(self, message: int, step: int) -> int:
        """Show the sibling `step` places on. Returns its id; the ends do not wrap."""
        row = self.db.row("SELECT * FROM message WHERE id = ?", message)
        if row is None:
            return message
        siblings = self._siblings(row)
        if message not in siblings:
            return message
        target = siblings[max(0, min(len(siblings) - 1, siblings.index(message) + step))]
        with self.db.write() as tx:
            activate(tx, row["conversation_id"], row["parent_id"], target)
        return target

    def delete_message(self, message: int) -> None:
        """Out of sight, with all that follows it on its branch. Siblings stay."""
        with self.db.write() as tx:
            tx.execute("UPDATE message SET deleted_at = ? WHERE id = ?", (time.time(), message))

    def is_followed(self, message: int) -> bool:
        """Whether a message has others behind it, on whatever branch."""
        return self.db.row("SELECT 1 FROM message WHERE parent_id = ? AND deleted_at IS NULL", message) is not None

    def restore_message(self, message: int) -> None:
        with self.db.write() as tx:
            tx.execute("UPDATE message SET deleted_at = NULL WHERE id = ?", (message,))

    def add_receipt(self, message: int, kind: str, body: dict[str, Any]) -> None:
        with self.db.write() as tx:
            tx.execute(
                "INSERT INTO receipt(message_id, created_at, kind, body) VALUES (?, ?, ?, ?)",
                (message, time.time(), kind, json.dumps(body)),
            )

    def receipts(self, message: int) -> list[tuple[str, dict[str, Any]]]:
        rows = self.db.rows("SELECT kind, body FROM receipt WHERE message_id = ? ORDER BY id", message)
        return [(row["kind"], json.loads(row["body"])) for row in rows]

    def last_receipts(self, conversation: int) -> dict[int, dict[str, Any]]:
        """The newest receipt of every reply that has one, by message."""
        rows = self.db.rows(
            """SELECT r.message_id, r.body FROM receipt r JOIN message m ON m.id = r.message_id
               WHERE m.conversation_id = ? ORDER BY r.id""",
            conversation,
        )
        return {row["message_id"]: json.loads(row["body"]) for row in rows}

    def _insert(
        self,
        tx: sqlite3.Connection,
        conversation: int,
        parent: int | None,
        role: str,
        content: str,
        state: State,
        attachments: str = "[]",
    ) -> int:
        now = time.time()
        cursor = tx.execute(
            """INSERT INTO message(uid, conversation_id, parent_id, role, content, state, created_at, attachments)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (uuid.uuid4().hex, conversation, parent, role, content, state, now, attachments),
        )
        number = int(cursor.lastrowid or 0)
        activate(tx, conversation, parent, number)
        tx.execute("UPDATE conversation SET updated_at = ? WHERE id = ?", (now, conversation))
        return number

    def _read_back(self, number: int) -> StoredMessage:
        found = self.message(number)
        if found is None:
            raise StoreError("A message that was just saved is gone.", todo="Restart Pacenote.")
        return found


def activate(tx: sqlite3.Connection, conversation: int, parent: int | None, child: int) -> None:
    if parent is None:
        tx.execute("UPDATE conversation SET active_root_id = ? WHERE id = ?", (child, conversation))
    else:
        tx.execute("UPDATE message SET active_child_id = ? WHERE id = ?", (child, parent))


def _reply(row: sqlite3.Row, *, segments: bool) -> Reply:
    try:
        schedule = codec.unpack(row["segments"]) if segments else ()
    except ValueError as error:
        raise StoreError(
            "A saved reply is damaged: its segment schedule cannot be read.",
            kept="Its text is intact.",
            todo="Go on in a new chat, or edit an earlier message.",
            detail=str(error),
        ) from error
    return Reply(
        seed=row["seed"],
        request=json.loads(row["request"]),
        model=json.loads(row["model"]),
        segments=schedule,
        last_token=row["last_token"],
        end_reason=row["end_reason"],
        figures=json.loads(row["figures"]) if row["figures"] else None,
        notices=tuple(json.loads(row["notices"])),
        error=json.loads(row["error"]) if row["error"] else None,
    )


def _message(row: sqlite3.Row, branch: int, branches: int, reply: Reply | None) -> StoredMessage:
    return StoredMessage(
        id=row["id"],
        uid=row["uid"],
        conversation_id=row["conversation_id"],
        parent_id=row["parent_id"],
        role=row["role"],
        content=row["content"],
        reasoning=row["reasoning"],
        state=State(row["state"]),
        created_at=row["created_at"],
        branch=branch,
        branches=branches,
        reply=reply,
        attachments=from_json(row["attachments"]),
    )
