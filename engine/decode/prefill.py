"""Feed known tokens: prompts by the prefill rule, replies as they were decoded. Identical in every arm."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import mlx.core as mx

from engine.arrays import token_array
from engine.drafter import HeadState
from engine.target import Rows, Target, TargetState


class Interrupted(Exception):
    """Stop was asked for between two chunks. The state holds whole chunks only."""


def prefill(
    target: Target, tokens: Sequence[int], state: TargetState, head: HeadState | None, stop: threading.Event
) -> Iterator[int | Rows]:
    """Feed one prefill segment: chunks of the backend's size from its start, its last token alone.

    Yields the number of tokens done after each chunk, and last the `Rows` of the final token (K = 1).

    Raises:
        Interrupted: `stop` was set between chunks.
    """
    if not tokens:
        raise ValueError("a prefill segment holds at least one token")
    chunk, last = target.backend.prefill_chunk, len(tokens) - 1
    ids = token_array(tokens)
    done = 0
    while done < last:
        if stop.is_set():
            raise Interrupted
        size = min(chunk, last - done)
        hidden = target.hidden(ids[done : done + size], state)
        if head is not None:
            head.tell(ids[done + 1 : done + size + 1], hidden)
        # Nobody reads the hiddens when no head follows: the last layer's MLP is then never computed.
        mx.eval(state.arrays() if head is None else (hidden, state.arrays()))
        mx.clear_cache()  # chunks differ in size; freed buffers would only pile up
        done += size
        yield done
    rows = target.step(ids[last:], state)
    mx.eval(rows, state.arrays())
    yield len(tokens)
    yield rows


def replay(
    target: Target,
    tokens: Sequence[int],
    state: TargetState,
    head: HeadState | None,
    width: int,
    next_token: int | None,
    stop: threading.Event,
) -> Iterator[int]:
    """Feed a decode segment again, one row at a time or in verify blocks of an exact width.

    Args:
        width: rows of a block; above 1 only where the probe passed for it. A rest goes one row at a time.
        next_token: the token after the segment, for the head's last entry.

    Yields the number of tokens done.

    Raises:
        Interrupted: `stop` was set between blocks.
    """
    following = [*tokens[1:], next_token if next_token is not None else 0]
    done = 0
    while done < len(tokens):
        if stop.is_set():
            raise Interrupted
        size = width if len(tokens) - done >= width else 1  # a narrower block is another width, and may not be exact
        ids = token_array(tokens[done : done + size])
        if size > 1:
            hidden = target.verify(ids, state).hidden
            target.rollback(state, size, size)
        else:
            hidden = target.hidden(ids, state)
        if head is not None:
            head.tell(token_array(following[done : done + size]), hidden)
        mx.eval(hidden, state.arrays())
        done += size
        yield done
