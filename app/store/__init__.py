"""Conversations on disk: one SQLite file, a tree of messages per conversation."""

from app.store.database import Database, StoreError
from app.store.repository import Repository
from app.store.values import Conversation, Reply, StoredMessage

__all__ = ["Conversation", "Database", "Reply", "Repository", "StoreError", "StoredMessage"]
