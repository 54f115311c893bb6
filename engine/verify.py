"""Replay a reply by classic decode and compare: the receipt that speculation changed nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import inf
from typing import cast

import mlx.core as mx

from engine.arrays import token
from engine.chat.reply import ReplyStream
from engine.chat.tokenizer import Tokenizer
from engine.events import EndReason, Receipt
from engine.request import Request
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


def retell(
    tokenizer: Tokenizer, request: Request, tokens: Sequence[int], vocab_size: int, *, in_reasoning: bool
) -> tuple[str, str, EndReason | None]:
    """(answer, reasoning, why the reply ends with its last token) of a whole reply.

    The reason is EOS or STOP_STRING; None where only a budget or somebody from outside can have ended it.

    Raises:
        ValueError: it had ended before its last token, or one of them is none of the model's.
    """
    if any(not 0 <= written < vocab_size for written in tokens):  # a log can hold anything
        raise ValueError("it holds tokens that this model does not have")
    stream = ReplyStream(
        tokenizer,
        max_tokens=len(tokens) + 1,
        stop=request.stop,
        ignore_eos=request.ignore_eos,
        in_reasoning=in_reasoning,
    )
    for written in tokens:
        stream.push(written)
    return *stream.finish(), stream.reason
