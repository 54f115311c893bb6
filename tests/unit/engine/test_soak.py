"""Random chats against cold replays: a small set of what `python -m engine.bench.soak` runs at length."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import pytest

from engine import Engine, Segment
from engine.bench.soak import __main__ as command
from engine.bench.soak.chats import Evict, Limits, RandomChat, Restart, Tally, Write
from engine.bench.soak.run import restarted, run_chat
from engine.chat.tokenizer import Tokenizer
from engine.loading import Pair
from engine.session.boundaries import Boundaries, Found
from engine.session.sensitive import chunk_sensitive
from tests.support.tiny_tokenizer import REWRITING, write_tiny_tokenizer

LIMITS = Limits(steps=(3, 5), words=(1, 12), tokens=(1, 6))


@pytest.fixture
def sensitive(pair: Pair) -> Iterator[Pair]:
    with chunk_sensitive(pair.target, 8):
        yield pair


def soak(pair: Pair, kept: Path, seed: int, chats: range) -> Tally:
    total = Tally()
    for number in chats:
        chat = RandomChat(seed, number, LIMITS)
        run_chat(pair, chat, total, kept, lambda *_: restarted(pair, kept), Engine(pair))
        total.steps += chat.counts
    return total


@pytest.mark.parametrize("template", ["keeping", "rewriting"])
def test_every_reply_of_random_chats_is_that_of_a_cold_replay(sensitive: Pair, tmp_path: Path, template: str) -> None:
    """Turns, edits, branches, stops anywhere, evictions and restarts; MTP off and on; cuts are visible."""
    pair = sensitive
    if template == "rewriting":
        tokenizer = Tokenizer.load(write_tiny_tokenizer(tmp_path / "tokenizer", template=REWRITING))
        pair = replace(pair, tokenizer=tokenizer)
    found = soak(pair, tmp_path / "kept.safetensors", 5, range(2))
    assert found.differences == []
    assert found.replies > 4
    assert found.restored > found.prompt / 5, "it is about warm caches"


def test_a_wrong_cache_is_found(sensitive: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the test above: recurrent state that is lost on the way into or out of a boundary."""
    deepest = Boundaries.deepest

    def forgetful(store: Boundaries, segments: list[Segment]) -> Found:
        found = deepest(store, segments)
        if found.boundary is None:
            return found
        lost = tuple((window, mx.zeros_like(state)) for window, state in found.boundary.recurrent)
        return found._replace(boundary=replace(found.boundary, recurrent=lost))

    monkeypatch.setattr(Boundaries, "deepest", forgetful)
    assert soak(sensitive, tmp_path / "kept.safetensors", 5, range(2)).differences != []


def test_a_seed_fixes_a_chat_and_a_restart_goes_on_with_it() -> None:
    """The same steps whether the state went through the disk or not."""
    kinds = set()
    for number in range(30):
        chat, other = RandomChat(1, number, LIMITS), RandomChat(1, number, LIMITS)
        while (step := chat.next()) is not None:
            other = RandomChat.from_json(json.loads(json.dumps(other.to_json())), LIMITS)
            assert other.next() == step
            kinds.add(type(step))
            if isinstance(step, Write):
                reply = _reply(step)
                chat.took(reply)
                other.took(reply)
        assert other.next() is None
        assert other.to_json() == chat.to_json()
    assert kinds == {Write, Evict, Restart}


def _reply(step: Write):
    from engine import EndReason, Finished, StatsBuilder

    segments = (Segment("prefill", (1, 2)), Segment("decode", (3,)))
    return Finished(EndReason.EOS, (3, 4), segments, "a", "b", StatsBuilder().build(), step.request.seed)


def test_the_command_goes_on_where_it_was_interrupted(
    tiny_folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Finished chats are not run again; the exit status and the last line say what was compared."""
    target, head = map(str, tiny_folders)
    asked = ["--model", target, "--head", head, "--same-process", "--work", str(tmp_path), "--chunk-sensitive", "8"]
    asked += ["--most-words", "4", "--most-tokens", "3"]
    assert command.main([*asked, "--chats", "1"]) == 0
    ran = []
    real = command.run_chat
    monkeypatch.setattr(command, "run_chat", lambda *args: (ran.append(1), real(*args)))
    assert command.main([*asked, "--chats", "2"]) == 0
    assert len(ran) == 1
    assert "0 of " in capsys.readouterr().out.splitlines()[-1]
    assert command.main([*asked, "--chats", "2", "--seed", "9"]) == 0
    assert len(ran) == 3, "another seed is another run"
