"""The store of boundaries: keyed by schedule, bounded by bytes, shared arrays counted once."""

from __future__ import annotations

import random
from itertools import pairwise

import mlx.core as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backend import Backend, Compute, Device
from engine.request import Segment
from engine.session import Boundaries, Boundary, boundary_budget, name, schedule_key
from engine.session.boundaries import ROOT
from engine.session.boundary import HeadPart

SEGMENTS = st.lists(
    st.builds(Segment, st.sampled_from(["prefill", "decode"]), st.lists(st.integers(0, 9), max_size=3).map(tuple)),
    max_size=4,
)
KIB = 2**10


def boundary(kib: int, *spans: mx.array) -> Boundary:
    """Its own state of so many KiB, and key-value spans that others may hold too."""
    half = mx.zeros(128 * kib)
    return Boundary(1, ((half, mx.zeros(128 * kib)),), tuple(((s, s),) for s in spans))


def place(*numbers: int) -> bytes:
    return schedule_key([Segment("prefill", (n,)) for n in numbers])


@given(SEGMENTS, SEGMENTS)
def test_keys_tell_schedules_apart(a: list[Segment], b: list[Segment]) -> None:
    """The same tokens cut or computed in another way are another place."""
    assert (schedule_key(a) == schedule_key(b)) == (a == b)


def test_the_deepest_prefix_is_found() -> None:
    p, d, q = Segment("prefill", (1, 2)), Segment("decode", (3,)), Segment("prefill", (4,))
    store = Boundaries(2**30)
    assert store.deepest([p, d]) == (0, 0, None)
    first, second = boundary(1), boundary(1)
    store.keep(schedule_key([p]), first)
    store.keep(schedule_key([p, d]), second)
    assert store.deepest([p, d, q]) == (2, 0, second)
    assert store.deepest([p, q]) == (1, 0, first)
    assert store.deepest([Segment("decode", (1, 2))]) == (0, 0, None)


def test_a_place_inside_a_segment_serves_longer_segments_of_its_kind_only() -> None:
    """A prefill computes its last token alone: one that ends there, or before, was cut in another way."""
    store, start = Boundaries(2**30), Segment("prefill", (9,))
    parent, four, two = schedule_key([start]), boundary(1), boundary(1)
    store.keep_part(parent, "prefill", (1, 2, 3, 4), four)
    store.keep_part(parent, "prefill", (1, 2), two)
    assert store.deepest([start, Segment("prefill", (1, 2, 3, 4, 5))]) == (1, 4, four)
    assert store.deepest([start, Segment("prefill", (1, 2, 3, 4))]) == (1, 2, two)
    assert store.deepest([start, Segment("prefill", (1, 2, 9, 4, 5))]) == (1, 2, two)
    assert store.deepest([start, Segment("prefill", (1, 2))]) == (0, 0, None)
    assert store.deepest([start, Segment("decode", (1, 2, 3, 4, 5))]) == (0, 0, None)
    assert store.deepest([Segment("prefill", (1, 2, 3, 4, 5))]) == (0, 0, None)


def test_the_least_recently_used_goes_first() -> None:
    store = Boundaries(3 * KIB)
    for n in range(3):
        store.keep(place(n), boundary(1))
    store.deepest([Segment("prefill", (0,))])
    store.keep(place(3), boundary(1))
    assert [store.get(place(n)) is not None for n in range(4)] == [True, False, True, True]
    assert store.nbytes == store.budget


def test_what_nothing_comes_back_to_goes_before_what_is_older() -> None:
    store = Boundaries(3 * KIB)
    store.keep(place(0), boundary(1))
    store.keep(place(1), boundary(1))
    store.keep(place(2), boundary(1), expendable=True)
    store.keep(place(3), boundary(1))
    assert [store.get(place(n)) is not None for n in range(4)] == [True, True, False, True]


def test_one_that_exceeds_the_budget_is_not_kept_and_drops_nothing() -> None:
    store = Boundaries(2 * KIB)
    assert store.keep(place(1), boundary(1))
    assert not store.keep(place(2), boundary(3))
    assert not store.keep_part(ROOT, "prefill", (1,), boundary(3))
    assert len(store) == 1


@given(st.randoms(), st.integers(4, 40))
def test_bytes_are_those_of_the_distinct_arrays_that_are_alive(luck: random.Random, budget: int) -> None:
    """Twenty boundaries of a chat hold its keys and values once; dropping one frees what nobody else holds."""
    store = Boundaries(budget * KIB)
    spans = [mx.zeros(256 * luck.randint(0, 3)) for _ in range(6)]
    for n in range(25):
        made = boundary(luck.randint(0, 2), *spans[: luck.randint(0, 6)])
        if luck.random() < 0.2:
            store.keep_part(place(n), "prefill", (n,), made)
        else:
            store.keep(place(luck.randint(0, 9)), made, expendable=luck.random() < 0.2)
        alive = {id(a): a.nbytes for b in store._kept.values() for a in b.arrays()}
        assert store.nbytes == sum(alive.values()) <= store.budget
        assert store._parts.keys() <= store._kept.keys(), "a part that was dropped is not looked for again"
    store.clear()
    assert store.nbytes == 0
    assert len(store) == 0


def test_a_place_that_is_kept_again_keeps_the_longer_history_of_the_head() -> None:
    """It was read without a head first, then with one: speculation was turned on in the middle of a chat."""
    store = Boundaries(2**30)
    told = HeadPart(0, 0, (), ((mx.zeros(3), mx.zeros((3, 4))),))
    bare, whole = boundary(1), Boundary(1, (), (), head=told)
    for made in (bare, whole, bare):
        store.keep(place(1), made)
    assert store.get(place(1)) is whole
    assert store.nbytes == whole.nbytes


def test_names_are_chained() -> None:
    """Branches share their stem: a place is its parent's name and one segment."""
    segments = [Segment("prefill", (1,)), Segment("decode", (2, 3)), Segment("prefill", (4,))]
    places = [schedule_key(segments[:n]) for n in range(4)]
    assert places[0] == ROOT
    assert all(name(a, s) == b for (a, b), s in zip(pairwise(places), segments, strict=True))


@pytest.mark.parametrize(
    ("memory", "wired", "weights", "expected"),
    [
        (32, 22, 14, 4.0),  # a 27B in 4 bit on a Mac with 32 GB: half of what its weights leave of the working set
        (24, 16, 16, 0.5),  # nothing is left: a few boundaries all the same
        (16, 0, 2, 3.0),  # no working-set limit: half of the memory counts
        (0, 0, 0, 4.0),  # nothing is known
    ],
)
def test_the_budget_follows_from_the_working_set(memory: int, wired: int, weights: int, expected: float) -> None:
    backend = Backend(
        Device.METAL, "", "", Compute.STORED, 2048, True, memory=memory * 2**30, wired_limit=wired * 2**30
    )
    assert boundary_budget(backend, weights * 2**30) == int(expected * 2**30)
