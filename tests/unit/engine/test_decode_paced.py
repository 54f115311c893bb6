"""What the pace is told of a reply, and what a round says of it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from engine.decode import paced
from engine.events import EndReason, Round
from tests.support.device import costs, round_of


class Told:
    """A parked pace that writes down what it is told."""

    parked, width = True, 1

    def __init__(self) -> None:
        self.ended: list[bool] = []
        self.waiting: list[int] = []

    def observe(self, _: Round, *, waiting: int, detailed: bool, ended: bool) -> None:
        self.waiting.append(waiting)
        self.ended.append(ended)

    def take_notices(self) -> list[Any]:
        return []


def test_a_look_is_no_parked_round_and_the_last_round_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block has no accept hook at the end of a reply, and would seem to be cheaper than it is."""
    line = SimpleNamespace(ended=None, waiting=0)
    rounds = [round_of(1, 0, costs(0.1)), round_of(3, 2, costs(0.1)), round_of(1, 0, costs(0.1))]

    def loop() -> Iterator[Round]:
        for n, round_ in enumerate(rounds):
            line.waiting = n
            if n == len(rounds) - 1:
                line.ended = EndReason.EOS
            yield round_

    monkeypatch.setattr(sys.modules[paced.__module__], "loops", lambda *_: iter([loop()]))
    pace: Any = Told()
    target: Any = None
    done = list(paced(target, None, line, threading.Event(), pace, False))
    assert [round_.parked for round_ in done if isinstance(round_, Round)] == [True, False, True]
    assert pace.ended == [False, False, True]
    assert pace.waiting == [0, 1, 2]
