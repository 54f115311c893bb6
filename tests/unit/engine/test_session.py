"""Sessions: what is kept along a chat, what of it is shared, and what Stop leaves for the next turn."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Iterator
from dataclasses import replace

import mlx.core as mx
import pytest

from engine import EndReason, Engine, Event, Message, PrefillProgress, Request, Sampler, Segment, Speculation
from engine.decode.prefill import Interrupted
from engine.loading import Pair
from engine.session import boundary as boundaries
from engine.session.sensitive import chunk_sensitive
from tests.support.chat import NEVER, Chat, answer_of, assert_same_caches, write

CHUNK = 16


@pytest.fixture
def sensitive(pair: Pair) -> Iterator[Pair]:
    with chunk_sensitive(pair.target, CHUNK):
        yield pair


def at_progress(count: int):
    """Says yes to the event that tells the `count`-th chunk of the prompt."""
    seen = []

    def now(event: Event) -> bool:
        seen.append(isinstance(event, PrefillProgress))
        return sum(seen) == count + 1  # the first one tells what was restored

    return now


@pytest.mark.parametrize(("chunks", "follow"), [(1, Speculation.ALWAYS), (2, Speculation.OFF), (5, Speculation.ALWAYS)])
def test_a_stopped_prefill_is_taken_up_by_the_next_turn_with_the_same_cuts(
    sensitive: Pair, chunks: int, follow: Speculation
) -> None:
    """The part that was read is kept, also when another text follows it, and the words are those of a cold start."""
    engine = Engine(sensitive)
    document = " ".join(f"fox {n} jumps" for n in range(30))
    first = Request((Message("user", document + " what?"),), max_tokens=12, seed=3, speculation=follow)
    stopped, _ = write(engine, first, stop_when=at_progress(chunks))
    assert (stopped.reason, stopped.tokens) == (EndReason.STOPPED, ())
    for text in (document + " what?", document + " and how many, dear?"):
        request = replace(first, messages=(Message("user", text),))
        fresh = Engine(sensitive)
        cold, _ = write(fresh, replace(request, speculation=Speculation.OFF))
        warm, _ = write(engine, request)
        assert_same_caches(engine, fresh)
        assert warm.stats.restored_tokens == chunks * CHUNK
        assert (warm.tokens, warm.segments) == (cold.tokens, cold.segments)


def test_inside_a_prefill_the_heads_last_entry_waits(sensitive: Pair) -> None:
    """It pairs a hidden with the token after it, and that token may be another one next time."""
    engine = Engine(sensitive)
    request = Request((Message("user", "fox " * 60),), speculation=Speculation.ALWAYS)
    write(engine, request, stop_when=at_progress(2))
    (part,) = engine._boundaries._kept.values()
    assert part.length == 2 * CHUNK
    assert part.head.told == part.length - 1
    assert part.hidden.shape == (1, sensitive.target.hidden_size)
    assert part.logits is None


def test_stop_while_a_lost_chat_is_rebuilt_keeps_what_was_rebuilt(sensitive: Pair) -> None:
    """Inside a reply that is fed again, too: it goes on there, one-row-equivalent as ever."""
    chat = Chat(Engine(sensitive))
    chat.say("the quick brown fox", max_tokens=60, ignore_eos=True)
    chat.say("and the dog", max_tokens=9)
    chat.messages.append(Message("user", "so?"))
    request = chat.request(max_tokens=10, seed=5, speculation=Speculation.ALWAYS)
    expected, _ = write(chat.engine, request)
    lost = Engine(sensitive)
    stopped, events = write(lost, request, stop_when=at_progress(8))
    done = [e.done for e in events if isinstance(e, PrefillProgress)][-1]
    prefill = len(chat.messages[1].segments[0].tokens)
    assert stopped.tokens == ()
    assert prefill < done < prefill + 59, "it was stopped inside the first reply"
    again, _ = write(lost, request)
    assert again.stats.restored_tokens == done
    assert again.tokens == expected.tokens
    assert_same_caches(lost, chat.engine)


@pytest.mark.parametrize("twin", [False, True], ids=["the same reply", "another one with the same beginning"])
def test_inside_a_reply_that_is_fed_again_the_heads_last_entry_waits_too(sensitive: Pair, twin: bool) -> None:
    """The next token may be another reply's: of a branch that begins with the same words."""
    tokens = tuple(range(5, 17))
    other = (*tokens[:8], 30, 31, 32, 33) if twin else tokens
    engine, stop = Engine(sensitive), threading.Event()
    engine._reader._replay_width = 1
    reading = engine._reader.read(_replayed(tokens), True, stop, 0.0)
    while next(reading).done < 3 + 8:
        pass
    stop.set()
    with pytest.raises(Interrupted):
        next(reading)
    (part,) = [b for b in engine._boundaries._kept.values() if b.length == 3 + 8]
    assert part.head.told == part.length - 1
    warm, cold = [_head_after(e, _replayed(other)) for e in (engine, Engine(sensitive))]
    assert [a.tolist() for a in warm] == [a.tolist() for a in cold]


def _head_after(engine: Engine, schedule: tuple[Segment, ...]) -> tuple[mx.array, mx.array]:
    """What the head was told on the way: token ids, and the hiddens before them."""
    reading = engine._reader.read(schedule, True, NEVER, 0.0)
    while True:
        try:
            next(reading)
        except StopIteration as reached:
            ids, hidden = zip(*reached.value.head.pending, strict=True)
            return mx.concatenate(ids), mx.concatenate(hidden)


def _replayed(reply: tuple[int, ...]) -> tuple[Segment, ...]:
    return Segment("prefill", (1, 2, 3)), Segment("decode", reply), Segment("prefill", (50, 51))


def test_stop_in_several_places_in_a_row_never_changes_the_words(sensitive: Pair) -> None:
    """Random stops in prefill and decode on one engine, until the reply is whole."""
    for seed in range(3):
        luck = random.Random(seed)
        engine = Engine(sensitive)
        request = Request(
            (Message("user", "fox " * luck.randint(30, 120)),), max_tokens=9, seed=seed,
            sampler=Sampler(temperature=0.9), speculation=luck.choice(list(Speculation)),
        )  # fmt: skip
        fresh = Engine(sensitive)
        expected, _ = write(fresh, request)
        done = None
        while done is None or not done.tokens:
            done, _ = write(engine, request, stop_when=at_progress(luck.randint(0, 3)))
        assert done.tokens == expected.tokens[: len(done.tokens)]
        whole, _ = write(engine, request)
        assert whole.tokens == expected.tokens
        assert_same_caches(engine, fresh)


def test_boundaries_of_a_chat_share_its_keys_and_values(pair: Pair) -> None:
    """What each holds alone is the recurrent state; everything else is held once."""
    chat = Chat(Engine(pair))
    for n in range(8):
        chat.say("the lazy dog " * 10 + str(n), max_tokens=20, speculation=Speculation.ALWAYS, ignore_eos=True)
    kept = list(chat.engine._boundaries._kept.values())
    assert len(kept) == 16
    recurrent = sum(a.nbytes for b in kept for pair_ in b.recurrent for a in pair_)
    last = max(kept, key=lambda b: b.length)
    shared = sum(a.nbytes for span in last.spans for pair_ in span for a in pair_)
    shared += sum(a.nbytes for pair_ in (*last.head.spans, *last.head.pending) for a in pair_)
    loose = sum(a.nbytes for b in kept for a in (b.logits, b.hidden) if a is not None)
    # A boundary at a prompt's end may hold hiddens that the head computed afterwards.
    waiting = sum(a.nbytes for b in kept for pair_ in b.head.pending for a in pair_)
    assert recurrent + shared + loose <= chat.engine.boundary_bytes <= recurrent + shared + loose + waiting
    assert chat.engine.boundary_bytes < sum(b.nbytes for b in kept) / 2


@pytest.mark.parametrize("mode", [Speculation.OFF, Speculation.ALWAYS])
def test_spans_that_were_joined_are_the_same_bytes(
    sensitive: Pair, mode: Speculation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long chat joins its spans now and then; here all the time. Odd turns are regenerated from a kept prompt."""
    monkeypatch.setattr(boundaries, "MOST_SPANS", 2)
    chat = Chat(Engine(sensitive))
    for n in range(7):
        chat.say("the lazy dog " * (n % 3 + 1), max_tokens=6 + n, seed=n, speculation=mode)
        if n % 2:
            chat.messages.pop()
            request = chat.request(max_tokens=7, seed=50 + n, speculation=mode)
            again, _ = write(chat.engine, request)
            assert again.stats.restored_tokens == again.stats.prompt_tokens
            chat.messages.append(answer_of(again))
            fresh = Engine(sensitive)
            cold, _ = write(fresh, replace(request, speculation=Speculation.OFF))
            assert cold.tokens == again.tokens
            assert_same_caches(chat.engine, fresh)


def test_two_hundred_rounds_hold_what_is_accounted_for(pair: Pair) -> None:
    """vllm-mlx #196 (lazy snapshots leaked 2 GB per 256 steps): no graph, no spare room, nothing uncounted."""
    chat, mode = Chat(Engine(pair)), Speculation.ALWAYS
    chat.say("warm up", max_tokens=4, speculation=mode)
    chat.engine._boundaries.clear()
    model = settled_memory()
    chat.messages.clear()
    for n in range(200):
        if n % 20 == 0:
            chat.messages.clear()  # ten chats of twenty turns
        chat.say(f"{n}", max_tokens=3, seed=n, speculation=mode, ignore_eos=True)
    accounted = chat.engine.boundary_bytes
    assert settled_memory() == pytest.approx(model + accounted, rel=0.02)
    assert settled_memory() - model == pytest.approx(accounted, rel=0.02), "nor is it hidden by the model's size"
    kept, before = len(chat.engine._boundaries), settled_memory()
    chat.messages.pop()
    for _ in range(20):  # the same boundaries again: regenerate, with the same seed
        write(chat.engine, chat.request(max_tokens=3, seed=199, speculation=mode, ignore_eos=True))
    assert len(chat.engine._boundaries) == kept
    assert abs(settled_memory() - before) < 1024


def settled_memory() -> int:
    """Bytes of MLX arrays that are alive."""
    gc.collect()
    mx.clear_cache()
    return mx.get_active_memory()


def test_a_budget_that_holds_little_costs_time_and_no_words(sensitive: Pair) -> None:
    """Evictions in the middle of a chat: the next turn starts from an older boundary, or from nothing."""
    for budget in (0, 150_000, 400_000):
        engine = Engine(sensitive, budget)
        chat, free = Chat(engine), Chat(Engine(sensitive))
        for n in range(5):
            told = [c.say("fox " * (5 * n + 3), max_tokens=8, seed=n).tokens for c in (chat, free)]
            assert told[0] == told[1]
            assert engine.boundary_bytes <= budget
            if engine.last_boundary is not None:
                assert_same_caches(engine, free.engine)


def test_a_long_chat_that_is_rebuilt_keeps_few_places(sensitive: Pair) -> None:
    """Its last two turns, and every eighth segment before them: other chats keep theirs. An early edit is right."""
    chat = Chat(Engine(sensitive))
    for n in range(12):
        chat.say(f"fox {n}", max_tokens=4, seed=n, ignore_eos=True)
    request = replace(chat.request(max_tokens=4), messages=(*chat.messages, Message("user", "so?")))
    rebuilt = Engine(sensitive)
    done, _ = write(rebuilt, request)
    assert done.stats.restored_tokens == 0
    assert len(rebuilt._boundaries) == 6 + 2 + 1
    edited = replace(request, messages=(*chat.messages[:12], Message("user", "or not")))
    fresh = Engine(sensitive)
    warm, cold = write(rebuilt, edited)[0], write(fresh, edited)[0]
    assert 0 < warm.stats.restored_tokens < warm.stats.prompt_tokens
    assert (warm.tokens, warm.segments) == (cold.tokens, cold.segments)
    assert_same_caches(rebuilt, fresh)


def test_verify_leaves_the_head_its_history(pair: Pair) -> None:
    """Acceptance is 0.90 with history and 0.26 without: a check after a restart must not cost the next turn's."""
    chat = Chat(Engine(pair))
    done = chat.say("the quick brown fox", max_tokens=8, speculation=Speculation.ALWAYS)
    request = Request((chat.messages[0],), max_tokens=8, speculation=Speculation.ALWAYS)
    later = Engine(pair)
    *_, receipt = later.verify(request, done.tokens, NEVER)
    assert receipt.identical
    assert all(b.head is not None for b in later._boundaries._kept.values())


def test_time_left_is_told_once_something_was_measured(sensitive: Pair) -> None:
    """ETA: unknown at first, then falling with what is left, and 0 at the end."""
    engine = Engine(sensitive)
    _, events = write(engine, Request((Message("user", "fox " * 200),), max_tokens=2))
    left = [e.remaining for e in events if isinstance(e, PrefillProgress)]
    assert left[0] is None
    assert all(seconds is not None and seconds >= 0 for seconds in left[1:])
    assert left[-1] == left[-2] == 0, "the last one comes with the first token"
    _, events = write(engine, Request((Message("user", "dog " * 200),), max_tokens=2))
    assert next(e.remaining for e in events if isinstance(e, PrefillProgress)) > 0, "known from the turn before"


def test_a_schedule_that_ends_with_a_reply_is_refused(pair: Pair) -> None:
    engine = Engine(pair)
    with pytest.raises(ValueError, match="must end with a prefill"):
        list(engine._reader.read((Segment("prefill", (1, 2)), Segment("decode", (3,))), False, NEVER, 0.0))


@pytest.mark.parametrize(("where", "at"), [("verify", 1), ("verify", 4), ("rollback", 2), ("accept_hook", 3)])
def test_after_an_exception_the_next_turn_starts_from_an_older_boundary(
    sensitive: Pair, where: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a round of the third turn: nothing of that round is in what later turns start from."""
    chat = Chat(Engine(sensitive))
    for n in range(2):
        chat.say(f"the quick brown fox {n}", max_tokens=9, seed=n, speculation=Speculation.ALWAYS)
    chat.messages.append(Message("user", "and then?"))
    request = chat.request(max_tokens=12, seed=7, speculation=Speculation.ALWAYS, ignore_eos=True)
    owner = sensitive.drafter if where == "accept_hook" else sensitive.target
    right, calls = getattr(owner, where), []

    def broken(*args: object) -> object:
        calls.append(1)
        if len(calls) == at:
            raise MemoryError("injected")
        return right(*args)

    with monkeypatch.context() as patch:
        patch.setattr(owner, where, broken)
        with pytest.raises(MemoryError):
            list(chat.engine.generate(request, NEVER))
    edited = replace(request, messages=(*request.messages[:-1], Message("user", "or rather not")))
    for asked in (request, edited):
        fresh = Engine(sensitive)
        cold, _ = write(fresh, replace(asked, speculation=Speculation.OFF))
        warm, _ = write(chat.engine, asked)
        assert warm.stats.restored_tokens > 0
        assert (warm.tokens, warm.segments) == (cold.tokens, cold.segments)
        assert_same_caches(chat.engine, fresh)


def test_an_abandoned_reply_leaves_the_next_turn_right(sensitive: Pair) -> None:
    """Who reads the events may go away in the middle of one: its generator is closed, no boundary is half made."""
    engine = Engine(sensitive)
    request = Request((Message("user", "fox " * 60),), max_tokens=20, seed=2, speculation=Speculation.ALWAYS)
    for count in (1, 3, 6, 9):
        events = engine.generate(request, NEVER)
        for _ in range(count):
            next(events)
        events.close()
    fresh = Engine(sensitive)
    assert write(engine, request)[0].tokens == write(fresh, request)[0].tokens
    assert_same_caches(engine, fresh)


def test_chats_in_turns_on_one_engine_do_not_meet(sensitive: Pair) -> None:
    """mlx-serve #458: output must not depend on what the server did before. Same openings, little memory."""
    budget = 9 * 64 * 1024
    engine, luck = Engine(sensitive, budget), random.Random(4)
    chats = [Chat(engine) for _ in range(3)]
    for n in range(9):
        chat = luck.choice(chats)
        chat.messages.append(Message("user", f"the lazy dog {len(chat.messages)}"))
        request = chat.request(max_tokens=6, seed=n, speculation=luck.choice(list(Speculation)))
        done, _ = write(engine, request)
        fresh = Engine(sensitive)
        cold, _ = write(fresh, replace(request, speculation=Speculation.OFF))
        assert (done.tokens, done.segments) == (cold.tokens, cold.segments)
        assert_same_caches(engine, fresh)
        chat.messages.append(answer_of(done))
        assert engine.boundary_bytes <= budget
