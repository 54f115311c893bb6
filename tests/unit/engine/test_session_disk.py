"""The chat kept over a restart: restored to the byte or discarded in words, whatever the disk did meanwhile."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import pytest

from engine import Engine, Message, Notice, Request, Speculation
from engine.events import ExactnessState
from engine.loading import Pair
from engine.session import Boundary, disk
from tests.support.chat import Chat, assert_same_caches, write

IDENTITY = {"the model's weights": "abc", "the MLX version": "1"}


def notices(events: list) -> list[str]:
    return [e.text for e in events if isinstance(e, Notice) and e.kind == "cache"]


def talked(engine: Engine, mode: Speculation = Speculation.ALWAYS) -> Chat:
    chat = Chat(engine)
    for n in range(3):
        chat.say(f"the quick brown fox {n}", max_tokens=11, seed=n, speculation=mode)
    chat.messages.append(Message("user", "and then?"))
    return chat


@pytest.mark.parametrize("mode", list(Speculation))
def test_the_next_turn_after_a_restart_goes_on_where_the_last_one_ended(
    pair: Pair, tmp_path: Path, mode: Speculation
) -> None:
    path = tmp_path / "chat.safetensors"
    before = Engine(pair)
    chat = talked(before, mode)
    assert before.save_chat(path) is None
    assert path.stat().st_mode & 0o777 == 0o600
    after = Engine(pair)
    after.restore_chat(path)
    request = chat.request(max_tokens=12, seed=9, speculation=mode)
    expected, _ = write(before, request)
    done, events = write(after, request)
    assert done.stats.restored_tokens == expected.stats.restored_tokens > 0
    assert (done.tokens, done.segments) == (expected.tokens, expected.segments)
    assert notices(events) == []
    assert_same_caches(after, before)
    fresh = Engine(pair)
    cold, _ = write(fresh, replace(request, speculation=Speculation.OFF))
    assert done.tokens == cold.tokens
    assert_same_caches(after, fresh)
    assert path.exists(), "kept until the next save: a crash meanwhile costs nothing"


def test_only_the_latest_chat_is_kept_and_nothing_of_an_older_one_stays(pair: Pair, tmp_path: Path) -> None:
    path = tmp_path / "chat.safetensors"
    engine = Engine(pair)
    talked(engine)
    engine.save_chat(path)
    engine._boundaries.clear()
    told = engine.save_chat(path)
    assert told is not None
    assert "its place in memory was given to other chats" in told.text
    assert not path.exists(), "an old file would be of no use"
    assert Engine(pair).save_chat(path) is None, "no chat, nothing to say"


def test_a_kept_chat_that_no_longer_fits_the_budget_is_told(pair: Pair, tmp_path: Path) -> None:
    path = tmp_path / "chat.safetensors"
    talked(Engine(pair)).engine.save_chat(path)
    small = Engine(pair, 1000)
    small.restore_chat(path)
    _, events = write(small, Request((Message("user", "fox"),), max_tokens=2))
    assert "needs more memory than kept chats may take" in notices(events)[0]


def small_boundary() -> Boundary:
    ones = mx.ones((1, 2, 3, 4))
    return Boundary(3, ((mx.zeros((1, 3, 5), dtype=mx.bfloat16), ones),), (((ones, ones),),), hidden=mx.ones((1, 4)))


@pytest.mark.parametrize("what", list(IDENTITY))
def test_a_file_of_something_else_is_discarded_with_the_reason(tmp_path: Path, what: str) -> None:
    path = tmp_path / "b.safetensors"
    disk.save(path, b"\x01\x02", small_boundary(), IDENTITY)
    place, found = disk.load(path, IDENTITY)
    assert place == b"\x01\x02"
    assert found.length == 3
    assert found.recurrent[0][0].dtype == mx.bfloat16
    with pytest.raises(disk.Discarded, match=f"{what} changed"):
        disk.load(path, {**IDENTITY, what: "other"})
    with pytest.raises(disk.Discarded, match="one more thing changed"):
        disk.load(path, {**IDENTITY, "one more thing": "x"})


def test_damage_anywhere_is_found(tmp_path: Path) -> None:
    """Every byte of the file flipped, and cut off at every 50th byte: refused, or of equal content; never a crash."""
    path = tmp_path / "b.safetensors"
    disk.save(path, b"\x01", small_boundary(), IDENTITY)
    good = path.read_bytes()
    _, whole = disk.load(path, IDENTITY)
    expected = [a.tolist() for a in whole.arrays()]
    refused = 0
    for n in range(len(good)):
        path.write_bytes(good[:n] + bytes([good[n] ^ 0x11]) + good[n + 1 :])
        try:
            place, found = disk.load(path, IDENTITY)
        except disk.Discarded:
            refused += 1
        else:  # a space of the header's padding
            assert (place, found.length) == (b"\x01", 3)
            assert [a.tolist() for a in found.arrays()] == expected
    assert refused > 0.9 * len(good)
    for n in range(0, len(good), 50):
        path.write_bytes(good[:n])
        with pytest.raises(disk.Discarded):
            disk.load(path, IDENTITY)


def test_a_discarded_chat_is_told_once_and_read_again_to_the_same_words(pair: Pair, tmp_path: Path) -> None:
    path = tmp_path / "chat.safetensors"
    chat = talked(Engine(pair))
    chat.engine.save_chat(path)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    after = Engine(pair)
    after.restore_chat(path)
    request = chat.request(max_tokens=8)
    done, events = write(after, request)
    assert notices(events) == [
        "The chat kept from the last start was discarded: the file is damaged. It is read again."
    ]
    assert done.stats.restored_tokens == 0
    assert done.tokens == write(chat.engine, request)[0].tokens
    assert not path.exists()
    assert notices(write(after, request)[1]) == []


def test_other_weights_discard_it(pair: Pair, tmp_path: Path) -> None:
    path = tmp_path / "chat.safetensors"
    talked(Engine(pair)).engine.save_chat(path)
    other = Engine(replace(pair, info=replace(pair.info, weights_hash="of another model")))
    other.restore_chat(path)
    _, events = write(other, Request((Message("user", "fox"),), max_tokens=2))
    assert "the model's weights changed" in notices(events)[0] or "this machine changed" in notices(events)[0]


def test_a_chat_written_inexactly_is_read_again_once_that_is_forbidden(pair: Pair, tmp_path: Path) -> None:
    """Its caches hold bytes that classic decode would not have written; the next reply must not rest on them."""
    path = tmp_path / "chat.safetensors"
    verdict = replace(pair.info.verdict, state=ExactnessState.INEXACT_ALLOWED)
    inexact = replace(pair, info=replace(pair.info, verdict=verdict))
    talked(Engine(inexact)).engine.save_chat(path)
    allowed, forbidden = Engine(inexact), Engine(pair)
    allowed.restore_chat(path)
    assert allowed.boundary_bytes > 0
    forbidden.restore_chat(path)
    assert forbidden.boundary_bytes == 0
    _, events = write(forbidden, Request((Message("user", "x"),), max_tokens=2))
    assert "the permission of inexact speculation changed" in notices(events)[0]


def test_a_full_disk_leaves_what_was_there_and_says_so(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found before anything is written; or by the writer, here through a limit on the size of a file."""
    path = tmp_path / "chat.safetensors"
    chat = talked(Engine(pair))
    assert chat.engine.save_chat(path) is None
    old = path.read_bytes()
    usage = type("Usage", (), {"free": 1000})
    with monkeypatch.context() as patch:
        patch.setattr(disk.shutil, "disk_usage", lambda _: usage)
        told = chat.engine.save_chat(path)
    assert told is not None
    assert "could not be kept for the next start: the disk is full" in told.text
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        told = chat.engine.save_chat(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert told is not None
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]
    after = Engine(pair)
    after.restore_chat(path)
    request = chat.request(max_tokens=8)
    assert write(after, request)[0].tokens == write(Engine(pair), request)[0].tokens


@pytest.mark.parametrize("odd", ["part is a folder", "too long a name"])
def test_a_disk_that_refuses_even_to_clean_up_is_told(pair: Pair, tmp_path: Path, odd: str) -> None:
    """A read-only disk keeps what an interrupted save left there; that error once came out of `save_chat`."""
    path = tmp_path / ("chat.safetensors" if odd == "part is a folder" else "x" * 300)
    if odd == "part is a folder":
        (tmp_path / "chat.part.safetensors").mkdir()
    chat = talked(Engine(pair))
    told = chat.engine.save_chat(path)
    assert told is not None
    assert "could not be kept for the next start" in told.text
    after = Engine(pair)
    after.restore_chat(path)
    assert after.boundary_bytes == 0


KILLED = """
import os, signal, sys
from pathlib import Path
import mlx.core as mx
from engine.session import disk
from tests.unit.engine.test_session_disk import IDENTITY, small_boundary

at, path = sys.argv[1], Path(sys.argv[2])
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if at == "writing":
    mx.save_safetensors = lambda name, *_: (Path(name).write_bytes(b"half"), die())
elif at == "before the rename":
    os.replace = die
disk.save(path, b"new", small_boundary(), IDENTITY)
die()  # between the snapshot and its use
"""


@pytest.mark.parametrize("at", ["writing", "before the rename", "afterwards"])
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path: Path, at: str) -> None:
    path = tmp_path / "b.safetensors"
    disk.save(path, b"old", small_boundary(), IDENTITY)
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, at, str(path)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    place, found = disk.load(path, IDENTITY)
    assert place == (b"new" if at == "afterwards" else b"old")
    assert found.length == 3
    disk.save(path, b"next", small_boundary(), IDENTITY)
    assert list(tmp_path.iterdir()) == [path], "what the kill left was overwritten"
