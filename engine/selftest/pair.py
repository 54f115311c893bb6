"""Does a pair load here, is it exact, and does it write with MTP what it writes without?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from engine.events import EngineInfo, ExactnessState, Finished, Verdict
from engine.request import LoadOptions, Message, Request, Speculation
from engine.selftest.check import REPORT, Failed, Finding, Skip

if TYPE_CHECKING:  # MLX comes with it, and takes seconds
    from engine.engine import Engine
    from engine.loading import Pair

TOKENS, WARM_UP = 200, 8
"""Tokens of the compared replies, and of the ones before them that compile kernels and fill caches."""
EXACT = (ExactnessState.EXACT_STOCK, ExactnessState.EXACT_FORCED)
ARMS = (Speculation.OFF, Speculation.ALWAYS)
_NEVER = threading.Event()
Load = Callable[[LoadOptions], "Pair"]


def _load(options: LoadOptions) -> Pair:
    from engine.loading import load_pair

    return load_pair(options, lambda _: None, _NEVER)


class PairChecks:
    """Checks of one pair. It is loaded by the first that needs it; when that fails, only `load` has failed.

    tokens: of the compared replies.
    """

    def __init__(self, options: LoadOptions, *, tokens: int = TOKENS, load: Load = _load) -> None:
        self._options = options
        self._tokens = tokens
        self._load = load
        self._pair: Pair | None = None
        self._failed = False

    def load(self) -> Finding:
        info = self._loaded().info
        if info.drafter is None and self._options.target is None:
            raise Failed(f"The demo model has lost its MTP head. {info.drafter_reason}", todo="Install Pacenote again.")
        head = info.drafter.representation if info.drafter else f"none, {info.drafter_reason}"
        text = f"{info.name} loads in {info.load_seconds:.1f} s: {info.parameters / 1e6:.1f} M parameters"
        lines = (
            f"weights {info.quantization}, {info.weights_hash}", f"head {head}", f"policy {info.policy}",
        )  # fmt: skip
        return Finding(text, lines, facts=asdict(info))

    def exactness(self) -> Finding:
        """Probed anew: a verdict that is kept from an earlier run must still hold."""
        pair = self._usable()
        kept = pair.info.verdict
        self._require_drafter(pair.info)
        verdict = _probe_again(pair, range(2, self._options.max_block + 1)) if kept.cached else kept
        facts = {"verdict": asdict(verdict), "kept": asdict(kept) if kept.cached else None}
        if missing := sorted(set(kept.widths) - set(verdict.widths)):
            raise Failed(
                f"A verdict is kept that widths {', '.join(map(str, missing))} are exact here. A new probe disagrees: "
                f"{verdict.reason}",
                todo="Run the probe again: `pacenote probe --again`, or from the badge in the window. And report this.",
                facts=facts,
            )
        if verdict.state not in EXACT:
            raise Skip(f"{verdict.state.value}: {verdict.reason}")
        kernel = f"kernel {verdict.kernel}, cost {verdict.cost:.2f} of stock"
        again = "; the verdict kept from an earlier run agrees" if kept.cached else ""
        return Finding(f"{verdict.state.value}, {kernel}. {verdict.reason}", (f"probed now{again}",), facts)

    def kernels(self) -> Finding:
        from engine.selftest.kernels import HEADER, assignments, attention, dispatch
        from engine.tables import table

        pair = self._usable()
        rows = assignments(pair.target, speculates=bool(pair.info.verdict.widths))
        used = sorted({row[-1] for row in rows})
        lines = (*table(HEADER, rows), attention(pair.target), *dispatch(pair.target.backend.architecture, pair.target))
        facts = {"modules": [dict(zip(HEADER, row, strict=True)) for row in rows], "attention": attention(pair.target)}
        return Finding(
            f"{len(rows)} kinds of products; a verify block computes them with {', '.join(used)}", lines, facts
        )

    def tokens(self) -> Finding:
        """One reply by classic decode and by MTP, never parked: the same token ids? And how fast?"""
        from engine.bench.environment import crowded, look
        from engine.bench.equality import first_difference
        from engine.bench.prompts import BENCH, read_prompts
        from engine.engine import Engine

        pair = self._usable()
        self._require_drafter(pair.info)
        if not pair.info.verdict.widths:
            raise Skip(f"MTP is not used with this model here: {pair.info.verdict.reason}")
        engine = Engine(pair, self._options.boundary_bytes)
        prompt = read_prompts(BENCH, pair.tokenizer)[0]
        request = Request((Message("user", prompt.text),), max_tokens=WARM_UP, ignore_eos=True)
        for how in ARMS:
            _write(engine, replace(request, speculation=how))
        request = replace(request, max_tokens=self._tokens)
        classic, mtp = (_write(engine, replace(request, speculation=how)) for how in ARMS)
        slow, fast = classic.stats.tokens_per_second, mtp.stats.tokens_per_second
        ratio = fast / slow if slow else 0.0
        facts = {
            "tokens": len(classic.tokens), "identical": classic.tokens == mtp.tokens, "drafted": mtp.stats.drafted,
            "accepted": mtp.stats.accepted, "classic_tokens_per_second": slow, "mtp_tokens_per_second": fast,
            "ratio": ratio,
        }  # fmt: skip
        if (difference := first_difference(classic.tokens, mtp.tokens)) is not None:
            raise Failed(
                f"With MTP {difference}: the text is not that of classic decode.",
                todo=f"Switch MTP off in the settings (`--mtp off` in a terminal). {REPORT}",
                facts=facts,
            )
        if not mtp.stats.drafted:
            raise Failed("Nothing was drafted, so nothing was compared.", todo=REPORT, facts=facts)
        speed = f"{fast:.1f} against {slow:.1f} tokens a second, {ratio:.2f} times classic decode"
        lines = [
            f"{mtp.stats.accepted} of {mtp.stats.drafted} drafts accepted in {mtp.stats.rounds} rounds",
            f"{speed}, in this one run: no benchmark, that is `pacenote bench`",
        ]
        if ratio < 1.0:
            lines.append("MTP was forced here. In a chat it is parked where it is not faster.")
        if busy := crowded(look()):
            lines.append(busy)
        return Finding(f"{len(classic.tokens)} of {len(classic.tokens)} tokens are equal", tuple(lines), facts)

    def _loaded(self) -> Pair:
        if self._pair is None:
            self._failed = True  # until it is there
            self._pair = self._load(self._options)
            self._failed = False
        return self._pair

    def _usable(self) -> Pair:
        if self._failed:
            raise Skip("The model did not load; see the check of the pair.")
        return self._loaded()

    @staticmethod
    def _require_drafter(info: EngineInfo) -> None:
        if info.drafter is None:
            raise Skip(f"There is no MTP head: {info.drafter_reason}")


def _write(engine: Engine, request: Request) -> Finished:
    *_, finished = engine.generate(request, _NEVER)
    assert isinstance(finished, Finished)  # `Engine.generate` promises it
    return finished


def _probe_again(pair: Pair, widths: Sequence[int]) -> Verdict:
    """A fresh decision of the ladder; what the pair has engaged stays engaged."""
    from engine.exactness import ladder

    scope = pair.target.scope
    engaged = scope.kernel, scope.block_limit
    try:
        return ladder.decide(pair.target, widths, pair.info.context_length).verdict
    finally:
        scope.kernel, scope.block_limit = engaged
