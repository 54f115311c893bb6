"""The facade: whole chats on a tiny pair, warm and cold, with and without speculation."""

from __future__ import annotations

import random
import threading
import weakref
from collections.abc import Iterator

import mlx.core as mx
import pytest

from engine import (
    ContextFull,
    EndReason,
    Engine,
    Finished,
    Message,
    Notice,
    PrefillProgress,
    Request,
    Round,
    Sampler,
    Speculation,
    Text,
)
from engine.errors import CheckpointError
from engine.loading import Pair
from engine.session.sensitive import chunk_sensitive
from tests.support.chat import NEVER, Chat, answer_of, assert_same_caches, write
from tests.support.rig import load_tiny
from tests.support.tiny_pair import Shape, write_head, write_target
from tests.support.tiny_tokenizer import write_tiny_tokenizer


@pytest.fixture
def engine(pair: Pair) -> Engine:
    return Engine(pair)


def test_events_come_in_order_and_add_up(engine: Engine) -> None:
    done, events = write(engine, Request((Message("user", "the quick fox"),), max_tokens=40, speculation="always"))
    kinds = [type(e) for e in events]
    assert kinds[0] is PrefillProgress
    assert kinds.index(Round) > max(i for i, k in enumerate(kinds) if k is PrefillProgress)
    assert "".join(e.text for e in events if isinstance(e, Text) and e.channel == "answer") == done.answer
    rounds = [e for e in events if isinstance(e, Round)]
    assert (done.tokens[0], *[t for r in rounds for t in r.tokens]) == done.tokens
    stats = done.stats
    assert stats.tokens == len(done.tokens) == 1 + stats.accepted + stats.rounds - stats.cut
    assert rounds[0].position == stats.prompt_tokens + 1
    progress = [e for e in events if isinstance(e, PrefillProgress)]
    assert progress[-1].done == progress[-1].total == stats.prompt_tokens


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_chat_is_the_same_in_every_arm_warm_and_cold(pair: Pair, temperature: float) -> None:
    """Three turns. Arms: classic, always at 2, 3, 5 rows, pace. Each also cold, from an engine that kept nothing."""
    arms = [("off", 3), ("always", 2), ("always", 3), ("always", 5), ("on", 4)]
    told: dict[tuple, list] = {}
    for mode, block in arms:
        for cold in (False, True):
            chat = Chat(Engine(pair))
            for n in range(3):
                if cold:
                    chat.engine = Engine(pair)
                chat.say(
                    f"the quick brown fox {n}", max_tokens=12 + n, seed=n, speculation=Speculation(mode),
                    block_size=block, sampler=Sampler(temperature=temperature),
                )  # fmt: skip
            told[mode, block, cold] = [(m.content, m.segments) for m in chat.messages]
    reference = told["off", 3, False]
    for arm, messages in told.items():
        assert messages == reference, arm


@pytest.fixture
def sensitive(pair: Pair) -> Iterator[Pair]:
    """A pair whose caches depend on how a prompt was cut, as on Metal. CPU BLAS would hide every mistake."""
    with chunk_sensitive(pair.target, 16):
        yield pair


def test_the_double_is_sensitive(sensitive: Pair) -> None:
    """Guards the next test: two cuts of one prompt must give different logits here."""
    outcomes = []
    for cut in (3, 5):
        state = sensitive.target.new_state()
        tokens = mx.arange(8, dtype=mx.uint32)
        sensitive.target.hidden(tokens[:cut], state)
        outcomes.append(sensitive.target.hidden(tokens[cut:], state)[-1])
    assert not mx.allclose(*outcomes, atol=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_cold_equals_warm_when_prefill_cuts_matter(sensitive: Pair, seed: int) -> None:
    """vllm #53912, mlx-serve #458: output must not depend on server warmth. Random turns, stops, regenerates."""
    luck = random.Random(seed)
    warm = Engine(sensitive)
    messages: list[Message] = []
    for turn in range(4):
        messages.append(Message("user", "fox " * luck.randint(1, 30) + str(turn)))
        if luck.random() < 0.3 and len(messages) > 2:  # edit: an earlier user message, everything after it goes
            keep = luck.randrange(0, len(messages) - 2, 2)
            messages = [*messages[:keep], Message("user", f"edited {turn}")]
        request = Request(
            tuple(messages), max_tokens=luck.randint(1, 14), seed=turn, speculation=luck.choice(list(Speculation)),
            block_size=luck.randint(2, 5), sampler=Sampler(temperature=luck.choice([0.0, 0.9])),
            stop=luck.choice([(), ("a",), ("e", "o")]),
        )  # fmt: skip
        done, _ = write(warm, request)
        for mode in Speculation:
            from dataclasses import replace

            fresh = Engine(sensitive)
            cold, _ = write(fresh, replace(request, speculation=mode))
            assert_same_caches(warm, fresh)
            assert (cold.tokens, cold.answer) == (done.tokens, done.answer)
            assert cold.segments == done.segments
        messages.append(answer_of(done))


def test_the_next_turn_reads_only_its_own_tokens(engine: Engine) -> None:
    """Rapid-MLX #1737: hybrid caches were never reused."""
    chat = Chat(engine)
    first = chat.say("the quick brown fox jumps over the lazy dog", max_tokens=20)
    second = chat.say("and then", max_tokens=5)
    assert second.stats.restored_tokens == first.stats.prompt_tokens + len(first.tokens) - 1
    again, _ = write(engine, Request(tuple(chat.messages[:-1]), max_tokens=5, seed=9))
    assert again.stats.restored_tokens == again.stats.prompt_tokens, "regenerate restores the whole prompt"


def test_stop_before_and_during_a_reply(engine: Engine) -> None:
    """ds4 #333 (prefill cannot be cancelled): Stop answers in every phase and what was written is kept."""
    stop = threading.Event()
    stop.set()
    done, _ = write(engine, Request((Message("user", "fox " * 200),)), stop)
    assert done.reason is EndReason.STOPPED
    assert done.tokens == ()
    stop.clear()
    seen = []
    for event in engine.generate(Request((Message("user", "fox"),), max_tokens=1000), stop):
        seen.append(event)
        if sum(isinstance(e, Round) for e in seen) == 5:
            stop.set()
    done = seen[-1]
    assert isinstance(done, Finished)
    assert done.reason is EndReason.STOPPED
    assert 6 <= len(done.tokens) <= 20
    follow_up, _ = write(
        engine, Request((Message("user", "fox"), answer_of(done), Message("user", "on")), max_tokens=3)
    )
    assert follow_up.stats.restored_tokens > 0


@pytest.mark.parametrize("mode", list(Speculation))
def test_stop_strings_are_never_shown_and_do_not_leak_into_the_next_turn(engine: Engine, mode: Speculation) -> None:
    """qvac #2938: a stop string in mid-block left an unsent tail in the cache."""
    free = write(engine, Request((Message("user", "fox dog"),), max_tokens=40, seed=4))[0]
    stop = free.answer[10:13]
    request = Request((Message("user", "fox dog"),), max_tokens=40, seed=4, stop=(stop,), speculation=mode)
    done, events = write(engine, request)
    assert done.reason is EndReason.STOP_STRING
    assert done.answer == free.answer[: free.answer.index(stop)]
    assert "".join(e.text for e in events if isinstance(e, Text)) == done.answer
    assert done.tokens == free.tokens[: len(done.tokens)]


def test_a_chat_that_does_not_fit_is_refused_before_any_work(tmp_path) -> None:
    """LMS #2339, LCPP #12120: never a silent empty answer, nothing lost."""
    shape = Shape(context=64)
    small = Engine(load_tiny(write_target(tmp_path / "t", shape), write_head(tmp_path / "h", shape)))
    with pytest.raises(ContextFull, match="the model reads 64"):
        list(small.generate(Request((Message("user", "fox " * 100),)), NEVER))
    done, _ = write(small, Request((Message("user", "fox"),), max_tokens=500, ignore_eos=True))
    assert done.reason is EndReason.CONTEXT
    assert done.stats.prompt_tokens + len(done.tokens) == 64


def test_without_a_head_it_says_so_and_writes(tiny_folders) -> None:
    alone = Engine(load_tiny(tiny_folders[0], None))
    done, events = write(alone, Request((Message("user", "fox"),), max_tokens=5, speculation=Speculation.ALWAYS))
    notices = [e for e in events if isinstance(e, Notice)]
    assert [n.kind for n in notices] == ["decline"]
    assert "no MTP head" in notices[0].text
    assert len(done.tokens) == 5


def test_turning_speculation_on_later_in_a_chat_changes_nothing_but_speed(pair: Pair) -> None:
    """The boundary was kept without head history; the head starts late, and the text does not mind."""
    texts = []
    for modes in (("off", "off", "off"), ("off", "always", "off"), ("always", "off", "always")):
        chat = Chat(Engine(pair))
        for mode in modes:
            chat.say("the lazy dog", max_tokens=15, speculation=Speculation(mode))
        texts.append([m.content for m in chat.messages])
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("where", ["verify", "rollback", "accept_hook"])
def test_an_exception_in_a_round_leaves_the_next_turn_right(
    pair: Pair, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(pair)
    request = Request((Message("user", "the quick fox"),), max_tokens=20, speculation=Speculation.ALWAYS)
    expected, _ = write(Engine(pair), request)
    owner = pair.drafter if where == "accept_hook" else pair.target
    right, calls = getattr(owner, where), []

    def broken(*args):
        calls.append(1)
        if len(calls) == 3:
            raise MemoryError("injected")
        return right(*args)

    monkeypatch.setattr(owner, where, broken)
    with pytest.raises(MemoryError):
        list(engine.generate(request, NEVER))
    again, _ = write(engine, request)
    assert again.tokens == expected.tokens


@pytest.mark.parametrize("mode", list(Speculation))
def test_a_receipt_says_identical_or_shows_the_first_difference(engine: Engine, mode: Speculation) -> None:
    chat = Chat(engine)
    chat.say("the quick fox", max_tokens=10)
    request = Request(
        (*chat.messages, Message("user", "and then")), max_tokens=25, seed=11, speculation=mode,
        sampler=Sampler(temperature=0.9, repetition_penalty=1.2),
    )  # fmt: skip
    done, _ = write(engine, request)
    *_, receipt = engine.verify(request, done.tokens, NEVER)
    assert receipt.identical
    assert str(receipt) == "identical, 25 tokens"
    forged = [*done.tokens]
    forged[7] = (forged[7] + 1) % 400
    *_, receipt = engine.verify(request, forged, NEVER)
    assert (receipt.identical, receipt.complete, receipt.position) == (False, True, 7)
    assert (receipt.written, receipt.replayed) == (forged[7], done.tokens[7])
    assert f"differs at token 7: written {forged[7]} (logit " in str(receipt)
    forged[7] = 10**9  # a log can hold anything; the logit of such a token was once read from beyond the array
    *_, receipt = engine.verify(request, forged, NEVER)
    assert "differs at token 7: written 1000000000 (logit -inf)" in str(receipt)


def test_a_receipt_that_is_stopped_claims_nothing(engine: Engine) -> None:
    request = Request((Message("user", "fox"),), max_tokens=5)
    done, _ = write(engine, request)
    stop = threading.Event()
    stop.set()
    *_, receipt = engine.verify(request, done.tokens, stop)
    assert not receipt.identical
    assert not receipt.complete


def test_the_log_of_a_real_reply_agrees_with_itself(engine: Engine, tmp_path) -> None:
    """Footer, rows and a recomputation agree to the last digit; so do they for a reply stopped in its prefill."""
    from engine import SessionLog, conditions, environment
    from engine.telemetry.check import check, contradictions, recompute
    from engine.telemetry.reader import read

    log = SessionLog(tmp_path / "log.jsonl")
    stopped = threading.Event()
    for stop in (NEVER, stopped):
        request = Request((Message("user", "the quick fox " * 9),), max_tokens=30, speculation="always")
        log.begin(engine.info, request, environment(), conditions(), timing="detailed")
        last = None
        for event in engine.generate(request, stop):
            if isinstance(event, PrefillProgress):
                last = event
            elif isinstance(event, Round):
                if last is not None:
                    log.prefill(last)
                    last = None
                log.round(event)
            elif isinstance(event, Finished):
                if last is not None:
                    log.prefill(last, token=event.stats.tokens > 0)
                log.end(event)
        stopped.set()
    found = read(tmp_path / "log.jsonl")
    assert found.problems == ()
    assert [check(g) for g in found.generations] == [[], []]
    assert [contradictions(g) for g in found.generations] == [[], []]
    assert [recompute(g) for g in found.generations] == [g.stats for g in found.generations]


def test_a_block_wider_than_was_probed_is_declined_in_words(engine: Engine) -> None:
    _, events = write(engine, Request((Message("user", "fox"),), max_tokens=4, speculation="always", block_size=8))
    assert [e.text for e in events if isinstance(e, Notice) and e.kind == "decline"] == [
        "Blocks of more than 5 rows were not found exact here; 5 are used."
    ]


def test_speculation_may_be_given_by_name_and_nothing_else(engine: Engine) -> None:
    """A plain "always" was once treated as "on", and parked."""
    request = Request((Message("user", "fox"),), max_tokens=12, speculation="always")
    assert request.speculation is Speculation.ALWAYS
    _, events = write(engine, request)
    assert all(e.width > 1 for e in events if isinstance(e, Round))
    with pytest.raises(ValueError, match="maybe"):
        Request((Message("user", "fox"),), speculation="maybe")


def test_a_way_of_reasoning_that_the_template_does_not_know_is_declined_in_words(engine: Engine) -> None:
    """No silent fallback: an effort it cannot express only turns reasoning on."""

    def told(thinking: bool | str) -> list[str]:
        request = Request((Message("user", "fox"),), max_tokens=3, thinking=thinking)
        return [e.text for e in write(engine, request)[1] if isinstance(e, Notice) and e.kind == "reasoning"]

    assert told("high") == ["The model's chat template has no reasoning effort “high”; it knows none."]
    assert told(False) == told(True) == [], "the tiny template has the switch"
    with pytest.raises(ValueError, match="effort"):
        told("")


def test_a_closed_engine_lets_go_of_the_weights_at_once(tiny_folders) -> None:
    """The reader and the watch over costs once held them until the engine itself died; MLX then kept the memory."""
    engine = Engine(load_tiny(*tiny_folders))
    write(engine, Request((Message("user", "fox"),), max_tokens=3))
    models = [weakref.ref(engine._pair.target), weakref.ref(engine._pair.drafter)]
    before = mx.get_active_memory()
    engine.close()
    assert [model() for model in models] == [None, None]
    assert mx.get_active_memory() <= before - 400_000, "bytes of the tiny pair's weights"
    assert mx.get_cache_memory() == 0


def test_a_tokenizer_of_another_model_is_refused_in_words(tmp_path) -> None:
    """MLX looks a token without an embedding up beyond the array: memory of something else decided the text."""
    folder = write_target(tmp_path / "target", Shape(vocab_size=320))
    write_tiny_tokenizer(folder, vocab_size=400)
    engine, request = Engine(load_tiny(folder, None)), Request((Message("user", "fox"),), max_tokens=3)
    with pytest.raises(CheckpointError, match="tokens that the model does not have"):
        write(engine, request)
    with pytest.raises(CheckpointError, match="tokens that the model does not have"):
        list(engine.verify(request, (1,), NEVER))
