"""Chats and texts -> rows of 512 tokens, several documents a row.

A row is uint16: bits 0..12 the token, bit 13 "the model is to say this" (full loss weight), bit 14 "a document starts here".
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from demo_model.paths import TOKENIZER

ROW = 512
TOKEN_MASK, SAY, START = 0x1FFF, 1 << 13, 1 << 14
ENDOFTEXT, IM_START, IM_END, THINK = 0, 1, 2, 3


def load_tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TOKENIZER / "tokenizer.json"))


def chat_text(turns: list[str], system: str | None = None, thought: str | None = None) -> str:
    """The text that the shipped chat template renders, with the reply in it."""
    parts = [f"<|im_start|>system\n{system}<|im_end|>\n"] if system else []
    for i, turn in enumerate(turns):
        if i % 2 == 0:
            parts.append(f"<|im_start|>user\n{turn}<|im_end|>\n")
        else:
            think = f"<think>\n{thought}\n</think>\n\n" if thought and i == len(turns) - 1 else ""
            parts.append(f"<|im_start|>assistant\n{think}{turn}<|im_end|>\n")
    return "".join(parts)


def read_chats(path: Path) -> Iterator[str]:
    with path.open() as f:
        for line in f:
            c = json.loads(line)
            yield chat_text(c["turns"], c.get("system"), c.get("thought"))


def encode(tok: Tokenizer, texts: Iterable[str], size: int = 50_000) -> tuple[np.ndarray, np.ndarray]:
    """All ids end to end, and each document's length."""
    ids, lengths, batch = [], [], []

    def flush() -> None:
        for e in tok.encode_batch_fast(batch, add_special_tokens=False):
            lengths.append(len(e.ids))
            ids.append(np.array(e.ids, np.uint16))
        batch.clear()

    for text in texts:
        batch.append(text)
        if len(batch) == size:
            flush()
    flush()
    return np.concatenate(ids), np.array(lengths)


def chat_flags(tok: Tokenizer, ids: np.ndarray) -> np.ndarray:
    """True where the assistant speaks: from after its role line through <|im_end|>; an opened <think> line is given, not said."""
    assistant = tok.token_to_id("assistant")
    starts, ends = np.flatnonzero(ids == IM_START), np.flatnonzero(ids == IM_END)
    assert len(starts) == len(ends)
    mine = ids[starts + 1] == assistant
    edge = np.zeros(len(ids) + 1, np.int8)
    np.add.at(edge, starts[mine] + 3, 1)
    np.add.at(edge, ends[mine] + 1, -1)
    said = edge.cumsum()[:-1].astype(bool)
    opened = np.flatnonzero(ids == THINK)
    said[opened] = False
    said[opened + 1] = False
    return said


def pack(ids: np.ndarray, said: np.ndarray, lengths: np.ndarray, seed: int) -> np.ndarray:
    """Rows [N, 512]; documents in random order, none split (the end of a longer one is lost)."""
    order = np.random.default_rng(seed).permutation(len(lengths))
    begin = np.concatenate([[0], lengths.cumsum()[:-1]])
    keep = np.minimum(lengths, ROW)
    place = np.empty(len(lengths), np.int64)
    row, used = 0, 0
    for d in order.tolist():
        n = int(keep[d])
        if used + n > ROW:
            row, used = row + 1, 0
        place[d] = row * ROW + used
        used += n
    out = np.full((row + 1) * ROW, ENDOFTEXT | START, np.uint16)
    within = np.arange(keep.sum()) - np.repeat(keep.cumsum() - keep, keep)
    source = np.repeat(begin, keep) + within
    target = np.repeat(place, keep) + within
    out[target] = (
        ids[source]
        | np.where(said[source], SAY, 0).astype(np.uint16)
        | np.where(within == 0, START, 0).astype(np.uint16)
    )
    return out.reshape(-1, ROW)


def pack_chats(texts: Iterable[str], seed: int = 0) -> np.ndarray:
    tok = load_tokenizer()
    ids, lengths = encode(tok, texts)
    return pack(ids, chat_flags(tok, ids), lengths, seed)


def pack_natural(path: Path, seed: int = 0) -> np.ndarray:
    tok = load_tokenizer()
    ids, lengths = encode(tok, (t + "<|endoftext|>" for t in path.read_text().split("\x1e")))
    return pack(ids, np.ones(len(ids), bool), lengths, seed)
