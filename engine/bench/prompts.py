"""Prompt sets: JSON files of named texts, and their tokens for one model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.chat.prompt import plan
from engine.chat.tokenizer import Tokenizer
from engine.errors import KnownError
from engine.request import Message

PROMPTS = Path(__file__).resolve().parents[2] / "resources" / "prompts"
CHECK = PROMPTS / "check.json"
BENCH = PROMPTS / "bench.json"


def read_sets(names: Sequence[str], tokenizer: Tokenizer) -> list[Prompt]:
    """Bundled sets (`engine.bench.SETS`) one after the other; their prompts are named "code: parser"."""
    return [
        replace(prompt, name=f"{name}: {prompt.name}")
        for name in names
        for prompt in read_prompts(PROMPTS / f"{name}.json", tokenizer)
    ]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text as a user would send it, and the tokens of the whole prompt around it (chat template)."""

    name: str
    text: str
    tokens: tuple[int, ...]


def read_prompts(path: Path, tokenizer: Tokenizer) -> list[Prompt]:
    """Read a JSON list of {"name": ..., "text": ...}, or of texts alone.

    Raises:
        KnownError: the file cannot be read or holds something else.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise KnownError(
            f"The prompts in {path} cannot be read: {error}.", todo="Name a JSON file of prompts."
        ) from error
    if not isinstance(entries, list) or not entries:
        raise KnownError(f"{path} is not a JSON list of prompts.", todo='Write [{"name": "...", "text": "..."}].')
    named = [_name_and_text(n, entry, path) for n, entry in enumerate(entries, start=1)]
    if len({name for name, _ in named}) < len(named):
        raise KnownError(
            f"Two prompts in {path} have one name.", todo="Give each a name of its own: samples are told by it."
        )
    return [Prompt(name, text, encode(tokenizer, text)) for name, text in named]


def _name_and_text(number: int, entry: Any, path: Path) -> tuple[str, str]:
    if isinstance(entry, str):
        entry = {"text": entry}
    text = entry.get("text") if isinstance(entry, dict) else None
    if not isinstance(text, str) or not text:
        raise KnownError(f"Prompt {number} in {path} has no text.", todo='Write {"name": "...", "text": "..."}.')
    return str(entry.get("name") or f"prompt {number}"), text


def encode(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """Tokens of a first user message, as the chat would prefill them."""
    return plan(tokenizer, (Message("user", text),), None).fresh


def require_room(prompts: Sequence[Prompt], tokens: int, context: int) -> None:
    """Raises KnownError when a prompt and a reply of `tokens` tokens do not fit in a context of `context` tokens."""
    longest = max(prompts, key=lambda prompt: len(prompt.tokens))
    if len(longest.tokens) + tokens > context:
        raise KnownError(
            f"Prompt {longest.name} has {len(longest.tokens)} tokens; with {tokens} more it does not fit in {context}.",
            todo="Ask for fewer --tokens, or name shorter --prompts.",
        )


def of_length(prompts: Sequence[Prompt], length: int) -> Prompt:
    """One prompt of exactly `length` tokens: the prompts one after the other, repeated, then cut.

    For prefill timing, where the work depends on the number of tokens and not on which they are.
    """
    joined = [token for prompt in prompts for token in prompt.tokens]
    repeated = joined * -(-length // len(joined))
    return Prompt(f"{length} tokens", "", tuple(repeated[:length]))


def in_contexts(prompts: Sequence[Prompt], lengths: Sequence[int], most: int) -> tuple[list[Prompt], list[int]]:
    """The first three prompts at each length, behind as much of the whole set as it takes: (prompts, left out).

    most: tokens that a prompt may have here. Lengths above it are left out and returned, for the record.
    """
    joined = [token for prompt in prompts for token in prompt.tokens]
    made = []
    for length in (n for n in lengths if n <= most):
        filler = joined * -(-length // len(joined))
        made += [Prompt(f"{p.name}, {length} tokens", p.text, (*filler, *p.tokens)[-length:]) for p in prompts[:3]]
    return made, [n for n in lengths if n > most]
