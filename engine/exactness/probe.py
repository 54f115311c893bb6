"""The probe: block against chain, byte for byte, through the production path.

Per context (a prefix, real or synthetic) and width K it runs K single steps on the one hand, and on the other a verify
block, a partial rollback and a second block from there; logits, hiddens and every cache slot must agree.
A pass says "block = chain on N inputs". It is evidence, not a proof.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import mlx.core as mx

from engine.arrays import token_array, token_list
from engine.errors import LoadCancelled
from engine.exactness.kernels.base import THRESHOLDS
from engine.target import Rows, Snapshot, Target, TargetState
from engine.target.recurrence import RecurrentSlot

REAL_PREFIXES = (8, 130, 8)
"""Prefixes that are really prefilled, each with its own random tokens. One draw can pass by luck (mlxcel #1193)."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """passed: widths without one differing byte. failures: (width, what differed first). inputs: comparisons made.

    longest: keys up to which block attention was compared. Beyond it a block must attend row by row.
    """

    passed: tuple[int, ...]
    failures: tuple[tuple[int, str], ...]
    inputs: int
    longest: int
    seconds: float


@dataclass(frozen=True)
class Context:
    """A starting point and the tokens that follow it. real: prefilled; otherwise its keys and values are random."""

    start: Snapshot
    tokens: tuple[int, ...]
    real: bool

    @property
    def words(self) -> str:
        return f"after {self.start.length} {'tokens' if self.real else 'synthetic keys'}"


@dataclass
class Comparison:
    """Collects pairs that must be equal and evaluates them together: one wait instead of hundreds."""

    names: list[str] = field(default_factory=list)
    flags: list[mx.array] = field(default_factory=list)

    def add(self, name: str, a: mx.array, b: mx.array) -> None:
        self.names.append(name)
        self.flags.append(_equal(a, b))

    def first_difference(self) -> str:
        """Name of the first unequal pair, "" when there is none."""
        equal = mx.stack(self.flags).tolist() if self.flags else []
        return next((name for name, same in zip(self.names, equal, strict=True) if not same), "")  # type: ignore[arg-type]


def _equal(a: mx.array, b: mx.array) -> mx.array:
    """Whether two arrays have the same bytes and no NaN: a NaN that equals a NaN is still a broken forward."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return mx.array(False)
    bits = {8: mx.uint64, 4: mx.uint32, 2: mx.uint16, 1: mx.uint8}[a.dtype.size]
    same = mx.array_equal(mx.contiguous(a).view(bits), mx.contiguous(b).view(bits))
    return same & ~mx.any(mx.isnan(a)) if mx.issubdtype(a.dtype, mx.floating) else same


def same_bytes(a: mx.array, b: mx.array) -> bool:
    """Equal shape, type and bytes, and no NaN."""
    return bool(_equal(a, b).item())


def state_arrays(state: TargetState) -> list[mx.array]:
    """Views of every cache, cut to what was fed. Lazy."""
    out: list[mx.array] = []
    for slot in state.slots:
        out.extend((slot[0], slot[1]) if isinstance(slot, RecurrentSlot) else slot.keys_and_values())
    return out


def contexts(target: Target, longest_width: int, context_length: int, seed: int = 0) -> Iterator[Context]:
    """The starting points, cheap ones first, so that a failure is found early. No block here crosses a threshold."""
    need = 2 * longest_width
    for draw, prefix in enumerate(REAL_PREFIXES):
        tokens = _random_tokens(target, prefix + need, seed + draw)
        state = target.new_state()
        hidden = target.hidden(token_array(tokens[:prefix]), state)
        mx.eval(hidden, state.arrays())
        yield Context(state.snapshot(), tuple(tokens[prefix:]), real=True)
    for draw, threshold in enumerate(THRESHOLDS):
        for length in (threshold - need - 1, threshold + 1):
            if length + need <= context_length:
                key = seed + 100 + draw
                yield Context(_synthetic(target, length, key), tuple(_random_tokens(target, need, key)), real=False)


def _random_tokens(target: Target, count: int, seed: int) -> list[int]:
    return token_list(mx.random.randint(0, target.vocab_size, (count,), key=mx.random.key(seed)))


def _synthetic(target: Target, length: int, seed: int) -> Snapshot:
    """A state whose attention caches hold `length` random entries; recurrent parts are those of a short prefill."""
    state = target.new_state()
    mx.eval(target.hidden(token_array(_random_tokens(target, 4, seed)), state), state.arrays())
    pairs = []
    for n, slot in enumerate(state.slots):
        if isinstance(slot, RecurrentSlot):
            pairs.append((slot[0], slot[1]))
            continue
        keys, values = slot.keys_and_values()
        shape = (*keys.shape[:2], length, keys.shape[3])
        k, v = mx.random.split(mx.random.key(seed + n))
        pairs.append((mx.random.normal(shape, keys.dtype, key=k), mx.random.normal(shape, values.dtype, key=v)))
    mx.eval(pairs)
    return Snapshot(length, tuple(pairs))


@dataclass(frozen=True)
class Chain:
    """Single steps: the rows of each, and the caches after each."""

    rows: list[Rows]
    caches: list[list[mx.array]]


def run_chain(target: Target, context: Context, steps: int) -> Chain:
    """`steps` classic steps from the context."""
    state = target.new_state()
    state.restore(context.start)
    rows, caches = [], []
    for token in context.tokens[:steps]:
        row = target.step(token_array([token]), state)
        cache = [mx.contiguous(a) for a in state_arrays(state)]
        mx.eval(row, cache)
        rows.append(row)
        caches.append(cache)
    return Chain(rows, caches)


def compare(target: Target, context: Context, chain: Chain, width: int, kept: int) -> str:
    """A block, a rollback to `kept` rows, a second block: what differs from the chain first, "" for nothing."""
    state = target.new_state()
    state.restore(context.start)
    found = Comparison()
    block = target.verify(token_array(context.tokens[:width]), state)
    _compare_rows(found, block, chain.rows[:width], "row")
    _compare_caches(found, state, chain.caches[width - 1], "after the block")
    target.rollback(state, width, kept)
    _compare_caches(found, state, chain.caches[kept - 1], f"after rollback to {kept} of {width} rows")
    again = target.verify(token_array(context.tokens[kept : kept + width]), state)
    _compare_rows(found, again, chain.rows[kept : kept + width], "second block, row")
    target.rollback(state, width, width)
    _compare_caches(found, state, chain.caches[kept + width - 1], "after the second block")
    return found.first_difference()


def _compare_rows(found: Comparison, block: Rows, chain: Sequence[Rows], where: str) -> None:
    for j, row in enumerate(chain):
        found.add(f"hidden of {where} {j + 1}", block.hidden[j : j + 1], row.hidden)
        found.add(f"logits of {where} {j + 1}", block.logits[j : j + 1], row.logits)


def _compare_caches(found: Comparison, state: TargetState, expected: Sequence[mx.array], when: str) -> None:
    for n, (a, b) in enumerate(zip(state_arrays(state), expected, strict=True)):
        slot = state.slots[n // 2]
        part = ("window", "state") if isinstance(slot, RecurrentSlot) else ("keys", "values")
        found.add(f"{part[n % 2]} of layer {n // 2 + 1} {when}", a, b)


def probe(
    target: Target,
    widths: Sequence[int],
    context_length: int = 2048,
    seed: int = 0,
    cancel: threading.Event | None = None,
) -> ProbeResult:
    """Compare verify blocks of every width with single steps, with whatever kernels the target's scope has.

    An exception or a NaN counts as a failure of that width: a probe that could not run has not passed. Stops
    early when no width is left.

    Raises:
        LoadCancelled: `cancel` was set between two blocks.
    """
    started = perf_counter()
    longest = max(widths)
    failures: dict[int, str] = {}
    inputs = reached = 0
    try:
        for n, context in enumerate(contexts(target, longest, context_length, seed)):
            left = [w for w in widths if w not in failures]
            if not left:
                break
            chain = run_chain(target, context, 2 * max(left))
            for width in left:
                if cancel is not None and cancel.is_set():
                    raise LoadCancelled
                kept = 1 + (n % (width - 1)) if width > 2 else 1  # another cut in every context
                try:
                    what = compare(target, context, chain, width, kept)
                except Exception as e:  # noqa: BLE001  the reason goes into the verdict
                    what = f"{type(e).__name__}: {e}"
                inputs += 1
                if what:
                    failures[width] = f"{what}, {context.words}"
            reached = max(reached, context.start.length + 2 * longest)
    except LoadCancelled:
        raise
    except Exception as e:  # noqa: BLE001  no chain, so nothing was compared
        failures |= {w: f"single steps fail: {type(e).__name__}: {e}" for w in widths if w not in failures}
    passed = tuple(w for w in widths if w not in failures)
    return ProbeResult(passed, tuple(sorted(failures.items())), inputs, reached, perf_counter() - started)
