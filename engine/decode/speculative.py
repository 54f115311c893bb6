"""The speculative round: draft_block, verify forward, walk, rollback, accept hook. Reference mtp.md 2."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import perf_counter

import mlx.core as mx

from engine.arrays import queue, token_array, token_list
from engine.decode.line import Line
from engine.drafter import Drafter
from engine.events import Round
from engine.target import Target


def count_accepted(drafts: list[int], targets: list[int]) -> int:
    """Length of the longest prefix where draft and target agree. targets has one more element."""
    accepted = 0
    while accepted < len(drafts) and drafts[accepted] == targets[accepted]:
        accepted += 1
    return accepted


def speculative(
    target: Target,
    drafter: Drafter,
    line: Line,
    stop: threading.Event,
    next_width: Callable[[], int],
    detailed: bool,
) -> Iterator[Round]:
    """Decode until the reply ends, `stop` is set, or `next_width` answers 1 (park).

    Args:
        next_width: rows of the next verify block, asked before each round.
        detailed: synchronise after each stage, so that its milliseconds are its own.

    Whatever is drafted, a token is emitted only if it is the target's own choice at its position.
    """
    state, head, chooser = line.state, line.head, line.chooser
    if head is None:
        raise ValueError("speculation needs the head's history")
    entered = perf_counter()
    hidden = drafter.accept_hook(head)
    # The token at state.length is `last`; the seed proposes the one after it.
    seed = drafter.choose(hidden, chooser, state.length + 1, [])
    if detailed:
        mx.eval(seed)
    started = perf_counter()
    # What the head had not computed yet (its share of the prefill, or of a parked stretch) is accept-hook time.
    catch_up = (started - entered) * 1e3
    while not stop.is_set() and (width := next_width()) > 1:
        position, entries = state.length + 1, head.cache.offset
        drafts = drafter.draft_block(seed, hidden, width - 1, chooser, position, head)
        if detailed:
            mx.eval(drafts)
        elif target.backend.start_every:
            queue(*drafts)  # the device drafts while Python builds the verify forward
        drafted = perf_counter()

        rows = target.verify(mx.concatenate([token_array([line.last]), *drafts]), state)
        chosen = chooser.rows(rows.logits, position, drafts)
        proposed = mx.concatenate(drafts)
        mx.eval(chosen, proposed)
        verified = perf_counter()

        targets = token_list(chosen)
        accepted = count_accepted(token_list(proposed), targets)
        kept = 0
        for token in targets[: accepted + 1]:
            kept += 1
            line.ended = line.ends(token)
            if line.ended is not None:
                break
        emitted = tuple(targets[:kept])
        walked = perf_counter()

        target.rollback(state, width, kept)
        if detailed:
            mx.eval(state.arrays())
        rolled_back = perf_counter()

        # Entries made from the head's own hidden are dropped; the accepted rows go in with true hiddens.
        head.drop_after(entries)
        head.tell(chosen[:kept], rows.hidden[:kept])
        chooser.emit(chosen[:kept])
        line.last = emitted[-1]
        if line.ended is None:
            hidden = drafter.accept_hook(head)
            seed = drafter.choose(hidden, chooser, state.length + 1, [])
            if detailed:
                mx.eval(seed)
            else:
                queue(seed)
        hooked = perf_counter()

        line.rounds += 1
        yield Round(
            index=line.rounds - 1, position=position, width=width, drafted=width - 1, accepted=accepted,
            emitted=kept, cut=accepted + 1 - kept, draft_ms=(drafted - started) * 1e3,
            verify_ms=(verified - drafted) * 1e3, rollback_ms=(rolled_back - walked) * 1e3,
            hook_ms=(hooked - rolled_back) * 1e3 + catch_up, host_ms=(walked - verified) * 1e3, tokens=emitted,
        )  # fmt: skip
        if line.ended is not None:
            return
        catch_up = 0.0
        started = perf_counter()
