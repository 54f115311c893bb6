"""One loaded pair made measurable: drafters bound to one target, counters, and boundaries that are read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from engine.bench.prompts import Prompt
from engine.bench.tally import Tally
from engine.checkpoint.folder import open_folder
from engine.decode import prefill
from engine.drafter import Drafter, HeadSnapshot, HeadState
from engine.errors import KnownError
from engine.events import LoadProgress
from engine.loading import Pair, load_drafter, load_pair, quantize_switch
from engine.request import LoadOptions
from engine.target import Rows, Snapshot, TargetState

KEPT_BOUNDARIES = 32
"""Of a 27B model one is about 150 MB plus its keys and values."""

QUANTIZED, DENSE, CONVERTED = "quantized", "dense", "pre-converted"


class Boundary(NamedTuple):
    """Everything at the end of a prompt."""

    target: Snapshot
    head: HeadSnapshot
    rows: Rows


class Rig:
    """Everything that the arms of one benchmark share.

    drafters: by name, all bound to the one target. Empty when the pair has no head.
    widths: block sizes that were probed, to be measured and checked where they passed.
    """

    def __init__(self, pair: Pair, drafters: Mapping[str, Drafter], most: int) -> None:
        """most: rows of the widest block that was probed, `LoadOptions.max_block`."""
        self.pair = pair
        self.widths = range(2, most + 1)
        self.target = pair.target
        self.drafters: dict[str, Drafter] = {}
        self.tally = Tally()
        self.tally.watch_target(pair.target)
        for name, drafter in drafters.items():
            self.add(name, drafter)
        self._boundaries: OrderedDict[Prompt, Boundary] = OrderedDict()

    def add(self, name: str, drafter: Drafter) -> None:
        """One more head on the same target."""
        self.drafters[name] = drafter
        self.tally.watch_drafter(name, drafter)

    def boundary(self, prompt: Prompt, stop: threading.Event) -> Boundary:
        """The end of the prompt, read once and kept. Its head part waits, not computed, and serves every head.

        Raises:
            Interrupted: `stop` was set while reading.
        """
        kept = self._boundaries.get(prompt)
        if kept is None:
            state, head = self.target.new_state(), HeadState()
            rows: Rows | None = None
            for part in prefill(self.target, prompt.tokens, state, head, stop):
                if isinstance(part, Rows):
                    rows = part
            assert rows is not None
            kept = self._boundaries[prompt] = Boundary(state.snapshot(), head.snapshot(), rows)
            if len(self._boundaries) > KEPT_BOUNDARIES:
                self._boundaries.popitem(last=False)
        return kept

    def close(self) -> None:
        """Stop counting and let go of the boundaries. The pair itself stays usable."""
        self.tally.release()
        self._boundaries.clear()

    def restored(self, boundary: Boundary) -> tuple[TargetState, HeadSnapshot, Rows]:
        """A fresh state at the boundary, what a head was told up to it, and the last prompt token's rows."""
        state = self.target.new_state()
        state.restore(boundary.target)
        return state, boundary.head, boundary.rows


def usable_widths(rig: Rig) -> tuple[int, ...]:
    """Block sizes that passed the exactness probe here.

    Raises:
        KnownError: there is none, or no head; with the engine's reason.
    """
    info = rig.pair.info
    widths = tuple(w for w in rig.widths if w in info.verdict.widths)
    if not rig.drafters or not widths:
        reason = info.verdict.reason if rig.drafters else info.drafter_reason
        raise KnownError(f"There is no MTP to measure here. {reason}", todo="Choose a model with a usable MTP head.")
    return widths


def load_rig(
    options: LoadOptions, report: Callable[[LoadProgress], None], cancel: threading.Event, *, both_heads: bool
) -> Rig:
    """Load a pair, with the head a second time in the other representation when `both_heads`.

    Raises:
        KnownError, LoadCancelled: as `engine.load`.
    """
    pair = load_pair(options, report, cancel)
    if pair.drafter is None:
        return Rig(pair, {}, options.max_block)
    packed = pair.drafter.info.decided_by == "checkpoint"  # such a head has no dense twin
    quantized = packed or quantize_switch(options.quantize_drafter)[0]
    drafters = {QUANTIZED if quantized else DENSE: pair.drafter}
    if both_heads and not packed:
        report(LoadProgress("Reading the MTP head again"))
        other = replace(options, quantize_drafter=not quantized)
        drafters[DENSE if quantized else QUANTIZED] = load_drafter(
            open_folder(Path(pair.info.path)), pair.target, other
        )
    return Rig(pair, drafters, options.max_block)
