"""Draft with the head, and take in what the target accepted."""

from __future__ import annotations

import mlx.core as mx

from engine.drafter.head import MTPHead
from engine.drafter.state import HeadState
from engine.events import DrafterInfo
from engine.sampling import Chooser
from engine.target import Target


class Drafter:
    """An MTP head bound to a target, whose embeddings and LM head it borrows."""

    def __init__(self, head: MTPHead, target: Target, info: DrafterInfo) -> None:
        self.head = head
        self.info = info
        self._target = target

    def accept_hook(self, state: HeadState) -> mx.array:
        """Compute every pending entry. Returns [1, H], the head's output after the last: the next seed's hidden.

        Long histories go in chunks of the prefill size, so that memory stays bounded.
        """
        if not state.pending:
            if state.output is None:
                raise RuntimeError("nothing to take in: tell the head what was accepted first")
            return state.output
        ids, hidden = state.take()
        chunk = self._target.backend.prefill_chunk
        while ids.shape[0] > chunk:
            self.head.remember(self._target.embed(ids[:chunk]), hidden[:chunk], state.cache)
            mx.eval(state.cache.state)
            ids, hidden = ids[chunk:], hidden[chunk:]
        state.output = self._forward(ids, hidden, state)
        return state.output

    def choose(self, hidden: mx.array, chooser: Chooser, position: int, drafted: list[mx.array]) -> mx.array:
        """The head's token for a position, [1], from its output [1, H]: one read of the LM head."""
        return chooser.row(self._target.logits(hidden)[0], position, drafted)

    def draft_block(
        self, seed: mx.array, hidden: mx.array, count: int, chooser: Chooser, position: int, state: HeadState
    ) -> list[mx.array]:
        """Propose `count` tokens for positions `position`, `position` + 1, ...

        Args:
            seed: [1], the first draft, computed by the accept hook.
            hidden: [1, H], the head output the seed came from.
            state: gets one speculative entry per further draft; drop them with `drop_after`.

        Returns:
            `count` arrays [1], unevaluated, the seed first.
        """
        drafts = [seed]
        while len(drafts) < count:
            hidden = self._forward(drafts[-1], hidden, state)
            drafts.append(self.choose(hidden, chooser, position + len(drafts), drafts))
        return drafts

    def _forward(self, next_ids: mx.array, hidden: mx.array, state: HeadState) -> mx.array:
        return self.head(self._target.embed(next_ids), hidden, state.cache)
