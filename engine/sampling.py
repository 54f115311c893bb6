"""From a row of logits and its history to a token, as a pure function of (logits, history, seed, position).

Noise is keyed by absolute position: token t = argmax(processed logits + gumbel(seed, t)). So the target's
choice at a position does not depend on how many rows were computed together, and accepting a draft when it
equals that choice is exact at every temperature. The drafter is given the same noise, so it agrees often.

Order of processing: logit bias, penalties, temperature, top-k, top-p, min-p. All in float32, one row at a
time, so that a row of a verify block goes through the very operations of a classic step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mlx.core as mx

from engine.request import Sampler


class Chooser:
    """Chooses tokens for one reply. Token arrays stay on the device and may be unevaluated.

    Args:
        sampler: how to choose.
        seed: of this reply, 0 to 2**32 - 1.
        vocab: V, the number of logits in a row.
        prompt: the prompt's token ids; they count for the repetition penalty.
    """

    def __init__(self, sampler: Sampler, seed: int, vocab: int, prompt: Sequence[int]) -> None:
        self._sampler = sampler
        self._seed = seed
        self._vocab = vocab
        self._greedy = sampler.temperature == 0.0
        self._penalised = sampler.repetition_penalty != 1.0 or sampler.presence_penalty != 0.0
        self._plain = self._greedy and not self._penalised and not sampler.logit_bias
        self._bias: mx.array | None = None
        if sampler.logit_bias:
            ids, values = zip(*sampler.logit_bias, strict=True)
            if not all(0 <= i < vocab for i in ids):
                raise ValueError(f"logit_bias names a token outside 0..{vocab - 1}")
            self._bias = mx.zeros(vocab).at[mx.array(ids)].add(mx.array(values, dtype=mx.float32))
        if self._penalised:
            self._ids = mx.arange(vocab)
            self._in_reply = mx.zeros(vocab, dtype=mx.bool_)
            # vLLM's convention: repetition looks at prompt and reply, presence at the reply only.
            self._in_prompt = mx.zeros(vocab, dtype=mx.bool_)
            if prompt:
                self._in_prompt[mx.array(sorted(set(prompt)))] = True

    def emit(self, tokens: mx.array) -> None:
        """Tokens [n] joined the reply; rows chosen from now on see them."""
        if self._penalised:
            for i in range(tokens.shape[0]):
                self._in_reply = self._in_reply | (self._ids == tokens[i])

    def row(self, logits: mx.array, position: int, drafted: Sequence[mx.array] = ()) -> mx.array:
        """Choose the token at an absolute position from its row of logits.

        Args:
            logits: [V].
            position: index of the chosen token in the whole sequence, prompt included.
            drafted: [1] arrays, tokens before this one that are proposed but not emitted.

        Returns:
            The token id, [1] int32-compatible, unevaluated.
        """
        if self._plain:
            return mx.argmax(logits, keepdims=True)
        scores = self._processed(logits, drafted)
        if not self._greedy:
            scores = scores + self.noise(position)
        return mx.argmax(scores, keepdims=True)

    def rows(self, logits: mx.array, position: int, drafted: Sequence[mx.array]) -> mx.array:
        """Choose for every row of a verify block.

        Args:
            logits: [K, V]; row j predicts position + j.
            position: of the token that row 0 predicts.
            drafted: the K - 1 drafts, [1] each; row j sees the first j of them.

        Returns:
            [K] token ids, unevaluated.
        """
        if self._plain:  # the index of a maximum does not depend on how rows are grouped
            return mx.argmax(logits, axis=-1)
        return mx.concatenate([self.row(logits[j], position + j, drafted[:j]) for j in range(logits.shape[0])])

    def noise(self, position: int) -> mx.array:
        """[V] Gumbel noise of a position, float32: threefry keyed by (seed, position)."""
        return mx.random.gumbel((self._vocab,), key=mx.array([self._seed, position], dtype=mx.uint32))

    def log_probs(self, logits: mx.array) -> mx.array:
        """[V] log-probabilities after all processing, for diagnostics (total variation, receipts)."""
        scores = self._processed(logits, ())
        return scores - mx.logsumexp(scores)

    def _processed(self, logits: mx.array, drafted: Sequence[mx.array]) -> mx.array:
        s = self._sampler
        x = logits.astype(mx.float32)
        if self._bias is not None:
            x = x + self._bias
        if self._penalised:
            in_reply = self._in_reply
            for token in drafted:
                in_reply = in_reply | (self._ids == token)
            scaled = mx.where(x > 0, x / s.repetition_penalty, x * s.repetition_penalty)
            x = mx.where(self._in_prompt | in_reply, scaled, x)
            x = mx.where(in_reply, x - s.presence_penalty, x)
        if self._greedy:
            return x
        x = x / s.temperature
        if 0 < s.top_k < self._vocab:
            x = mx.where(x >= mx.sort(x)[-s.top_k], x, -math.inf)
        if s.top_p < 1.0:
            ordered = mx.sort(x)[::-1]
            mass_before = mx.cumsum(mx.softmax(ordered)) - mx.softmax(ordered)
            # The smallest set that reaches top_p: every token with less than top_p of mass before it.
            smallest = mx.min(mx.where(mass_before < s.top_p, ordered, math.inf))
            x = mx.where(x >= smallest, x, -math.inf)
        if s.min_p > 0.0:
            x = mx.where(x >= mx.max(x) + math.log(s.min_p), x, -math.inf)
        return x
