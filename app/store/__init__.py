"""Conversations on disk: one SQLite file, a tree of messages per conversation."""

from app.store.attachments import Attachment
from app.store.database import Database, StoreError
from app.store.repository import Repository
from app.store.values import Conversation, Draft, Reply, StoredMessage, Template

__all__ = [
    "Attachment",
    "Conversation",
    "Database",
    "Draft",
    "Reply",
    "Repository",
    "StoreError",
    "StoredMessage",
    "Template",
]
