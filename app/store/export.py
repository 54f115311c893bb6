"""Chats out of the store and in again: JSON holds the whole tree, Markdown the visible branch for reading."""

from __future__ import annotations

import base64
import json
import sqlite3
import uuid
from pathlib import Path
from typing import Any

from app.atomic import replace_text
from app.store import attachments, foreign
from app.store.database import Database, StoreError
from app.store.repository import LONGEST_TITLE, Repository
from engine import KnownError

FORMAT = 1
_CONVERSATION = ("uid", "title", "title_is_users", "created_at", "updated_at", "system_prompt", "sampler")
# An export of an earlier version does not have what came later.
_LATER: dict[str, Any] = {"attachments": "[]", "trace": None}
_MESSAGE = ("uid", "role", "content", "reasoning", "state", "created_at", "attachments")
_BLOBS = ("segments", "trace")
_REPLY = ("seed", "request", "model", "last_token", "end_reason", "figures", "notices", "error", "finished_at")


def to_json(store: Repository, conversations: list[int]) -> str:
    """Every branch of these chats, with seeds, segments, figures and receipts. Deleted messages are left out."""
    chats = [_chat(store.db, number) for number in conversations]
    return json.dumps({"pacenote": FORMAT, "chats": chats}, ensure_ascii=False, indent=1)


def from_json(store: Repository, text: str) -> list[int]:
    """Add the chats of an export; all of them or none. A chat that is here already is added as a copy.

    Raises KnownError when the text is no export of ours.
    """
    try:
        data = json.loads(text)
        version, chats = data["pacenote"], data["chats"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _no_export(f"{type(error).__name__}: {error}") from error
    if version != FORMAT:
        raise _no_export(f"format {version!r}, this Pacenote reads {FORMAT}")
    try:
        with store.db.write() as tx:
            return [_add(tx, chat) for chat in chats]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise _no_export(f"{type(error).__name__}: {error}") from error
    except StoreError as error:
        if isinstance(error.__cause__, sqlite3.IntegrityError | sqlite3.InterfaceError | sqlite3.ProgrammingError):
            raise _no_export(error.detail) from error
        raise


def to_markdown(store: Repository, conversation: int) -> str:
    """The visible branch. Reasoning is left out, as in copying."""
    found = store.conversation(conversation)
    parts = [f"# {found.title or 'New chat'}" if found else ""]
    for message in store.path(conversation):
        parts.append(f"**{'You' if message.role == 'user' else 'Reply'}**\n\n{message.read}")
    return "\n\n".join(parts) + "\n"


def write(text: str, target: Path) -> None:
    """Write an export. One that was there stays when the disk will not take the new one. Raises KnownError."""
    try:
        replace_text(target, text)
    except OSError as error:
        raise KnownError(
            "The export could not be written.",
            kept="Your chats are unchanged, and so is a file that was there.",
            todo="Choose another folder, or free some space.",
            detail=f"{target}: {error}",
        ) from error


def _chat(db: Database, number: int) -> dict[str, Any]:
    head = db.row("SELECT * FROM conversation WHERE id = ?", number)
    if head is None:
        raise StoreError("This chat is gone.", todo="Choose another one.")
    rows = db.rows("SELECT * FROM message WHERE conversation_id = ? AND deleted_at IS NULL ORDER BY id", number)
    uids: dict[int | None, str] = {}
    for row in rows:
        # A parent is older than its children. What hangs on a deleted message is left out with it.
        if row["parent_id"] is None or row["parent_id"] in uids:
            uids[row["id"]] = row["uid"]
    replies = db.rows(
        "SELECT r.* FROM reply r JOIN message m ON m.id = r.message_id WHERE m.conversation_id = ?", number
    )
    reply_of = {row["message_id"]: row for row in replies}
    receipts: dict[int, list[dict[str, Any]]] = {}
    for row in db.rows(
        "SELECT t.* FROM receipt t JOIN message m ON m.id = t.message_id WHERE m.conversation_id = ? ORDER BY t.id",
        number,
    ):
        entry = {"created_at": row["created_at"], "kind": row["kind"], "body": row["body"]}
        receipts.setdefault(row["message_id"], []).append(entry)
    messages = []
    for row in rows:
        if row["id"] not in uids:
            continue
        message = {name: row[name] for name in _MESSAGE}
        message["parent"] = uids.get(row["parent_id"])
        message["active_child"] = uids.get(row["active_child_id"])
        if row["id"] in reply_of:
            reply = reply_of[row["id"]]
            message["reply"] = {name: reply[name] for name in _REPLY}
            for name in _BLOBS:
                blob = reply[name]
                message["reply"][name] = base64.b64encode(blob).decode() if blob is not None else None
        message["receipts"] = receipts.get(row["id"], [])
        messages.append(message)
    chat = {name: head[name] for name in _CONVERSATION}
    return {**chat, "active_root": uids.get(head["active_root_id"]), "messages": messages}


def _add(tx: sqlite3.Connection, chat: dict[str, Any]) -> int:
    values = {name: chat[name] for name in _CONVERSATION}
    foreign.check_chat(values)
    values["title"] = values["title"][:LONGEST_TITLE]
    if tx.execute("SELECT 1 FROM conversation WHERE uid = ?", (values["uid"],)).fetchone():
        values["uid"] = uuid.uuid4().hex
    conversation = _insert(tx, "conversation", values)
    ids: dict[str, int] = {}
    for message in chat["messages"]:
        row = {name: message[name] for name in _MESSAGE if name in message or name not in _LATER}
        attachments.from_json(row.setdefault("attachments", _LATER["attachments"]))
        foreign.check_message(row)
        if tx.execute("SELECT 1 FROM message WHERE uid = ?", (row["uid"],)).fetchone():
            row["uid"] = uuid.uuid4().hex
        # Written while it streamed and exported: whoever reads it here, it does not stream.
        row["state"] = "interrupted" if row["state"] == "streaming" else row["state"]
        parent = message["parent"]
        row |= {"conversation_id": conversation, "parent_id": None if parent is None else ids[parent]}
        ids[message["uid"]] = number = _insert(tx, "message", row)
        reply = message.get("reply")
        if reply is not None:
            kept = {name: reply[name] for name in _REPLY} | {"message_id": number}
            foreign.check_reply(kept)
            for name in _BLOBS:
                blob = reply.get(name) if name in _LATER else reply[name]
                kept[name] = None if blob is None else base64.b64decode(blob, validate=True)
            _insert(tx, "reply", kept)
        for receipt in message["receipts"]:
            body = {name: receipt[name] for name in ("created_at", "kind", "body")}
            foreign.check_receipt(body)
            _insert(tx, "receipt", {"message_id": number, **body})
    for message in chat["messages"]:
        child = ids.get(message["active_child"] or "")
        tx.execute("UPDATE message SET active_child_id = ? WHERE id = ?", (child, ids[message["uid"]]))
    root = ids.get(chat["active_root"] or "")
    tx.execute("UPDATE conversation SET active_root_id = ? WHERE id = ?", (root, conversation))
    return conversation


def _insert(tx: sqlite3.Connection, table: str, values: dict[str, Any]) -> int:
    # Table and column names are ours, never the file's.
    names = ", ".join(values)
    marks = ", ".join("?" for _ in values)
    cursor = tx.execute(f"INSERT INTO {table}({names}) VALUES ({marks})", tuple(values.values()))
    return int(cursor.lastrowid or 0)


def _no_export(detail: str) -> KnownError:
    return KnownError(
        "This file is no export of Pacenote's chats.",
        kept="Nothing was added.",
        todo="Choose a .json file that was made by Export Chat or Export All Chats.",
        detail=detail,
    )
