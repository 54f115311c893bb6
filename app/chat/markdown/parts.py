"""The widgets that a reply is made of, whatever kind: which blocks go into which, and marking their text."""

from __future__ import annotations

from app.chat.markdown.code import CodeBlock
from app.chat.markdown.marks import Marked, Marking
from app.chat.markdown.prose import Chunk, Prose, Table
from app.chat.markdown.split import Block, Kind

Part = Prose | CodeBlock | Table


def mark(part: Part, marking: Marking, begin: int, source: str, offset: int, *, frozen: bool) -> None:
    """Mark what was drawn of `source`. begin: where that is in the document of a Prose."""
    if isinstance(part, Prose):
        end = part.frozen_end if frozen else None
        part.mark(marking, Chunk(begin, end, source, offset), frozen=frozen)
    else:
        part.mark(marking, source, offset)


def marked(part: Part) -> Marked:
    """What of a part has the text."""
    return part.edit if isinstance(part, CodeBlock) else part


def runs(blocks: list[Block]) -> list[tuple[Kind, list[Block]]]:
    """Neighbouring prose together; each code block and table alone."""
    found: list[tuple[Kind, list[Block]]] = []
    for block in blocks:
        if block.kind == "prose" and found and found[-1][0] == "prose":
            found[-1][1].append(block)
        else:
            found.append((block.kind, [block]))
    return found
