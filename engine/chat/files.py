"""The small JSON and text files around a tokenizer, read with clear refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError

SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token")


def damaged(path: Path, detail: str) -> CheckpointError:
    return CheckpointError(
        f"{path.name} in {path.parent} is damaged.",
        todo="Download the model again.",
        detail=detail,
    )


def read_text(path: Path) -> str:
    """The file's text. Raises CheckpointError when it is missing, unreadable or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{path.name} is missing from {path.parent}.",
            todo="Choose a complete model folder, or download the model again.",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(path, str(error)) from error


def read_json(path: Path, *, optional: bool = False) -> dict[str, Any]:
    """A JSON object. A missing file is {} when `optional`, else a CheckpointError."""
    if optional and not path.exists():
        return {}
    try:
        value = json.loads(read_text(path))
    except ValueError as error:
        raise damaged(path, str(error)) from error
    if not isinstance(value, dict):
        raise damaged(path, f"an object was expected, not {type(value).__name__}")
    return value


def special_tokens(config: dict[str, Any]) -> dict[str, str]:
    """The named special tokens of tokenizer_config.json; templates refer to them by these names."""
    found: dict[str, str] = {}
    for name in SPECIAL_NAMES:
        value = config.get(name)
        if isinstance(value, dict):  # older files spell out an AddedToken
            value = value.get("content")
        if isinstance(value, str):
            found[name] = value
    return found


def chat_template(folder: Path, config: dict[str, Any]) -> str:
    """The template's source: chat_template.jinja, else the entry of tokenizer_config.json."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return read_text(path)
    source = config.get("chat_template")
    if isinstance(source, list):  # several named templates, the one for chats is called "default"
        source = next((t.get("template") for t in source if isinstance(t, dict) and t.get("name") == "default"), None)
    if not isinstance(source, str):
        raise CheckpointError(
            f"The model in {folder} has no chat template, so it cannot chat.",
            todo="Choose the instruct or chat version of this model.",
        )
    return source


def eos_ids(folder: Path, specials: dict[str, str], id_of: Callable[[str], int | None]) -> set[int]:
    """Every id that some file names as the end of a reply.

    The union is right: Qwen's config.json names <|endoftext|>, its tokenizer_config.json <|im_end|>, and
    which of the two files a conversion kept up to date is luck.
    """
    found: set[int] = set()
    config = read_json(folder / "config.json", optional=True)
    nested = config.get("text_config")
    sources = [read_json(folder / "generation_config.json", optional=True), config]
    if isinstance(nested, dict):
        sources.append(nested)
    for source in sources:
        value = source.get("eos_token_id")
        values = value if isinstance(value, list) else [value]
        found.update(v for v in values if isinstance(v, int) and not isinstance(v, bool))
    named = id_of(specials["eos_token"]) if "eos_token" in specials else None
    if named is not None:
        found.add(named)
    if not found:
        raise CheckpointError(
            f"No file in {folder} names the token that ends a reply.",
            todo="Download the model again, with its generation_config.json.",
        )
    return found
