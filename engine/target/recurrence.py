"""Gated DeltaNet layers whose verify blocks can be rolled back.

mlx-lm's layer overwrites its convolution window and recurrent state in one go. A rejected draft must leave
no trace in them (mlx-lm #1111), so a block forward records what is needed to return to any of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import ArraysCache
from mlx_lm.models.gated_delta import gated_delta_update, normalize_qk
from mlx_lm.models.qwen3_5 import GatedDeltaNet

from engine.arrays import queue

CONV, STATE = 0, 1
"""Places of the convolution window and the recurrent state in a slot."""


@dataclass(frozen=True)
class Tape:
    """What one layer's block forward left behind.

    conv_input: [1, kernel - 1 + K, channels], the old window followed by the block's rows.
    states: the recurrent state after each row, [1, heads, value dim, key dim] float32; or empty, and then
    inputs: (q, k, v, a, b), each [1, K, ...], and start: the state before the block.
    """

    conv_input: mx.array
    states: tuple[mx.array, ...]
    inputs: tuple[mx.array, ...]
    start: mx.array | None


class RecurrentSlot(ArraysCache):
    """One layer's convolution window and recurrent state.

    recording: set by the target around a verify forward. tape: filled by the layer while recording.
    replay: record inputs and recompute on rollback, instead of keeping each row's state.
    starts: when a block forward comes to this layer, start the device on what was built so far.
    """

    def __init__(self, *, replay: bool, starts: bool = False) -> None:
        super().__init__(size=2)
        self.recording = False
        self.replay = replay
        self.starts = starts
        self.tape: Tape | None = None


class RecordingDeltaNet(GatedDeltaNet):
    """mlx-lm's layer, plus a forward that fills a tape while its slot is recording."""

    def __call__(self, inputs: mx.array, mask: mx.array | None = None, cache: Any = None) -> mx.array:
        if isinstance(cache, RecurrentSlot) and cache.recording:
            return self._recording_forward(inputs, cache)
        return super().__call__(inputs, mask, cache)

    def _recording_forward(self, inputs: mx.array, slot: RecurrentSlot) -> mx.array:
        if slot.starts:
            queue(inputs)
        batch, rows, _ = inputs.shape
        qkv = self.in_proj_qkv(inputs)
        z = self.in_proj_z(inputs).reshape(batch, rows, self.num_v_heads, self.head_v_dim)
        b = self.in_proj_b(inputs)
        a = self.in_proj_a(inputs)

        window = self.conv_kernel_size - 1
        conv_input = mx.concatenate([slot[CONV], qkv], axis=1)
        slot[CONV] = mx.contiguous(conv_input[:, -window:, :])
        conv_out = nn.silu(self.conv1d(conv_input))
        q, k, v = mx.split(conv_out, [self.key_dim, 2 * self.key_dim], -1)
        q = q.reshape(batch, rows, self.num_k_heads, self.head_k_dim)
        k = k.reshape(batch, rows, self.num_k_heads, self.head_k_dim)
        v = v.reshape(batch, rows, self.num_v_heads, self.head_v_dim)
        q, k = normalize_qk(q, k, inv_scale=self.head_k_dim**-0.5, eps=1e-6)

        start = slot[STATE]
        if slot.replay:
            out, slot[STATE] = self._recur(q, k, v, a, b, start)
            slot.tape = Tape(conv_input, (), (q, k, v, a, b), start)
        else:
            outs, states, state = [], [], start
            for row in range(rows):
                here = slice(row, row + 1)
                out, state = self._recur(q[:, here], k[:, here], v[:, here], a[:, here], b[:, here], state)
                outs.append(out)
                states.append(state)
            out = mx.concatenate(outs, axis=1)
            slot[STATE] = state
            slot.tape = Tape(conv_input, tuple(states), (), None)
        return self.out_proj(self.norm(out, z).reshape(batch, rows, -1))

    def _recur(self, q: mx.array, k: mx.array, v: mx.array, a: mx.array, b: mx.array, state: Any) -> Any:
        return gated_delta_update(q, k, v, a, b, self.A_log, self.dt_bias, state, None, use_kernel=True)

    def rollback(self, slot: RecurrentSlot, kept: int) -> None:
        """Return the slot to the state after the first `kept` rows (1 or more) of the recorded block."""
        tape = slot.tape
        if tape is None:
            raise RuntimeError("rollback without a recorded block")
        window = self.conv_kernel_size - 1
        slot[CONV] = mx.contiguous(tape.conv_input[:, kept : kept + window, :])
        if tape.states:
            slot[STATE] = tape.states[kept - 1]
        else:
            q, k, v, a, b = (x[:, :kept] for x in tape.inputs)
            _, slot[STATE] = self._recur(q, k, v, a, b, tape.start)
