"""Text that goes with a message: files and long pastes, kept beside what the user typed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import KnownError

MAX_BYTES = 1 << 20
"""Of one file. About 250,000 tokens, more than any of the models reads."""
MAX_TOGETHER = 2 << 20
"""Characters of all attachments of a message: the draft with them is written whenever the typing pauses."""
MOST = 50
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
"""Bytes that no text has, in whatever 8-bit encoding."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text with a name. pasted: it came from the clipboard, so it may go back into the composer."""

    name: str
    text: str
    pasted: bool = False


def compose(typed: str, attachments: Sequence[Attachment]) -> str:
    """What the model reads: the typed text, then each attachment in a fence that nothing in it can close.

    Never to be changed: replies are verified against it, and a chat's kept caches depend on it.
    """
    parts = [typed] if typed.strip() else []
    for attachment in attachments:
        longest = max((len(run) for run in re.findall("`+", attachment.text)), default=0)
        fence = "`" * max(3, longest + 1)
        end = "" if attachment.text.endswith("\n") else "\n"
        parts.append(f"{attachment.name}:\n{fence}\n{attachment.text}{end}{fence}")
    return "\n\n".join(parts)


def read_file(path: Path) -> Attachment:
    """A text file as an attachment. UTF-8, or UTF-16 with its mark. Raises KnownError for anything else."""
    try:
        if not path.is_file():  # reading a pipe or a device may never end
            raise OSError("it is no file, or is gone")
        size = path.stat().st_size
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise KnownError(
            f"{_shown(path)} cannot be read.",
            kept="Your message is unchanged.",
            todo="Check that it is a file and that you may read it.",
            detail=f"{path}: {error}",
        ) from error
    if len(data) > MAX_BYTES:
        raise too_long(_shown(path), max(size, len(data)))
    utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        if not utf16 and not _CONTROL.search(data):
            raise KnownError(
                f"{_shown(path)} is not in UTF-8.",
                kept="Your message is unchanged.",
                todo="Save it as UTF-8 in a text editor, then attach it.",
                detail=f"{path}: {error}",
            ) from error
        raise _no_text(path, str(error)) from error
    if "\0" in text:
        raise _no_text(path, "it holds NUL characters")
    return Attachment(_shown(path), plain(text))


def plain(text: str) -> str:
    """With line ends as everything here has them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def too_long(name: str, size: int) -> KnownError:
    return KnownError(
        f"{name} is too long to attach ({size / 2**20:.1f} MiB, at most {MAX_BYTES / 2**20:.0f} MiB).",
        kept="Your message is unchanged.",
        todo="Attach the part that matters.",
    )


def require_room(there: Sequence[Attachment], name: str, length: int = 0) -> None:
    """Raises KnownError where a message would have too many attachments, or too much in them. length: in characters."""
    if len(there) >= MOST:
        what = f"{name} was not attached: a message has {MOST} attachments at most."
    elif sum(len(one.text) for one in there) + length > MAX_TOGETHER:
        what = f"{name} was not attached: all attachments together would be longer than any model reads."
    else:
        return
    raise KnownError(what, kept="Your message is unchanged.", todo="Attach what matters, or send several messages.")


def _shown(path: Path) -> str:
    """A file's name in one line."""
    return "".join(c if c.isprintable() else " " for c in path.name) or str(path)


def to_json(attachments: Sequence[Attachment]) -> str:
    """As it is stored. Not escaped, so that the search finds every letter."""
    kept = [{"name": a.name, "text": a.text, **({"pasted": True} if a.pasted else {})} for a in attachments]
    return json.dumps(kept, ensure_ascii=False)


def from_json(kept: str) -> tuple[Attachment, ...]:
    """Raises ValueError, KeyError or TypeError for what `to_json` did not write."""
    found = json.loads(kept)
    return tuple(Attachment(str(a["name"]), str(a["text"]), bool(a.get("pasted", False))) for a in found)


def _no_text(path: Path, why: str) -> KnownError:
    return KnownError(
        f"{_shown(path)} is not a text file.",
        kept="Your message is unchanged.",
        todo="Attach plain text: notes, code, CSV, Markdown.",
        detail=f"{path}: {why}",
    )
