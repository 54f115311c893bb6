"""A search as SQL: every word must be in the title, in a message or in an attachment of the chat."""

from __future__ import annotations

from collections.abc import Sequence

TRIGRAM = 3
"""Characters below which the index of trigrams finds nothing; shorter words are looked for in the text itself."""

GONE = """WITH RECURSIVE gone(id, conversation_id) AS (
    SELECT id, conversation_id FROM message WHERE deleted_at IS NOT NULL UNION
    SELECT m.id, m.conversation_id FROM message m
    JOIN gone g ON m.conversation_id = g.conversation_id AND m.parent_id = g.id)"""
"""Deleted messages, with all that followed them: only the first of a deleted branch is marked."""

MOST_WORDS = 20
"""Of a search; the longest count."""

_INDEXED = "m.id IN (SELECT rowid FROM message_text WHERE message_text MATCH ?)"
_READ = "instr(fold(m.content), ?)"
_WORD = """instr(fold(title), ?) OR c.id IN (
        SELECT m.conversation_id FROM message m WHERE m.id NOT IN (SELECT id FROM gone) AND {text})
    OR c.id IN (
        SELECT m.conversation_id FROM message m
        WHERE m.attachments != '[]' AND m.id NOT IN (SELECT id FROM gone) AND instr(fold(m.attachments), ?))"""


def condition(search: str) -> tuple[str, list[str]]:
    """(condition on a conversation `c`, its values), behind `GONE`. Nothing in a search is a wildcard or syntax of
    the index.

    A phrase in double quotes counts as one word. `fold` is a function of the connection.
    """
    parts: list[str] = []
    values: list[str] = []
    for word in _telling(words(search)):
        folded = word.casefold()
        indexed = len(word) >= TRIGRAM
        parts.append(_WORD.format(text=_INDEXED if indexed else _READ))
        values += [folded, '"' + word.replace('"', '""') + '"' if indexed else folded, folded]
    return " AND ".join(f"({part})" for part in parts) or "1", values


def _telling(wanted: Sequence[str]) -> list[str]:
    """Without what another word has in it, which is found wherever that one is; MOST_WORDS at most.

    A page that lands in the search by mistake has hundreds of words, and every one is looked for in all chats.
    """
    found: list[str] = []
    for word in sorted(wanted, key=len, reverse=True):
        if not any(word.casefold() in longer.casefold() for longer in found):
            found.append(word)
    return found[:MOST_WORDS]


def words(search: str) -> list[str]:
    """The words and phrases of a search, as they were typed."""
    # Odd pieces between quotes are phrases. A lone quote at the end is one that is still being typed.
    pieces = search.replace("\0", "").split('"')
    found: list[str] = []
    for number, piece in enumerate(pieces):
        found += [piece.strip()] if number % 2 and number < len(pieces) - 1 else piece.split()
    return [word for word in found if word]


def count(text: str, wanted: Sequence[str]) -> int:
    """How many of the words are in a text, in whatever case."""
    folded = text.casefold()
    return sum(word.casefold() in folded for word in wanted)
