"""Boundaries: keyed by schedule, bounded by bytes."""

from __future__ import annotations

import mlx.core as mx
from hypothesis import given
from hypothesis import strategies as st

from engine.request import Segment
from engine.session import Boundaries, Boundary, schedule_key
from engine.target import Snapshot

SEGMENTS = st.lists(
    st.builds(Segment, st.sampled_from(["prefill", "decode"]), st.lists(st.integers(0, 9), max_size=3).map(tuple)),
    max_size=4,
)


def boundary(kib: int) -> Boundary:
    return Boundary(Snapshot(1, ((mx.zeros(128 * kib), mx.zeros(128 * kib)),)), None)


@given(SEGMENTS, SEGMENTS)
def test_keys_tell_schedules_apart(a: list[Segment], b: list[Segment]) -> None:
    """The same tokens cut or computed in another way are another place."""
    assert (schedule_key(a) == schedule_key(b)) == (a == b)


def test_the_deepest_prefix_is_found() -> None:
    p, d, q = Segment("prefill", (1, 2)), Segment("decode", (3,)), Segment("prefill", (4,))
    store = Boundaries(2**30)
    assert store.deepest([p, d]) == (0, None)
    first, second = boundary(1), boundary(1)
    store.keep([p], first)
    store.keep([p, d], second)
    assert store.deepest([p, d, q]) == (2, second)
    assert store.deepest([p, q]) == (1, first)
    assert store.deepest([Segment("decode", (1, 2))]) == (0, None)


def test_the_least_recently_used_goes_first() -> None:
    store = Boundaries(3 * 2**10)
    a, b, c, d = ([Segment("prefill", (n,))] for n in range(4))
    for segments in (a, b, c):
        store.keep(segments, boundary(1))
    store.deepest(a)
    store.keep(d, boundary(1))
    assert [store.deepest(s)[0] for s in (a, b, c, d)] == [1, 0, 1, 1]
    assert store.nbytes <= store.budget


def test_one_that_exceeds_the_budget_is_not_kept_and_drops_nothing() -> None:
    store = Boundaries(2 * 2**10)
    store.keep([Segment("prefill", (1,))], boundary(1))
    store.keep([Segment("prefill", (2,))], boundary(3))
    assert len(store) == 1
