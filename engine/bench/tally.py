"""Counts what really ran, inside the models, so that an arm cannot claim to be another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from engine.drafter import Drafter
from engine.target import Target


def forwards(rows: int) -> str:
    """Counter of target forwards of so many rows: 1 is a classic step, K a verify block or a prefill chunk."""
    return f"target forwards, {_rows(rows)}"


def peer_forwards(rows: int) -> str:
    """Counter of forwards that mlx-lm's own loop asked for."""
    return f"mlx_lm forwards, {_rows(rows)}"


def drafts(drafter: str) -> str:
    """Counter of tokens that a named head proposed."""
    return f"drafts of the {drafter} head"


def products(kernel: str) -> str:
    """Counter of products that a named verify kernel computed."""
    return f"products by {kernel}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


class Tally:
    """Counters over the objects of one rig: methods wrapped on its own instances, until `release`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._wrapped: list[tuple[object, str]] = []

    def watch_target(self, target: Target) -> None:
        # `step` and `verify` both go through `hidden`.
        self._watch(target, "hidden", lambda tokens, state: (forwards(tokens.shape[0]), 1))

    def watch_drafter(self, name: str, drafter: Drafter) -> None:
        self._watch(drafter, "draft_block", lambda seed, hidden, count, *rest: (drafts(name), count))

    def watched_peer(self, model: Any) -> Callable[..., mx.array]:
        """`model` as mlx-lm calls it, counted. The model itself stays as it is."""

        def forward(tokens: mx.array, **keywords: Any) -> mx.array:
            self.counts[peer_forwards(tokens.shape[1])] += 1
            return model(tokens, **keywords)

        return forward

    def _watch(self, owner: object, method: str, entry: Callable[..., tuple[str, int]]) -> None:
        plain = getattr(owner, method)

        def counted(*args: Any) -> Any:
            name, amount = entry(*args)
            self.counts[name] += amount
            return plain(*args)

        setattr(owner, method, counted)
        self._wrapped.append((owner, method))

    def release(self) -> None:
        """Leave all instances as they were."""
        for owner, method in self._wrapped:
            delattr(owner, method)
        self._wrapped.clear()
