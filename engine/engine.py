"""The facade: load a pair once, then write replies. Everything on one thread; `stop` may be set from any."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import mlx.core as mx

from engine.acceptance import AcceptanceAlarm, History
from engine.arrays import token_array
from engine.backend import wired
from engine.calibrate import CostWatch, sample
from engine.chat.fit import Fit, fit, warning
from engine.chat.reply import ReplyStream
from engine.declines import boundary_too_large, reasoning_declines, speculation_declines
from engine.decode import Line, paced
from engine.decode.prefill import Interrupted
from engine.errors import CheckpointError, ContextFull
from engine.events import (
    ContextUse,
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
    Verdict,
)
from engine.loading import Pair, load_pair
from engine.request import LoadOptions, Request, Segment, Speculation
from engine.sampling import Chooser
from engine.session import Boundaries, Boundary, KeptChat, Reader, boundary_budget, schedule_key
from engine.telemetry.stats import StatsBuilder
from engine.verify import compare, retell


class Engine:
    """A loaded pair and the chats it remembers.

    Not thread-safe: MLX streams are bound to the thread that loaded the pair, so all calls come from there.

    detailed_timing: synchronise between the stages of a round, so that each one's milliseconds are its own.
    """

    def __init__(self, pair: Pair, boundary_bytes: int | None = None) -> None:
        """boundary_bytes: see `LoadOptions`."""
        self._pair = pair
        history = History.of(pair.info)
        self._pace, self._watch = None, None
        if pair.drafter is not None and pair.measured is not None:
            widths = pair.info.verdict.widths
            self._pace = pair.measured.pace(widths, history.judged, history.accepted)
            self._watch = CostWatch(pair.target, pair.drafter, widths, sample(pair.tokenizer))
        weights = pair.info.target_bytes + (pair.info.drafter.bytes if pair.info.drafter else 0)
        budget = boundary_budget(pair.target.backend, weights) if boundary_bytes is None else boundary_bytes
        self._boundaries = Boundaries(budget)
        self._kept = KeptChat(pair.target, pair.info, self._boundaries)
        self._notices: list[Notice] = []
        self._end = b""
        self._alarm = AcceptanceAlarm(history)
        self._reader = Reader(pair.target, self._boundaries, _replay_width(pair.info.verdict))
        self.detailed_timing = True

    @property
    def info(self) -> EngineInfo:
        return self._pair.info

    @property
    def efforts(self) -> tuple[str, ...]:
        """Efforts of reasoning that the model's template knows, weakest first: values for `Request.thinking`."""
        return self._pair.tokenizer.efforts

    @property
    def boundary_bytes(self) -> int:
        """Bytes of all kept boundaries."""
        return self._boundaries.nbytes

    @property
    def boundary_budget(self) -> int:
        """Bytes that boundaries may take. May be set between generations; a smaller one drops some at once."""
        return self._boundaries.budget

    @boundary_budget.setter
    def boundary_budget(self, budget: int) -> None:
        self._boundaries.budget = budget

    def generate(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        """Write one reply.

        Yields PrefillProgress, Notice, Text and Round events in the order they happen, and always one
        Finished at the end, also after `stop`.

        Raises:
            ContextFull: the prompt does not fit. Raised before any work, nothing is lost.
            CheckpointError: tokenizer, chat template and model do not fit together.
            ValueError: `request.begun` has ended already, or holds a token that the model does not have.
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

    def retell(self, request: Request, tokens: Sequence[int]) -> tuple[str, str, EndReason | None]:
        """What a reply of these tokens says: (answer, reasoning, why it ends there). Nothing is computed anew.

        request, tokens: as for `verify`. The reason is EOS or STOP_STRING; None where its tokens do not end it.

        Raises:
            ContextFull: the prompt does not fit.
            ValueError: it had ended before its last token, or one of them is none of the model's.
        """
        opened = self._fit(request).plan.opens_reasoning
        return retell(self._pair.tokenizer, request, tokens, self._pair.target.vocab_size, in_reasoning=opened)

    @property
    def last_boundary(self) -> Boundary | None:
        """The caches at the end of the last reply, if they are kept still; for checks that compare bytes."""
        return self._boundaries.get(self._end)

    def save_chat(self, path: Path) -> Notice | None:
        """Write the boundary of the chat that was written in last to a file, for `restore_chat` of a later run.

        Returns why it could not be kept, None when it was, or when there was nothing to keep. Never raises for
        what a disk does, and never leaves half a file.
        """
        return self._kept.save(path)

    def restore_chat(self, path: Path) -> None:
        """Take up what `save_chat` wrote. A file of other weights, another MLX or another policy is discarded, as
        is a damaged one; the next reply's events then begin with a Notice that says so.
        """
        notice = self._kept.restore(path)
        self._notices += [notice] if notice else []

    def close(self) -> None:
        """Let go of the model and give its memory back to the system."""
        self._boundaries.clear()
        # Whoever still holds the engine must not hold the weights: what is freed later stays in MLX's own cache.
        del self._pair, self._reader, self._watch
        gc.collect()
        mx.clear_cache()

    # -- one reply, in the order it happens ------------------------------------------------------------

    def _generate(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        pair = self._pair
        started = perf_counter()
        limit = pair.info.context_length
        fitted = self._fit(request)
        todo, prompt, begun = fitted.plan, fitted.prompt, request.begun
        if begun and not 0 <= min(begun) <= max(begun) < pair.target.vocab_size:
            raise ValueError("the reply was begun with tokens that this model does not have")
        room = limit - len(prompt) - len(begun)
        if begun and room < 1:
            raise ContextFull(
                f"This reply fills the context: the model reads {limit} tokens.",
                kept="All of it is kept.",
                todo="Start a new chat, or edit an earlier message.",
            )
        notices, self._notices = self._notices, []
        yield from notices
        if todo.reason:
            yield Notice("cache", todo.reason)
        if told := fitted.told:
            yield Notice("context", told)
        if nearly_full := warning(len(prompt), limit, request.when_full):
            yield Notice("context", nearly_full)
        yield from reasoning_declines(pair.info.supports_thinking, self.efforts, request)
        yield from speculation_declines(pair.info, request)
        follow = self._follows(request)
        stream = ReplyStream(
            pair.tokenizer,
            max_tokens=len(begun) + min(request.max_tokens, room),
            stop=request.stop,
            ignore_eos=request.ignore_eos,
            in_reasoning=todo.opens_reasoning,
        )
        stats = StatsBuilder()
        for known in begun:
            stream.push(known)
        stream.take_ends()
        try:
            state, head, rows, trail = yield from self._reader.read(
                (*todo.schedule, *_going_on(begun)), follow, stop, started
            )
        except Interrupted:
            stats.prefill(self._reader.progress, token=False)
            segments = (*todo.prefill, Segment("decode", begun[:-1])) if begun else ()
            yield Finished(EndReason.STOPPED, begun, segments, *stream.finish(), stats.build(), request.seed)
            return

        chooser = Chooser(request.sampler, request.seed, pair.target.vocab_size, prompt)
        if begun:
            chooser.emit(token_array(begun))
        line = Line.begin(state, head, rows, chooser, stream.push)
        tokens = [*begun, line.last]
        line.ended = stream.push(line.last)
        stream.take_ends()  # the first token is of no round
        total = len(prompt) + len(begun)
        read = PrefillProgress(total, total, self._reader.progress.restored, perf_counter() - started, 0.0)
        stats.prefill(read)
        yield read
        yield self._use(total + 1, len(fitted.dropped))
        yield from stream.take()

        for event in self._decode(line, request, stop, min(request.max_tokens, room) - 1):
            if isinstance(event, Round):
                tokens.extend(event.tokens)
                stats.observe(event)
                event = replace(event, ends=stream.take_ends())
                yield from stream.take()
            yield event

        self._alarm.history.keep()
        reason = line.ended or EndReason.STOPPED
        if reason is EndReason.BUDGET and room <= request.max_tokens and len(tokens) - len(begun) >= room:
            reason = EndReason.CONTEXT
        answer, reasoning = stream.finish()
        yield from stream.take()
        segments = (*todo.prefill, Segment("decode", tuple(tokens[:-1])))
        # Where the template rewrites a reply's opening, the next turn starts before it and never comes back here.
        # Only a reply that was cut may: it can go on.
        whole = reason in (EndReason.EOS, EndReason.STOP_STRING)
        end = self._end = schedule_key((*todo.history, *segments))
        kept = trail.boundary(line.state, line.head)
        if not self._boundaries.keep(end, kept, expendable=whole and todo.stable > 0):
            yield boundary_too_large(kept.nbytes, self._boundaries.budget)
        # A template that rewrites the reply's opening keeps the part before it.
        self._kept.latest = schedule_key(todo.schedule[:-1]) if todo.stable else end
        used = len(prompt) + len(tokens)
        if not nearly_full and (told := warning(used, limit, request.when_full)):
            yield Notice("context", told)
        yield self._use(used, len(fitted.dropped))
        yield Finished(reason, tuple(tokens), segments, answer, reasoning, stats.build(), request.seed)

    def _verify(
        self, request: Request, tokens: Sequence[int], stop: threading.Event
    ) -> Iterator[PrefillProgress | Receipt]:
        pair = self._pair
        started = perf_counter()
        fitted = self._fit(request)
        try:
            reached = yield from self._reader.read(fitted.plan.schedule, self._follows(request), stop, started)
        except Interrupted:
            yield Receipt(identical=False, compared=0, tokens=len(tokens), complete=False)
            return
        chooser = Chooser(request.sampler, request.seed, pair.target.vocab_size, fitted.prompt)
        yield compare(pair.target, reached, chooser, tokens, stop)

    def _fit(self, request: Request) -> Fit:
        """Raises what `fit` does, and CheckpointError for a token that has no embedding: MLX would read beyond them."""
        pair = self._pair
        fitted = fit(pair.tokenizer, request, pair.info.context_length)
        if (beyond := max(fitted.prompt)) >= (rows := pair.target.vocab_size):
            raise CheckpointError(
                "The tokenizer of this model writes tokens that the model does not have.",
                kept="The chat is unchanged.",
                todo="Download the model again, or choose another one.",
                detail=f"token {beyond}, {rows} embeddings",
            )
        return fitted

    def _follows(self, request: Request) -> bool:
        """Whether the head's history goes along. In Verify too: later turns start from what it read."""
        pair, off = self._pair, request.speculation is Speculation.OFF
        return pair.drafter is not None and bool(pair.info.verdict.widths) and not off

    def _use(self, tokens: int, dropped: int) -> ContextUse:
        kept = self._boundaries
        return ContextUse(tokens, self._pair.info.context_length, dropped, len(kept), kept.nbytes, kept.budget)

    def _decode(self, line: Line, request: Request, stop: threading.Event, budget: int) -> Iterator[Round | Notice]:
        """`paced`, with costs that fit the power and heat of now, and an eye on acceptance.

        budget: tokens that the reply may have yet.
        """
        pair = self._pair
        speculates = line.head is not None and request.speculation is not Speculation.OFF
        pace = self._pace if speculates else None
        if pace is not None:
            if self._watch and request.speculation is Speculation.ON and (fresh := self._watch.look()):
                costs, notice = fresh
                pace.renew(costs)
                yield notice
            pace.begin(request.speculation, request.block_size, budget, line.waiting)
        for part in paced(pair.target, pair.drafter, line, stop, pace, self.detailed_timing):
            yield part
            if isinstance(part, Round) and (alarm := self._alarm.observe(part)):
                yield alarm


def _going_on(begun: Sequence[int]) -> tuple[Segment, ...]:
    """What is read of a reply that goes on. Its last token alone is a decode step: one row, as it would have been."""
    return (Segment("decode", tuple(begun[:-1])), Segment("prefill", tuple(begun[-1:]))) if begun else ()


def _replay_width(verdict: Verdict) -> int:
    """Widest block that is known to give the bytes of single steps; one row at a time otherwise."""
    exact = verdict.state in (ExactnessState.EXACT_STOCK, ExactnessState.EXACT_FORCED)
    return max(verdict.widths, default=1) if exact else 1


def load_engine(options: LoadOptions, progress: Callable[[LoadProgress], None], cancel: threading.Event) -> Engine:
    """See `engine.load`."""
    return Engine(load_pair(options, progress, cancel), options.boundary_bytes)
