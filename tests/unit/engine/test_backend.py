"""The policy of a device, and what overrides it."""

from __future__ import annotations

import pytest

from engine.backend import Compute, detect
from engine.errors import KnownError


@pytest.mark.parametrize("asked", ["dense float32", "Dense Float32", " dense float32 "])
def test_a_way_to_hold_weights_may_be_asked_for(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACENOTE_COMPUTE", asked)
    assert detect().compute is Compute.DENSE_FLOAT32


def test_an_unknown_way_is_refused_with_those_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback or a silent default would leave a measurement of something else."""
    monkeypatch.setenv("PACENOTE_COMPUTE", "float16")
    with pytest.raises(KnownError, match="PACENOTE_COMPUTE=float16") as error:
        detect()
    assert "stored, float32, dense bfloat16, dense float32" in error.value.todo


def test_an_empty_setting_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACENOTE_COMPUTE", "")
    asked = detect()
    monkeypatch.delenv("PACENOTE_COMPUTE")
    assert asked == detect()
