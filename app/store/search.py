"""A search as SQL: every word must be in the title or in a message of the chat."""

from __future__ import annotations

TRIGRAM = 3
"""Characters below which the index of trigrams finds nothing; shorter words are looked for in the text itself."""

_INDEXED = """title LIKE ? ESCAPE '\\' OR c.id IN (
    SELECT m.conversation_id FROM message m WHERE m.deleted_at IS NULL
    AND m.id IN (SELECT rowid FROM message_text WHERE message_text MATCH ?))"""
_SHORT = """title LIKE ?1 ESCAPE '\\' OR c.id IN (
    SELECT m.conversation_id FROM message m WHERE m.deleted_at IS NULL
    AND (m.content LIKE ?1 ESCAPE '\\' OR m.attachments LIKE ?1 ESCAPE '\\'))""".replace("?1", "?")


def condition(search: str) -> tuple[str, list[str]]:
    """(condition on a conversation `c`, its values). Wildcards and the index's own syntax are taken literally.

    A phrase in double quotes counts as one word.
    """
    parts: list[str] = []
    values: list[str] = []
    for word in _words(search):
        pattern = "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        if len(word) >= TRIGRAM:
            parts.append(_INDEXED)
            values += [pattern, '"' + word.replace('"', '""') + '"']
        else:
            parts.append(_SHORT)
            values += [pattern] * 3
    return " AND ".join(f"({part})" for part in parts) or "1", values


def _words(search: str) -> list[str]:
    # Odd pieces between quotes are phrases. A lone quote at the end is one that is still being typed.
    pieces = search.replace("\0", "").split('"')
    words: list[str] = []
    for number, piece in enumerate(pieces):
        words += [piece.strip()] if number % 2 and number < len(pieces) - 1 else piece.split()
    return [word for word in words if word]
