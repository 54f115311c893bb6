"""A reply that was cut goes on as if it had never stopped: same tokens, same schedule, same caches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from engine import ContextFull, EndReason, Engine, Message, PrefillProgress, Request, Round, Sampler, Speculation, Text
from engine.loading import Pair
from engine.session.sensitive import chunk_sensitive
from tests.support.chat import NEVER, Chat, answer_of, assert_same_caches, write
from tests.support.rig import load_tiny
from tests.support.tiny_pair import write_head, write_target
from tests.support.tiny_tokenizer import REWRITING, write_tiny_tokenizer

FEW = tuple((token, 12.0) for token in range(100, 140))
# Few tokens, so that they repeat, and a penalty that looks at the part before the cut changes what follows.
SAMPLER = Sampler(temperature=0.9, repetition_penalty=1.3, presence_penalty=5.0, logit_bias=FEW)
WHOLE = Request((Message("user", "the quick brown fox"),), SAMPLER, seed=5, max_tokens=24, ignore_eos=True)


@pytest.fixture
def sensitive(pair: Pair) -> Iterator[Pair]:
    with chunk_sensitive(pair.target, 16):
        yield pair


@pytest.mark.parametrize("cut", [1, 17])
@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_a_cut_reply_goes_on_as_if_it_had_never_been_cut(sensitive: Pair, cut: int, cold: bool) -> None:
    """Penalties look at the reply so far, and caches here depend on how tokens were fed."""
    reference = Engine(sensitive)
    whole, _ = write(reference, WHOLE)
    for mode in (Speculation.OFF, Speculation.ALWAYS):
        engine = Engine(sensitive)
        part, _ = write(engine, replace(WHOLE, max_tokens=cut, speculation=mode))
        assert part.reason is EndReason.BUDGET
        assert part.tokens == whole.tokens[:cut]
        engine = Engine(sensitive) if cold else engine
        rest, _ = write(engine, replace(WHOLE, begun=part.tokens, max_tokens=24 - cut, speculation=mode))
        assert (rest.tokens, rest.segments, rest.answer) == (whole.tokens, whole.segments, whole.answer)
        assert_same_caches(engine, reference)


def test_its_events_tell_the_text_from_its_beginning_and_only_the_new_rounds(pair: Pair) -> None:
    engine = Engine(pair)
    part, _ = write(engine, replace(WHOLE, max_tokens=12))
    rest, events = write(engine, replace(WHOLE, begun=part.tokens, max_tokens=12))
    assert "".join(e.text for e in events if isinstance(e, Text)) == rest.answer
    assert sum(e.emitted for e in events if isinstance(e, Round)) == 11  # the first new token is the prefill's
    assert rest.stats.tokens == 12
    read = [e for e in events if isinstance(e, PrefillProgress)][-1]
    assert read.restored == read.total - 1, "only the last token of the part is read"


def test_the_next_turn_and_verify_take_it_for_one_reply(sensitive: Pair) -> None:
    engine = Engine(sensitive)
    part, _ = write(engine, replace(WHOLE, max_tokens=12))
    rest, _ = write(engine, replace(WHOLE, begun=part.tokens, max_tokens=9))
    whole, _ = write(Engine(sensitive), replace(WHOLE, max_tokens=21))
    after = []
    for reply in (rest, whole):
        chat = Chat(Engine(sensitive), [*WHOLE.messages, answer_of(reply)])
        after.append(chat.say("and then?", max_tokens=8).tokens)
    assert after[0] == after[1]
    *_, receipt = engine.verify(WHOLE, rest.tokens, NEVER)
    assert receipt.identical  # type: ignore[union-attr]


def test_stop_before_it_goes_on_leaves_it_as_it_was(pair: Pair) -> None:
    part, _ = write(Engine(pair), replace(WHOLE, max_tokens=12))
    cold = Engine(pair)
    done, _ = write(cold, replace(WHOLE, begun=part.tokens), stop_when=lambda e: isinstance(e, PrefillProgress))
    assert (done.reason, done.tokens, done.segments) == (EndReason.STOPPED, part.tokens, part.segments)
    assert done.answer == part.answer
    assert done.stats.tokens == 0


def test_no_room_is_told_and_an_ended_reply_is_a_mistake(pair: Pair) -> None:
    engine = Engine(pair)
    part, _ = write(engine, replace(WHOLE, max_tokens=12))
    full = (part.tokens[0],) * engine.info.context_length
    with pytest.raises(ContextFull, match="fills the context"):
        write(engine, replace(WHOLE, begun=full))
    end = next(iter(engine._pair.tokenizer.eos_ids))
    with pytest.raises(ValueError, match="has ended"):
        write(engine, replace(WHOLE, begun=(*part.tokens, end, *part.tokens), ignore_eos=False))
    with pytest.raises(ValueError, match="tokens that this model does not have"):
        write(engine, replace(WHOLE, begun=(*part.tokens, 10**6)))


def test_ends_say_which_text_is_each_tokens(pair: Pair) -> None:
    """Joined over all rounds they cut the answer into the tokens' own texts."""
    engine = Engine(pair)
    done, events = write(engine, replace(WHOLE, speculation=Speculation.ALWAYS))
    rounds = [e for e in events if isinstance(e, Round)]
    assert all(len(r.ends) == r.emitted + 1 for r in rounds)
    assert all(a.ends[-1] == b.ends[0] for a, b in pairwise(rounds))
    at = [end[0] for r in rounds for end in r.ends[1:]]
    assert at == sorted(at)
    # An unfinished character at the end is shown only then, as U+FFFD.
    assert len(done.answer) - 1 <= at[-1] <= len(done.answer)
    tokenizer = engine._pair.tokenizer
    for n, end in enumerate(at, start=2):
        # A token may end inside a character, whose text is then the next token's.
        text = tokenizer.decode(done.tokens[:n], skip_special=True).rstrip("\ufffd")
        assert done.answer[:end].rstrip("\ufffd") == text


def test_the_end_of_a_cut_reply_is_not_the_first_to_go(tmp_path: Path) -> None:
    """Where the template rewrites a reply's opening, the next turn never comes back to it, but "Continue" does."""
    target, head = write_target(tmp_path / "target"), write_head(tmp_path / "head")
    write_tiny_tokenizer(target, template=REWRITING)
    engine = Engine(load_tiny(target, head))
    part, _ = write(engine, replace(WHOLE, max_tokens=12))
    assert len([s for s in part.segments if s.kind == "prefill"]) == 2, "the template rewrites"
    engine.boundary_budget = engine.boundary_bytes - 1  # one place goes
    rest, _ = write(engine, replace(WHOLE, begun=part.tokens, max_tokens=5))
    assert rest.stats.restored_tokens == rest.stats.prompt_tokens - 1, "only the last token of the part is read"
    # A reply that has ended is what nothing comes back to.
    end = next(iter(engine._pair.tokenizer.eos_ids))
    ended, _ = write(engine, Request(WHOLE.messages, Sampler(logit_bias=((end, 1000.0),))))
    assert ended.reason is EndReason.EOS
    assert engine.last_boundary is not None
    engine.boundary_budget = engine.boundary_bytes - 1
    assert engine.last_boundary is None
