"""The segment schedule survives its blob, and a blob that is not one of ours is refused in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store import segments as codec
from engine import Segment

token = st.integers(0, 2**32 - 1)
segment = st.builds(Segment, st.sampled_from(["prefill", "decode"]), st.lists(token, max_size=50).map(tuple))


@given(st.lists(segment, max_size=8))
def test_round_trip(schedule: list[Segment]) -> None:
    assert codec.unpack(codec.pack(schedule)) == tuple(schedule)


def test_nothing_is_nothing() -> None:
    assert codec.unpack(None) == ()


def test_about_two_bytes_a_token() -> None:
    schedule = [Segment("prefill", tuple(range(1000, 3000)))]
    assert len(codec.pack(schedule)) < 3 * 2000


@pytest.mark.parametrize("blob", [b"", b"\x02abc", b"\x01not zlib", codec.pack([Segment("decode", (1, 2))])[:-6]])
def test_damage_is_told(blob: bytes) -> None:
    with pytest.raises(ValueError, match="segment schedule"):
        codec.unpack(blob)
