"""A clock that tests move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Clock:
    """Seconds that pass only where a wrapped call says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def after(self, call: Callable[..., Any], cost: Callable[..., float]) -> Callable[..., Any]:
        """`call`, which takes `cost` milliseconds. Both are given its positional arguments."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.now += cost(*args) / 1e3
            return call(*args, **kwargs)

        return timed
