"""The facade: load a pair once, then write replies. Everything on one thread; `stop` may be set from any."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import cast

import mlx.core as mx

from engine.arrays import token, token_array
from engine.backend import wired
from engine.chat.prompt import Plan, plan
from engine.chat.reply import ReplyStream
from engine.decode import Line, classic, prefill, replay, speculative
from engine.decode.prefill import Interrupted
from engine.drafter import HeadState
from engine.errors import ContextFull
from engine.events import (
    EndReason,
    EngineInfo,
    Event,
    ExactnessState,
    Finished,
    LoadProgress,
    Notice,
    PrefillProgress,
    Receipt,
    Round,
)
from engine.loading import Pair, load_pair
from engine.pace import Pace
from engine.request import LoadOptions, Request, Segment, Speculation
from engine.sampling import Chooser
from engine.session import Boundaries, Boundary
from engine.target import Rows, TargetState
from engine.telemetry.stats import StatsBuilder

BOUNDARY_SHARE = 0.1
"""Part of the device's memory that boundaries may take."""


class Engine:
    """A loaded pair and the chats it remembers.

    Not thread-safe: MLX streams are bound to the thread that loaded the pair, so all calls come from there.

    detailed_timing: synchronise between the stages of a round, so that each one's milliseconds are its own.
    """

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._pace = Pace(pair.costs, pair.info.verdict.widths if pair.drafter else ())
        self._boundaries = Boundaries(int(BOUNDARY_SHARE * (pair.target.backend.memory or 2**33)))
        self.detailed_timing = True

    @property
    def info(self) -> EngineInfo:
        return self._pair.info

    @property
    def boundary_bytes(self) -> int:
        """Bytes of all kept boundaries."""
        return self._boundaries.nbytes

    def generate(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        """Write one reply.

        Yields PrefillProgress, Notice, Text and Round events in the order they happen, and always one
        Finished at the end, also after `stop`.

        Raises:
            ContextFull: the prompt does not fit. Raised before any work, nothing is lost.
        """
        with wired(self._pair.target.backend):
            yield from self._generate(request, stop)

    def verify(
        self, request: Request, tokens: Sequence[int], stop: threading.Event
    ) -> Iterator[PrefillProgress | Receipt]:
        """Replay a reply by classic decode from the same boundary, and compare token by token.

        Args:
            request: the one that wrote the reply, with its messages, sampler and seed.
            tokens: `Finished.tokens` of the reply.

        Yields PrefillProgress while reading the prompt, then one Receipt. Stops early, with what was compared,
        when `stop` is set.

        Raises:
            ContextFull: the prompt does not fit.
        """
        with wired(self._pair.target.backend):
            yield from self._verify(request, tokens, stop)

    def close(self) -> None:
        """Let go of the model and give its memory back to the system."""
        self._boundaries.clear()
        del self._pair
        gc.collect()
        mx.clear_cache()

    # -- one reply, in the order it happens ------------------------------------------------------------

    def _generate(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        pair = self._pair
        started = perf_counter()
        todo = plan(pair.tokenizer, request.messages, request.thinking)
        prompt = self._prompt(todo)
        room = pair.info.context_length - len(prompt)
        if todo.reason:
            yield Notice("cache", todo.reason)
        yield from self._declines(request)
        widths = pair.info.verdict.widths
        follow = pair.drafter is not None and bool(widths) and request.speculation is not Speculation.OFF
        stream = ReplyStream(
            pair.tokenizer,
            max_tokens=min(request.max_tokens, room),
            stop=request.stop,
            ignore_eos=request.ignore_eos,
            in_reasoning=todo.opens_reasoning,
        )
        stats = StatsBuilder()
        try:
            for part in self._read_prompt(todo, follow, stop, started):
                if isinstance(part, PrefillProgress):
                    progress = part
                    yield part
                else:
                    state, head, rows = part
        except Interrupted:
            stats.prefill(progress, token=False)
            yield Finished(EndReason.STOPPED, (), (), "", "", stats.build(), request.seed)
            return

        chooser = Chooser(request.sampler, request.seed, pair.target.vocab_size, prompt)
        chosen = chooser.row(rows.logits[0], state.length)
        first = token(chosen)
        chooser.emit(chosen)
        if head is not None:
            head.tell(chosen, rows.hidden)
        line = Line(state, head, chooser, stream.push, first)
        tokens = [first]
        line.ended = stream.push(first)
        read = PrefillProgress(len(prompt), len(prompt), progress.restored, perf_counter() - started)
        stats.prefill(read)
        yield read
        yield from stream.take()

        for event in self._decode(line, request, stop):
            if isinstance(event, Round):
                tokens.extend(event.tokens)
                stats.observe(event)
                yield from stream.take()
            yield event

        reason = line.ended or EndReason.STOPPED
        if reason is EndReason.BUDGET and room <= request.max_tokens and len(tokens) >= room:
            reason = EndReason.CONTEXT
        answer, reasoning = stream.finish()
        yield from stream.take()
        segments = (*todo.prefill, Segment("decode", tuple(tokens[:-1])))
        self._keep((*todo.history, *segments), line.state, line.head)
        yield Finished(reason, tuple(tokens), segments, answer, reasoning, stats.build(), request.seed)

    def _verify(
        self, request: Request, tokens: Sequence[int], stop: threading.Event
    ) -> Iterator[PrefillProgress | Receipt]:
        pair = self._pair
        started = perf_counter()
        todo = plan(pair.tokenizer, request.messages, request.thinking)
        prompt = self._prompt(todo)
        try:
            for part in self._read_prompt(todo, False, stop, started):
                if isinstance(part, PrefillProgress):
                    yield part
                else:
                    state, _, rows = part
        except Interrupted:
            yield Receipt(identical=False, compared=0, tokens=len(tokens), complete=False)
            return
        chooser = Chooser(request.sampler, request.seed, pair.target.vocab_size, prompt)
        for n, written in enumerate(tokens):
            if stop.is_set():
                yield Receipt(identical=False, compared=n, tokens=len(tokens), complete=False)
                return
            chosen = chooser.row(rows.logits[0], state.length)
            if (replayed := token(chosen)) != written:
                scores = rows.logits[0].astype(mx.float32)
                yield Receipt(
                    identical=False, compared=n, tokens=len(tokens), complete=True, position=n, written=written,
                    replayed=replayed, written_logit=cast(float, scores[written].item()),
                    replayed_logit=cast(float, scores[replayed].item()),
                )  # fmt: skip
                return
            chooser.emit(chosen)
            if n < len(tokens) - 1:
                rows = pair.target.step(chosen, state)
        yield Receipt(identical=True, compared=len(tokens), tokens=len(tokens), complete=True)

    def _prompt(self, todo: Plan) -> list[int]:
        """All tokens of the prompt.

        Raises:
            ContextFull: they leave no room for a reply.
        """
        prompt = [t for s in (*todo.history, *todo.prefill) for t in s.tokens]
        if len(prompt) >= self._pair.info.context_length:
            raise ContextFull(
                f"This chat has {len(prompt)} tokens, the model reads {self._pair.info.context_length}.",
                kept="All messages are kept.",
                todo="Shorten the message, delete earlier turns, or start a new chat.",
            )
        return prompt

    def _declines(self, request: Request) -> Iterator[Notice]:
        """Where speculation is asked for and cannot be had as asked: the reason."""
        info = self._pair.info
        if request.speculation is Speculation.OFF:
            return
        if info.drafter is None:
            yield Notice("decline", f"No speculation: {info.drafter_reason or 'there is no drafter'}")
        elif not info.verdict.widths:
            yield Notice("decline", f"No speculation: {info.verdict.reason}")
        elif request.block_size > max(info.verdict.widths):
            widest = max(info.verdict.widths)
            yield Notice("decline", f"Blocks of more than {widest} rows were not found exact here; {widest} are used.")

    def _decode(self, line: Line, request: Request, stop: threading.Event) -> Iterator[Round | Notice]:
        """Alternate between the two loops as the pace decides, until the reply ends or `stop` is set."""
        pair, pace = self._pair, self._pace
        pace.begin(request.speculation if line.head is not None else Speculation.OFF, request.block_size)
        while line.ended is None and not stop.is_set():
            if pair.drafter is not None and pace.next_width() > 1:
                rounds = speculative(pair.target, pair.drafter, line, stop, pace.next_width, self.detailed_timing)
            else:
                rounds = classic(pair.target, line, stop, pace.leave_classic)
            yield from pace.take_notices()
            for round_ in rounds:
                pace.observe(round_)
                yield replace(round_, parked=True) if round_.width == 1 and pace.parked else round_
                yield from pace.take_notices()

    def _read_prompt(
        self, todo: Plan, follow: bool, stop: threading.Event, started: float
    ) -> Iterator[PrefillProgress | tuple[TargetState, HeadState | None, Rows]]:
        """Bring the caches to the end of the prompt. Yields progress, and last (state, head, rows of the last token).

        Restores the deepest kept boundary and feeds the rest by the schedule, so that a cold start gives the
        same bytes as a warm one.

        Raises:
            Interrupted: `stop` was set. Boundaries reached so far are kept.
        """
        pair = self._pair
        schedule = (*todo.history, *todo.prefill)
        total = sum(len(s.tokens) for s in schedule)
        count, boundary = self._boundaries.deepest(schedule)
        state = pair.target.new_state()
        head = HeadState() if follow else None
        rows: Rows | None = None
        if boundary is not None:
            state.restore(boundary.target)
            if head is not None:
                # A boundary kept while no head followed: history begins here, and the text does not mind.
                late = state.length - (boundary.logits is not None)
                head = HeadState.restored(boundary.head) if boundary.head else HeadState(start=late)
            if boundary.logits is not None and boundary.hidden is not None:
                rows = Rows(boundary.logits, boundary.hidden)
        restored = done = state.length
        yield PrefillProgress(done, total, restored, perf_counter() - started)
        for n in range(count, len(schedule)):
            segment = schedule[n]
            if not segment.tokens:
                continue  # a reply of one token was never fed
            if rows is not None and head is not None:
                # The head's entry for a prefill's last token waits for the token that follows it.
                head.tell(token_array(segment.tokens[:1]), rows.hidden)
            rows = None
            if segment.kind == "decode":
                following = next((s.tokens[0] for s in schedule[n + 1 :] if s.tokens), None)
                parts: Iterator[int | Rows] = replay(
                    pair.target, segment.tokens, state, head, self._replay_width, following, stop
                )
            else:
                parts = prefill(pair.target, segment.tokens, state, head, stop)
            for part in parts:
                if isinstance(part, Rows):
                    rows = part
                else:
                    yield PrefillProgress(done + part, total, restored, perf_counter() - started)
            done += len(segment.tokens)
            if rows is not None:
                self._keep(schedule[: n + 1], state, head, rows)
        if rows is None:
            raise RuntimeError("a prompt must end with a prefill segment")
        yield state, head, rows

    @property
    def _replay_width(self) -> int:
        """Widest block that is known to give the bytes of single steps; one row at a time otherwise."""
        verdict = self._pair.info.verdict
        exact = verdict.state in (ExactnessState.EXACT_STOCK, ExactnessState.EXACT_FORCED)
        return max(verdict.widths, default=1) if exact else 1

    def _keep(
        self, schedule: Sequence[Segment], state: TargetState, head: HeadState | None, rows: Rows | None = None
    ) -> None:
        kept_head = head.snapshot() if head is not None else None
        logits, hidden = (rows.logits, rows.hidden) if rows is not None else (None, None)
        self._boundaries.keep(schedule, Boundary(state.snapshot(), kept_head, logits, hidden))


def load_engine(options: LoadOptions, progress: Callable[[LoadProgress], None], cancel: threading.Event) -> Engine:
    """See `engine.load`."""
    return Engine(load_pair(options, progress, cancel))
