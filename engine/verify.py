"""Replay a reply by classic decode and compare: the receipt that speculation changed nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import inf
from typing import cast

import mlx.core as mx

from engine.arrays import token
from engine.events import Receipt
from engine.sampling import Chooser
from engine.session import Reached
from engine.target import Target


def compare(target: Target, prompt: Reached, chooser: Chooser, tokens: Sequence[int], stop: threading.Event) -> Receipt:
    """Choose every token of a reply anew, one row at a time, and compare it with the one written.

    Args:
        prompt: the caches at the end of the prompt; they are fed the reply.
        chooser: with the reply's sampler and seed.
        tokens: the reply, `Finished.tokens`.
    """
    state, rows = prompt.state, prompt.rows
    for n, written in enumerate(tokens):
        if stop.is_set():
            return Receipt(identical=False, compared=n, tokens=len(tokens), complete=False)
        chosen = chooser.row(rows.logits[0], state.length)
        if (replayed := token(chosen)) != written:
            scores = rows.logits[0].astype(mx.float32)
            known = 0 <= written < target.vocab_size  # a log can hold anything
            return Receipt(
                identical=False, compared=n, tokens=len(tokens), complete=True, position=n, written=written,
                replayed=replayed, written_logit=cast(float, scores[written].item()) if known else -inf,
                replayed_logit=cast(float, scores[replayed].item()),
            )  # fmt: skip
        chooser.emit(chosen)
        if n < len(tokens) - 1:
            rows = target.step(chosen, state)
    return Receipt(identical=True, compared=len(tokens), tokens=len(tokens), complete=True)
