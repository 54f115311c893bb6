"""Continue: of a reply cut by its budget, by Stop, by an error, by the program's end, or written by another model."""

from __future__ import annotations

import dataclasses

import pytest
from pytestqt.qtbot import QtBot

from app.chat.item import Item
from app.chat.live import Live
from app.chat.reply import ReplyView
from app.chat.trace import unpack
from app.happenings import Ids
from app.store.values import State, StoredMessage
from app.window import MainWindow
from engine import Text
from tests.unit.app.fakes import FakeLoader
from tests.unit.app.test_window import ask, held, idle

ANSWER = "".join(f"sentence {n}. " for n in range(60)).strip()


@pytest.fixture(autouse=True)
def says_the_same(loader: FakeLoader) -> None:
    loader.answer = ANSWER


def press(window: MainWindow) -> None:
    """The Continue button of the last reply, or of its error."""
    view = window.transcript.view(window.transcript.items[-1].id)
    assert isinstance(view, ReplyView)
    if view._go_on is not None and not view._go_on.isHidden():
        view._go_on.click()
    else:
        assert view._error is not None
        view._error.buttons()[0].click()


def last(window: MainWindow) -> Item:
    return window.transcript.items[-1]


def cut(qtbot: QtBot, window: MainWindow, loader: FakeLoader, how: str) -> Item:
    """A reply that was cut in the middle."""
    if how == "budget":
        settings = window.services.settings
        window.services.change_settings(dataclasses.replace(settings, max_tokens=16))
        ask(qtbot, window, "go")
        window.services.change_settings(settings)
    elif how == "stop":
        held(qtbot, window, loader, "go")
        window.stop()
        loader.release()
        idle(qtbot, window)
    else:
        loader.error = RuntimeError("out of memory")
        ask(qtbot, window, "go")
        loader.error = None
    item = last(window)
    assert item.content
    assert ANSWER.startswith(item.content)
    assert item.can_go_on
    return item


@pytest.mark.parametrize("how", ["budget", "stop"])
def test_it_goes_on_behind_its_tokens_in_the_same_reply(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, how: str
) -> None:
    item = cut(qtbot, window, loader, how)
    before = window.services.store.message(item.id)
    assert before is not None
    assert before.reply is not None
    press(window)
    idle(qtbot, window)
    if how == "budget":  # another 16 tokens; and so on to the end
        assert last(window).can_go_on
        for _ in range(40):
            if not last(window).can_go_on:
                break
            window.go_on()
            idle(qtbot, window)
    request = loader.requests[1]
    assert request.begun == before.reply.tokens
    first = loader.requests[0]
    assert (request.messages, request.seed, request.sampler) == (first.messages, first.seed, first.sampler)
    assert request.max_tokens == first.max_tokens, "the same plan for a full context"
    item = last(window)
    assert (item.id, item.content, item.state, item.branches) == (before.id, ANSWER, State.COMPLETE, 1)
    stored = window.services.store.message(item.id)
    assert stored is not None
    assert stored.reply is not None
    assert stored.content == ANSWER
    assert len(stored.reply.tokens) == stored.reply.figures["tokens"]  # type: ignore[index]
    assert stored.reply.figures["prompt_tokens"] == before.reply.figures["prompt_tokens"]  # type: ignore[index]
    trace = unpack(window.services.store.trace(item.id))
    assert trace is not None
    # The first token of every part comes with its prompt, so it is of no round.
    assert sum(r.emitted for r in trace.rounds) == len(stored.reply.tokens) - len(loader.requests)
    assert trace.rounds[-1].ends[-1][0] == len(ANSWER)


def test_after_an_error_it_is_written_again_and_nothing_on_screen_goes_back(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    """No tokens are known then. The same seed gives the same words, and what is there stays there meanwhile."""
    kept = cut(qtbot, window, loader, "error").content
    loader.hold_at = 1
    loader.held.clear()
    press(window)
    qtbot.waitUntil(loader.held.is_set)
    assert last(window).streaming
    assert last(window).content == kept
    loader.release()
    idle(qtbot, window)
    assert loader.requests[-1].begun == ()
    assert loader.requests[-1].seed == loader.requests[0].seed
    assert (last(window).content, last(window).state, last(window).error) == (ANSWER, State.COMPLETE, None)


@pytest.mark.parametrize("how", ["budget", "error"])
def test_stopped_before_it_went_on_it_is_what_it_was(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, how: str
) -> None:
    item = cut(qtbot, window, loader, how)
    store = window.services.store
    before, trace = store.message(item.id), store.trace(item.id)
    loader.hold_at = 0
    loader.held.clear()
    press(window)
    qtbot.waitUntil(loader.held.is_set)
    if how == "budget":
        # It was one token further, which counts.
        window.stop()
        loader.release()
        idle(qtbot, window)
        assert len(last(window).content) > len(item.content)
        return
    window.stop()
    loader.release()
    idle(qtbot, window)
    after = store.message(item.id)
    assert before is not None
    assert after is not None
    assert (after.content, after.state, after.reply.error) == (before.content, before.state, before.reply.error)  # type: ignore[union-attr]
    assert trace is None or store.trace(item.id) is not None
    assert last(window).can_go_on


def test_another_model_does_not_go_on_with_it(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """Its tokens would be other words to that model."""
    item = cut(qtbot, window, loader, "stop")
    before = window.services.store.message(item.id)
    engine = loader.engines[-1]
    engine.info = dataclasses.replace(engine.info, name="Other", weights_hash="f" * 16)
    press(window)
    idle(qtbot, window)
    assert "another" not in last(window).content
    assert last(window).end_note == "Not continued: Pacenote demo 20M wrote this, and Other is loaded."
    after = window.services.store.message(item.id)
    assert before is not None
    assert after is not None
    assert dataclasses.replace(after, reply=None) == dataclasses.replace(before, reply=None)
    assert after.reply == before.reply


def test_other_words_than_before_do_not_replace_what_was_written(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    """Another version of MLX may write otherwise. Never a word is lost: what was written stays, and it is told."""
    item = cut(qtbot, window, loader, "error")
    before = window.services.store.message(item.id)
    # Other words within what was written, however little that was: behind it they would be a reply that goes on.
    loader.answer = item.content[:-1] + "~ something else altogether. " * 9
    press(window)
    idle(qtbot, window)
    after = window.services.store.message(item.id)
    assert before is not None
    assert after is not None
    assert (after.content, after.state) == (before.content, before.state)
    assert last(window).content == before.content
    assert "other words" in last(window).end_note


def test_a_character_that_was_cut_in_two_is_whole_afterwards() -> None:
    stored = StoredMessage(1, "u", 1, None, "assistant", "ab\ufffd", "", State.STOPPED, 0.0)
    live = Live(Ids(1), Item(1, "assistant", stored.content), 0, stored)
    for piece in ("ab", "😀", " more"):
        live.hear(Text(piece))
    assert (live.item.content, live.refused) == ("ab😀 more", "")


def test_after_a_crash_it_is_offered_and_goes_on(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """What a killed program leaves: a streaming row with the text of the last half second before."""
    ask(qtbot, window, "go")
    store, reply = window.services.store, last(window)
    stored = store.message(reply.id)
    assert stored is not None
    store.db.connection.execute(
        "UPDATE reply SET segments = NULL, last_token = NULL, figures = NULL, end_reason = NULL, trace = NULL"
    )
    store.db.connection.execute(
        "UPDATE message SET state = 'streaming', content = ? WHERE id = ?", (ANSWER[:40], reply.id)
    )
    store.recover()
    window.services.chats.open(window.services.chats.current)
    assert last(window).state is State.INTERRUPTED
    assert last(window).content == ANSWER[:40]
    press(window)
    idle(qtbot, window)
    assert (last(window).content, last(window).state, last(window).id) == (ANSWER, State.COMPLETE, reply.id)
    assert store.trace(reply.id) is not None


def test_a_reply_that_was_followed_goes_on_beside_itself(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """What came after it was written after the reply as it was. Bug 29: later messages were deleted."""
    item = cut(qtbot, window, loader, "stop")
    ask(qtbot, window, "and?")
    window.services.chats.go_on(item.id)
    idle(qtbot, window)
    assert [i.content for i in window.transcript.items] == ["go", ANSWER]
    assert (last(window).branch, last(window).branches) == (2, 2)
    window.services.chats.switch_branch(last(window).id, -1)
    assert [i.content for i in window.transcript.items] == ["go", item.content, "and?", ANSWER]


def test_a_receipt_of_the_part_is_not_one_of_the_whole(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    item = cut(qtbot, window, loader, "stop")
    window.transcript.check.emit(item.id)
    qtbot.waitUntil(lambda: window.transcript.items[-1].check.startswith("Verified"))
    press(window)
    idle(qtbot, window)
    assert window.services.chats.items()[-1].check == ""


def test_verify_uses_the_system_prompt_that_wrote_the_reply(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat's system prompt may be changed; a reply of before would then look as if it differed."""
    chats = window.services.chats
    chats.set_options(chats.current, dataclasses.replace(chats.options, system_prompt="Be brief."))
    item = cut(qtbot, window, loader, "stop")
    chats.set_options(chats.current, dataclasses.replace(chats.options, system_prompt="Be long."))
    asked = []
    start = window.services.checks.start
    monkeypatch.setattr(window.services.checks, "start", lambda *a: (asked.append(a[2]), start(*a)))
    chats.check(item)
    assert asked[0].messages[0].content == "Be brief."
    chats.go_on(item.id)
    idle(qtbot, window)
    assert loader.requests[-1].messages[0].content == "Be brief."
    ask(qtbot, window, "again")
    assert loader.requests[-1].messages[0].content == "Be long."


def test_a_reply_whose_request_cannot_be_read_says_so(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """Bug: a chat from another program's file, and Continue and Verify ended in a mistake of Pacenote's."""
    item = cut(qtbot, window, loader, "budget")
    with window.services.store.db.write() as tx:
        tx.execute("UPDATE reply SET request = '{}'")
    for act in (window.go_on, lambda: window.services.chats.check(item)):
        window.banner.hide()
        act()
        assert window.banner.text.startswith("How this reply was asked for cannot be read.")
    assert len(loader.requests) == 1
    assert last(window).content == item.content
