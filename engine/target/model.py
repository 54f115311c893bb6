"""The target: mlx-lm's Qwen3.5 model, wrapped. Shapes: K rows, H hidden size, V vocabulary; batch is always 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import KVCache

from engine.backend import Backend
from engine.exactness.kernels.base import Scope
from engine.exactness.modules import wrap
from engine.target.recurrence import RecurrentSlot
from engine.target.state import Slot, TargetState


class Rows(NamedTuple):
    """What a forward gives per row. logits: [K, V]. hidden: [K, H], after the final norm."""

    logits: mx.array
    hidden: mx.array


class Target:
    """A loaded target model. All methods belong to the one thread that loaded it."""

    def __init__(self, model: nn.Module, text_config: Mapping[str, Any], backend: Backend) -> None:
        """Take ownership of `model`: its layers are replaced by twins that can be rolled back and re-routed.

        scope: which kernels a verify forward uses; set by the exactness ladder.
        """
        self.model = model
        self.text_config = text_config
        self.backend = backend
        self.scope = Scope()
        wrap(model, self.scope)
        self._inner = model.language_model.model
        self._tied = bool(model.language_model.args.tie_word_embeddings)

    @property
    def layers(self) -> list[Any]:
        """The decoder layers, in order."""
        return list(self._inner.layers)

    def final_norm(self, x: mx.array) -> mx.array:
        return self._inner.norm(x)

    def modules(self) -> list[nn.Module]:
        """Every module of the model."""
        return [module for _, module in self.model.named_modules()]

    @property
    def hidden_size(self) -> int:
        return int(self.text_config["hidden_size"])

    @property
    def vocab_size(self) -> int:
        return int(self.text_config["vocab_size"])

    @property
    def dtype(self) -> mx.Dtype:
        """Type of the activations."""
        return self._inner.norm.weight.dtype

    def new_state(self) -> TargetState:
        every, replay = self.backend.start_every, self.backend.replay_recurrence
        slots: list[Slot] = [
            RecurrentSlot(replay=replay, starts=bool(every) and n > 0 and n % every == 0)
            if layer.is_linear
            else KVCache()
            for n, layer in enumerate(self._inner.layers)
        ]
        return TargetState(slots)

    def embed(self, ids: mx.array) -> mx.array:
        """[n] token ids -> [n, H]."""
        return self._inner.embed_tokens(ids)

    def logits(self, hidden: mx.array) -> mx.array:
        """[n, H] after the final norm -> [n, V]. The drafter borrows this head too."""
        if self._tied:
            return self._inner.embed_tokens.as_linear(hidden)
        return self.model.language_model.lm_head(hidden)

    def hidden(self, tokens: mx.array, state: TargetState) -> mx.array:
        """Feed [n] tokens, lazily. Returns [n, H]; the LM head is not computed."""
        out = self._inner(tokens[None], state.slots)[0]
        state.length += tokens.shape[0]
        return out

    def step(self, token: mx.array, state: TargetState) -> Rows:
        """Feed one token, [1], lazily: the classic decode step."""
        hidden = self.hidden(token, state)
        return Rows(self.logits(hidden), hidden)

    def verify(self, tokens: mx.array, state: TargetState) -> Rows:
        """Feed a block of [K] tokens, lazily, recording what `rollback` needs."""
        slots = state.recurrent
        for slot in slots:
            slot.recording, slot.tape = True, None
        try:
            with self.scope.verifying(state.length + tokens.shape[0], tokens.shape[0]):
                hidden = self.hidden(tokens, state)
                return Rows(self.logits(hidden), hidden)
        finally:
            for slot in slots:
                slot.recording = False

    def rollback(self, state: TargetState, rows: int, kept: int) -> None:
        """After a verify of `rows` tokens keep the first `kept` (1 or more) and forget the others."""
        if not 1 <= kept <= rows:
            raise ValueError(f"kept must be between 1 and {rows}, not {kept}")
        for layer, slot in zip(self._inner.layers, state.slots, strict=True):
            if isinstance(slot, RecurrentSlot):
                if kept < rows:
                    layer.linear_attn.rollback(slot, kept)
                slot.tape = None  # a tape pins every row's state
            else:
                slot.trim(rows - kept)
        state.length -= rows - kept
