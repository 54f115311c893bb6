"""An engine that plays a script instead of a model: for screenshots and for the tests. No MLX, no weights.

It speaks the engine's events with the engine's identities (emitted = accepted + 1 - cut), from a fixed random seed.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.enginelike import Progress
from engine import (
    ContextUse,
    DrafterInfo,
    EndReason,
    EngineInfo,
    Event,
    ExactnessState,
    Finished,
    LoadOptions,
    LoadProgress,
    Notice,
    PrefillProgress,
    Receipt,
    ReplyStats,
    Request,
    Round,
    Segment,
    Speculation,
    StatsBuilder,
    Text,
    Verdict,
)

Script = Callable[[Request], tuple[str, str]]
"""(reasoning, answer) for a request."""

DEMO_INFO = EngineInfo(
    name="Pacenote demo 20M",
    path="resources/demo",
    parameters=19_900_000,
    target_bytes=14_200_000,
    quantization="4-bit group 64",
    context_length=4096,
    device="Scripted, no model",
    policy="bfloat16 activations, prefill in chunks of 512",
    weights_hash="0" * 16,
    revision="",
    drafter=DrafterInfo("resources/demo/mtp", "4-bit group 64", "default", 1_540_000, 5_400_000),
    drafter_reason="",
    verdict=Verdict(
        ExactnessState.EXACT_FORCED,
        "forced_qmv",
        "Stock kernels differed at block size 3, the forced one-row kernel did not.",
        widths=(2, 3, 4, 5),
        inputs=24,
        cost=1.06,
        seconds=2.4,
    ),
    load_seconds=1.2,
    supports_thinking=True,
)


@dataclass(frozen=True, slots=True)
class Pieces:
    """How a text is cut into tokens: at random from 1 to `most` characters, from a seed, so every run is the same."""

    seed: int = 1
    most: int = 6

    def cut(self, text: str) -> list[str]:
        rng = random.Random(self.seed)
        parts: list[str] = []
        at = 0
        while at < len(text):
            size = rng.randint(1, self.most)
            parts.append(text[at : at + size])
            at += size
        return parts


class ScriptedEngine:
    """Plays `script`. gate: called before every round, to slow down or to hold; it may raise to play a failure."""

    def __init__(
        self,
        script: Script,
        *,
        info: EngineInfo = DEMO_INFO,
        pieces: Pieces = Pieces(),
        gate: Callable[[int], None] | None = None,
    ) -> None:
        self.info = info
        self.detailed_timing = True
        self.requests: list[Request] = []
        self.closed = False
        self.kept: list[tuple[str, Path]] = []
        self.cannot_keep: Notice | None = None
        self.differs_at: int | None = None
        self._script = script
        self._pieces = pieces
        self._gate = gate

    def close(self) -> None:
        self.closed = True

    def save_chat(self, path: Path) -> Notice | None:
        self.kept.append(("saved", path))
        return self.cannot_keep

    def restore_chat(self, path: Path) -> None:
        self.kept.append(("restored", path))

    def generate(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        self.requests.append(request)
        prompt = tuple(range(8 * len(request.messages)))
        yield PrefillProgress(0, len(prompt), 0, 0.0)
        yield PrefillProgress(len(prompt), len(prompt), 0, 0.021)
        reasoning, answer = self._script(request)
        tokens = [("reasoning", part) for part in self._pieces.cut(reasoning)]
        tokens += [("answer", part) for part in self._pieces.cut(answer)]
        cut_off = len(tokens) > request.max_tokens + len(request.begun)
        tokens = tokens[: request.max_tokens + len(request.begun)]
        rng = random.Random(request.seed)
        rounds: list[Round] = []
        said = {"reasoning": "", "answer": ""}

        def say(parts: list[tuple[str, str]]) -> Iterator[Text]:
            for channel, part in parts:
                said[channel] += part
                yield Text(part, "answer" if channel == "answer" else "reasoning")

        # A reply that goes on is told from its beginning; what is begun costs no rounds.
        begun = min(len(request.begun), len(tokens))
        at = min(begun + 1, len(tokens))
        yield from say(tokens[:at])
        while at < len(tokens) and not stop.is_set():
            if self._gate is not None:
                self._gate(len(rounds))
            round_ = self._round(request, rng, len(rounds), len(prompt) + at, len(tokens) - at)
            ends = [(len(said["answer"]), len(said["reasoning"]))]
            for token in tokens[at : at + round_.emitted]:
                yield from say([token])
                ends.append((len(said["answer"]), len(said["reasoning"])))
            round_ = replace(round_, ends=tuple(ends))
            at += round_.emitted
            rounds.append(round_)
            yield round_
        kept = 200_000 * (len(request.messages) + 1)
        yield ContextUse(len(prompt) + at, self.info.context_length, 0, len(request.messages) + 1, kept, 1 << 30)
        reason = EndReason.STOPPED if at < len(tokens) else EndReason.BUDGET if cut_off else EndReason.EOS
        ids = tuple(range(1000, 1000 + at))
        yield Finished(
            reason=reason,
            tokens=ids,
            segments=(Segment("prefill", prompt), Segment("decode", ids[:-1])),
            answer=said["answer"],
            reasoning=said["reasoning"],
            stats=stats_of(rounds, len(prompt), token=at > begun),
            seed=request.seed,
        )

    def verify(
        self, request: Request, tokens: Sequence[int], stop: threading.Event
    ) -> Iterator[PrefillProgress | Receipt]:
        """A script is always the same; `differs_at` plays a reply that is not."""
        yield PrefillProgress(8, 8, 0, 0.01)
        place, count = self.differs_at, len(tokens)
        if stop.is_set():
            yield Receipt(identical=False, compared=0, tokens=count, complete=False)
        elif place is None:
            yield Receipt(identical=True, compared=count, tokens=count, complete=True)
        else:
            yield Receipt(False, place, count, True, place, tokens[place], 7, 11.5, 11.25)

    def _round(self, request: Request, rng: random.Random, index: int, position: int, left: int) -> Round:
        widths = [w for w in self.info.verdict.widths if w <= request.block_size and self.info.drafter is not None]
        classic = request.speculation is Speculation.OFF or not widths or index % 16 == 15
        width = 1 if classic else max(widths)
        accepted = 0
        while accepted < width - 1 and rng.random() < 0.78 - 0.12 * accepted:
            accepted += 1
        cut = max(0, accepted + 1 - left)
        emitted = accepted + 1 - cut
        return Round(
            index=index,
            position=position,
            width=width,
            drafted=width - 1,
            accepted=accepted,
            emitted=emitted,
            cut=cut,
            draft_ms=0.0 if classic else 1.6 + rng.random() * 0.3,
            verify_ms=(30.0 if classic else 33.0) + rng.random() * 2,
            rollback_ms=0.0 if accepted == width - 1 else 0.7 + rng.random() * 0.1,
            hook_ms=0.0 if classic else 1.9 + rng.random() * 0.3,
            host_ms=0.6 + rng.random() * 0.2,
            tokens=tuple(range(1000 + position, 1000 + position + emitted)),
            parked=classic and request.speculation is Speculation.ON,
        )


def stats_of(rounds: list[Round], prompt_tokens: int, *, token: bool = True) -> ReplyStats:
    """The figures that the engine gives for these rounds. token: the prefill gave a first token."""
    builder = StatsBuilder()
    builder.prefill(PrefillProgress(prompt_tokens, prompt_tokens, 0, 0.021), token=token)
    for event in rounds:
        builder.observe(event)
    return builder.build()


class ScriptedLoader:
    """A `Loader` that gives a ScriptedEngine. `fail`: raised instead, for the next load only."""

    def __init__(self, engine: Callable[[LoadOptions], ScriptedEngine]) -> None:
        self._engine = engine
        self.engines: list[ScriptedEngine] = []
        self.fail: Exception | None = None

    def __call__(self, options: LoadOptions, progress: Progress, cancel: threading.Event) -> ScriptedEngine:
        progress(LoadProgress("reading weights", 0, 2))
        failure, self.fail = self.fail, None
        if failure is not None:
            raise failure
        progress(LoadProgress("checking exactness", 1, 2))
        made = self._engine(options)
        if options.quantize_drafter is False and made.info.drafter is not None:
            dense = replace(
                made.info.drafter,
                representation="dense bfloat16",
                bytes=made.info.drafter.dense_bytes,
                decided_by="setting",
            )
            made.info = replace(made.info, drafter=dense)
        self.engines.append(made)
        return made
