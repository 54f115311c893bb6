"""Our prefill as an arm: from an empty cache to the first token on the host."""

from __future__ import annotations

import threading

import mlx.core as mx

from engine.arrays import token
from engine.bench.arms import Arm
from engine.bench.clock import measured
from engine.bench.prompts import Prompt
from engine.bench.rig import Rig
from engine.bench.sample import Sample
from engine.bench.tally import forwards
from engine.decode import prefill
from engine.drafter import HeadState
from engine.target import Rows

HEAD_ROWS = "rows told to the head"


def prefill_arm(rig: Rig, *, head: bool) -> Arm:
    """head: a head follows and keeps the hiddens. Its own forward comes later, in the first accept hook."""

    def run(prompt: Prompt, stop: threading.Event) -> Sample:
        state, history = rig.target.new_state(), HeadState() if head else None
        rows: Rows | None = None
        with measured(rig) as clock:
            for part in prefill(rig.target, prompt.tokens, state, history, stop):
                if isinstance(part, Rows):
                    rows = part
            assert rows is not None
            first = token(mx.argmax(rows.logits[0], keepdims=True))
            clock.stop()
        counts = dict(clock.counts)
        if history is not None:
            counts[HEAD_ROWS] = history.end
        return Sample(clock.seconds, (first,), counts)

    name = f"prefill, chunk {rig.target.backend.prefill_chunk}" + (", head follows" if head else "")
    return Arm(name, run, frozenset({forwards(1), HEAD_ROWS} if head else {forwards(1)}))
