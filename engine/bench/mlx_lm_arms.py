"""The peer: mlx-lm's own loop on the same weights in the same process.

`generate_step` is what `mlx_lm.stream_generate` runs. Its tokenizer and text are left out, in its favour.
Imports of mlx-lm's generator are late: they take seconds and only these arms need them.
"""

from __future__ import annotations

import threading
from typing import Any

import mlx.core as mx

from engine.arrays import token, token_array
from engine.bench.arms import Arm, Task, begin
from engine.bench.clock import measured
from engine.bench.prompts import Prompt
from engine.bench.rig import Rig
from engine.bench.sample import Sample
from engine.bench.tally import peer_forwards
from engine.decode.prefill import Interrupted
from engine.target import TargetState
from engine.target.recurrence import RecurrentSlot

DEFAULT_CHUNK = 2048
"""`prefill_step_size` of `generate_step` (mlx-lm 0.32)."""


def mlx_lm_arm(rig: Rig, task: Task) -> Arm:
    """Greedy decode from the same boundary as our arms.

    Like our classic loop it is given the first token, and has one forward in flight when its clock stops.
    """
    model = rig.tally.watched_peer(rig.target.model)

    def run(prompt: Prompt, stop: threading.Event) -> Sample:
        from mlx_lm.generate import generate_step

        line = begin(rig, task, prompt, stop, follow=False)
        tokens = [line.last]
        cache = _peer_cache(rig, line.state)
        with measured(rig) as clock:
            for chosen, _ in generate_step(token_array(tokens), model, max_tokens=task.tokens - 1, prompt_cache=cache):
                tokens.append(chosen)
                if stop.is_set():
                    raise Interrupted
            clock.stop()
        return Sample(clock.seconds, tuple(tokens), clock.counts)

    return Arm("mlx_lm", run, frozenset({peer_forwards(1)}))


def mlx_lm_prefill_arm(rig: Rig, chunk: int, length: int) -> Arm:
    """From an empty cache to the first token on the host, in chunks of `chunk` rows, for prompts of `length` tokens."""
    model = rig.tally.watched_peer(rig.target.model)

    def run(prompt: Prompt, stop: threading.Event) -> Sample:
        from mlx_lm.generate import generate_step

        sampled: list[mx.array] = []

        def greedy(log_probs: mx.array) -> mx.array:
            sampled.append(mx.argmax(log_probs, axis=-1))
            return sampled[-1]

        ids, cache = token_array(prompt.tokens), rig.target.model.make_cache()
        with measured(rig) as clock:
            # Asked for no token, the generator ends when the first one is evaluated, and queues no second.
            for _ in generate_step(
                ids, model, max_tokens=0, prefill_step_size=chunk, prompt_cache=cache, sampler=greedy
            ):
                raise RuntimeError("mlx-lm gave a token although none was asked for")
            first = token(sampled[0])
            clock.stop()
        if stop.is_set():
            raise Interrupted
        return Sample(clock.seconds, (first,), clock.counts)

    return Arm(
        f"mlx_lm prefill, chunk {chunk}", run, frozenset({peer_forwards(1), peer_forwards(min(chunk, length - 1))})
    )


def _peer_cache(rig: Rig, state: TargetState) -> list[Any]:
    """mlx-lm's own cache classes, holding what our state holds."""
    cache: list[Any] = rig.target.model.make_cache()
    for theirs, ours in zip(cache, state.slots, strict=True):
        if isinstance(ours, RecurrentSlot):
            theirs[0], theirs[1] = ours[0], ours[1]
        else:
            theirs.keys, theirs.values, theirs.offset = ours.keys, ours.values, ours.offset
    return cache
