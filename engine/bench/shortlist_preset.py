"""A drafter that reads only part of the LM head: what a draft-vocabulary shortlist saves, and what it costs.

The target decides every token from the whole vocabulary, so a shortlist cannot change the text. A token outside it
is never drafted. BPE numbers its tokens in the order of their merges, frequent ones first, so the list is the first
n ids and the ends of a reply. Known from FR-Spec (arXiv 2502.14856) and vLLM's draft vocabularies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import mlx.core as mx

from engine.bench.arms import Task, again, block_arm, classic_arm
from engine.bench.experiment import Comparison, Experiment
from engine.bench.prompts import Prompt
from engine.bench.rig import Rig, usable_widths
from engine.drafter import Drafter
from engine.sampling import Chooser
from engine.target import Target

BLOCK = 4
SHARES = (2, 4, 8)
"""The list holds V over this many tokens."""


class ShortlistDrafter(Drafter):
    """The same head, which chooses among some tokens only.

    Args:
        first: so many ids from 0 on.
        ends: ids that are drafted as well, wherever they lie.
    """

    def __init__(self, drafter: Drafter, target: Target, first: int, ends: Iterable[int]) -> None:
        super().__init__(drafter.head, target, replace(drafter.info, source=f"{drafter.info.source}, {first} tokens"))
        self._whole = target.vocab_size
        late = sorted({token for token in ends if token >= first})
        self._ids = mx.concatenate([mx.arange(first), mx.array(late, dtype=mx.int32)]) if late else mx.arange(first)
        self._rows = _lm_head_rows(target, self._ids)

    def choose(self, hidden: mx.array, chooser: Chooser, position: int, drafted: list[mx.array]) -> mx.array:
        few = self._few(hidden)
        # Back in a row of V logits: the noise of a sampled reply is drawn for all of them.
        row = mx.full(self._whole, -math.inf, dtype=few.dtype)
        row[self._ids] = few
        return chooser.row(row, position, drafted)

    def _few(self, hidden: mx.array) -> mx.array:
        """[1, H] -> [n] logits of the listed tokens."""
        weight, packed = self._rows
        if packed is None:
            return (hidden @ weight.T)[0]
        return mx.quantized_matmul(hidden, weight, transpose=True, **packed)[0]


def _lm_head_rows(target: Target, ids: mx.array) -> tuple[mx.array, dict[str, Any] | None]:
    """Rows of the LM head: (weights, None) as they are, or (packed weights, the rest of their scheme)."""
    model = target.model.language_model
    module = model.lm_head if hasattr(model, "lm_head") else model.model.embed_tokens
    weight = module.weight[ids]
    if not hasattr(module, "scales"):
        mx.eval(weight)
        return weight, None
    packed: dict[str, Any] = {
        "scales": module.scales[ids], "group_size": module.group_size, "bits": module.bits, "mode": module.mode,
    }  # fmt: skip
    if module.get("biases") is not None:
        packed["biases"] = module.biases[ids]
    mx.eval(weight, packed)
    return weight, packed


def shortlist(rig: Rig, prompts: Sequence[Prompt], task: Task) -> list[Experiment]:
    """The head on the whole vocabulary against itself on shorter lists, at one block."""
    usual = next(iter(rig.drafters))
    whole, size = rig.drafters[usual], rig.target.vocab_size
    ends = rig.pair.tokenizer.eos_ids
    names = {share: f"{usual}, {size // share} tokens" for share in SHARES}
    for share, name in names.items():
        if name not in rig.drafters:
            rig.add(name, ShortlistDrafter(whole, rig.target, size // share, ends))
    classic = classic_arm(rig, task)
    width = min(usable_widths(rig), key=lambda w: abs(w - BLOCK))
    full = block_arm(rig, task, usual, width)
    lists = [block_arm(rig, task, name, width) for name in names.values()]
    return [
        Experiment(
            title=f"Shortlists at block {width}",
            work=f"{task.tokens - 1} tokens after the first, from a restored boundary; the head's prefill included",
            tokens=task.tokens - 1,
            arms=[classic, full, again(full), *lists],
            prompts=prompts,
            control=(full.name, again(full).name),
            comparisons=[Comparison(full.name, classic.name), *(Comparison(arm.name, full.name) for arm in lists)],
            equal_to=classic.name,
            must_equal=frozenset(arm.name for arm in (full, again(full), *lists)),
            stages=[block_arm(rig, task, name, width, detailed=True) for name in (usual, *names.values())],
        )
    ]
