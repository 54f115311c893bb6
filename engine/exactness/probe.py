"""The probe: block against chain, byte for byte, through the production path.

A pass says "block = chain on N inputs". It is evidence, not a proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import mlx.core as mx

from engine.arrays import token_array, token_list
from engine.target import Rows, Target, TargetState

PREFIX = 8
"""Tokens before the block. More prefixes, across attention thresholds, come with the full ladder."""
DRAWS = 3
"""One draw can pass by luck (mlxcel #1193)."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """passed: widths without one differing byte. failures: (width, what differed first). inputs: comparisons made."""

    passed: tuple[int, ...]
    failures: tuple[tuple[int, str], ...]
    inputs: int
    seconds: float


def same_bytes(a: mx.array, b: mx.array) -> bool:
    """Equal shape, type and bytes, and no NaN: a NaN that equals a NaN is still a broken forward."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if mx.issubdtype(a.dtype, mx.floating) and bool(mx.any(mx.isnan(a)).item()):
        return False
    bits = {8: mx.uint64, 4: mx.uint32, 2: mx.uint16, 1: mx.uint8}[a.dtype.size]
    return bool(mx.array_equal(mx.contiguous(a).view(bits), mx.contiguous(b).view(bits)).item())


def _state_arrays(state: TargetState) -> list[mx.array]:
    snapshot = state.snapshot()
    return [array for pair in snapshot.arrays for array in pair]


def _chain(target: Target, state: TargetState, tokens: Sequence[int]) -> tuple[list[Rows], list[list[mx.array]]]:
    """Single steps over `tokens`. Returns each step's rows, and every cache after each step."""
    rows, caches = [], []
    for token in tokens:
        row = target.step(token_array([token]), state)
        mx.eval(row)
        rows.append(row)
        caches.append(_state_arrays(state))
    return rows, caches


def _first_difference(
    target: Target, state: TargetState, tokens: Sequence[int], rows: list[Rows], caches: list[list[mx.array]]
) -> str:
    """Run one block over `tokens`, keep all but its last row, run the rest again. "" when every byte agrees."""
    width = len(tokens)
    ids = token_array(tokens)
    block = target.verify(ids, state)
    for j in range(width):
        if not same_bytes(block.logits[j : j + 1], rows[j].logits):
            return f"logits of row {j + 1}"
        if not same_bytes(block.hidden[j : j + 1], rows[j].hidden):
            return f"hidden of row {j + 1}"
    if not all(map(same_bytes, _state_arrays(state), caches[width - 1])):
        return "a cache after the block"
    kept = max(1, width - 1)
    target.rollback(state, width, kept)
    if not all(map(same_bytes, _state_arrays(state), caches[kept - 1])):
        return f"a cache after rollback to {kept} rows"
    again = target.step(ids[kept:], state)
    if not same_bytes(again.logits, rows[kept].logits):
        return "logits of a step after rollback"
    return ""


def probe(target: Target, widths: Sequence[int], seed: int = 0) -> ProbeResult:
    """Compare verify blocks of every width with single steps, on random tokens.

    An exception or a NaN counts as a failure of that width: a probe that could not run has not passed.
    """
    started = perf_counter()
    longest = max(widths)
    failures: dict[int, str] = {}
    inputs = 0
    for draw in range(DRAWS):
        key = mx.random.key(seed + draw)
        tokens = token_list(mx.random.randint(0, target.vocab_size, (PREFIX + longest,), key=key))
        state = target.new_state()
        hidden = target.hidden(token_array(tokens[:PREFIX]), state)
        mx.eval(hidden, state.arrays())
        start = state.snapshot()
        rows, caches = _chain(target, state, tokens[PREFIX:])
        for width in widths:
            if width in failures:
                continue
            state = target.new_state()
            state.restore(start)
            try:
                what = _first_difference(target, state, tokens[PREFIX : PREFIX + width], rows, caches)
            except Exception as e:  # noqa: BLE001  the reason goes into the verdict
                what = f"{type(e).__name__}: {e}"
            inputs += 1
            if what:
                failures[width] = what
    passed = tuple(w for w in widths if w not in failures)
    return ProbeResult(passed, tuple(sorted(failures.items())), inputs, perf_counter() - started)
