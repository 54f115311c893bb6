"""The window as a user has it: send, stop, switch, regenerate, edit, delete, restart, errors."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QFileDialog, QLineEdit
from pytestqt.qtbot import QtBot

from app import paths, sessionlog
from app.chat import box
from app.chat.empty import DEFAULT_EXAMPLES, examples
from app.chat.item import Item, caption
from app.chat.sidebar import ID_ROLE
from app.heart import Heart
from app.panel.logexport import LogExport
from app.panel.meter import stats_dict
from app.replay import Pieces
from app.services import Services
from app.settings import Settings
from app.store.values import State
from app.theme import Theme
from app.window import MainWindow
from engine import CheckpointError, ContextFull, Notice, Request, Segment, StatsBuilder
from tests.unit.app.fakes import LONG, FakeLoader


def type_and_send(qtbot: QtBot, window: MainWindow, text: str) -> None:
    window.composer.set_text(text)
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Return)


def ask(qtbot: QtBot, window: MainWindow, text: str) -> Item:
    """Send and wait for the end. Returns the reply as it is shown."""
    type_and_send(qtbot, window, text)
    idle(qtbot, window)
    return window.transcript.items[-1]


def idle(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.waitUntil(lambda: not window.services.generations.live_conversations(), timeout=10_000)


def held(qtbot: QtBot, window: MainWindow, loader: FakeLoader, text: str, at: int = 4) -> Item:
    """Send and hold the reply in the middle."""
    loader.hold_at = at
    type_and_send(qtbot, window, text)
    qtbot.waitUntil(loader.held.is_set)
    qtbot.waitUntil(lambda: bool(window.transcript.items[-1].content))
    return window.transcript.items[-1]


def test_a_message_is_answered_and_kept(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    assert window.stack.currentWidget() is window.empty
    reply = ask(qtbot, window, "Hello there")
    assert window.stack.currentWidget() is window.transcript
    assert reply.content.startswith("You said: Hello there.")
    assert reply.state is State.COMPLETE
    assert "tok/s" in reply.caption
    assert window.composer.text() == ""
    assert window.header.title.text() == "Hello there"
    stored = window.services.store.path(window.services.chats.current)
    assert [m.content for m in stored] == ["Hello there", reply.content]
    full = window.services.store.history(stored[-1].id)[-1].reply
    assert full is not None
    assert [s.kind for s in full.segments] == ["prefill", "decode"]
    assert full.figures is not None
    assert full.figures["tokens"] == len(full.segments[1].tokens) + 1
    assert full.model["exactness"] == "exact with other kernels"


def test_segments_are_given_back_in_the_next_request(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    loader.reasoning = "Hmm."
    first = ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    user, reply, again = loader.requests[1].messages
    assert (user.content, again.content) == ("one", "two")
    assert (reply.content, reply.reasoning) == (first.content, "Hmm.")
    assert [type(segment) for segment in reply.segments] == [Segment, Segment]
    assert reply.last_token == reply.segments[1].tokens[-1] + 1, "the last token is in no segment"


def test_every_generation_has_a_seed_of_its_own_unless_fixed(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    for n in range(3):
        ask(qtbot, window, str(n))
    assert len({request.seed for request in loader.requests}) == 3
    window.services.change_settings(
        dataclasses.replace(Settings(), seed_mode="fixed", seed=77, temperature=0.0, block_size=5)
    )
    ask(qtbot, window, "fixed")
    last = loader.requests[-1]
    assert (last.seed, last.sampler.temperature, last.block_size) == (77, 0.0, 5)
    stored = window.services.store.path(window.services.chats.current)[-1].reply
    assert stored is not None
    assert (stored.seed, stored.request["block_size"]) == (77, 5)


def test_the_users_message_is_in_the_store_before_the_engine_hears_of_it(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    real = window.services.engine.generate

    def spy(ids: object, request: object) -> None:
        seen.append([m.content for m in window.services.store.path(window.services.chats.current)])
        real(ids, request)  # type: ignore[arg-type]

    monkeypatch.setattr(window.services.engine, "generate", spy)
    ask(qtbot, window, "kept first")
    assert seen == [["kept first", ""]]


@pytest.mark.parametrize("how", ["button", "escape", "menu"])
def test_stop_keeps_what_was_written(qtbot: QtBot, window: MainWindow, loader: FakeLoader, how: str) -> None:
    item = held(qtbot, window, loader, "a question")
    assert window.composer.button.text() == "Stop"
    if how == "button":
        window.composer.button.click()
    elif how == "escape":
        qtbot.keyClick(window.composer.box, Qt.Key.Key_Escape)
    else:
        window.actions_by_key["stop"].trigger()
    loader.release()
    idle(qtbot, window)
    assert item.state is State.STOPPED
    assert item.content
    assert item.content == window.services.store.path(window.services.chats.current)[-1].content
    assert window.composer.button.text() == "Send"


def test_the_partial_answer_is_flushed_at_least_twice_a_second(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    item = held(qtbot, window, loader, "a question")
    assert window.services.generations._flush.interval() <= 500

    def on_disk() -> bool:
        return window.services.store.path(window.services.chats.current)[-1].content == item.content

    qtbot.waitUntil(on_disk, timeout=1000)
    loader.release()
    idle(qtbot, window)


def test_events_of_another_chat_or_generation_never_reach_this_one(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    """Bug 28: switching chats while generating overwrote the other chat."""
    item = held(qtbot, window, loader, "first chat")
    first = window.services.chats.current
    window.new_chat()
    assert window.stack.currentWidget() is window.empty
    loader.release()
    type_and_send(qtbot, window, "second chat")
    second = window.services.chats.current
    idle(qtbot, window)
    contents = {n: [m.content for m in window.services.store.path(n)] for n in (first, second)}
    assert contents[first][1] == item.content
    assert contents[first][1].startswith("You said: first chat.")
    assert contents[second][1].startswith("You said: second chat.")
    assert [i.content for i in window.transcript.items] == contents[second]
    window.sidebar.chosen.emit(first)
    assert [i.content for i in window.transcript.items] == contents[first]


def test_stale_events_are_dropped(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    from app.happenings import Envelope, Ids
    from engine import Text

    reply = ask(qtbot, window, "q")
    generations = window.services.generations
    before = generations.dropped
    generations.on_events([Envelope(Ids(10_000, 1, reply.id), Text("ghost"))])
    assert generations.dropped == before + 1
    assert "ghost" not in reply.content


def test_going_back_to_a_streaming_chat_shows_it_live(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    item = held(qtbot, window, loader, "long one")
    number = window.services.chats.current
    window.new_chat()
    window.services.chats.open(number)
    assert window.transcript.items[-1] is item
    assert window.composer.button.text() == "Stop"
    loader.release()
    idle(qtbot, window)
    assert window.transcript.items[-1].state is State.COMPLETE


def test_drafts_belong_to_their_chat(qtbot: QtBot, window: MainWindow) -> None:
    """Bug 23: a draft was lost on switching chats."""
    ask(qtbot, window, "one")
    one = window.services.chats.current
    window.composer.set_text("half a thought")
    window.new_chat()
    assert window.composer.text() == ""
    window.composer.set_text("another")
    window.services.chats.open(one)
    assert window.composer.text() == "half a thought"
    window.new_chat()
    assert window.composer.text() == "another"


def test_what_is_typed_while_a_reply_is_written_stays(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """Bug 24."""
    held(qtbot, window, loader, "q")
    window.composer.set_text("my next question")
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Return)
    assert len(window.transcript.items) == 2
    loader.release()
    idle(qtbot, window)
    assert window.composer.text() == "my next question"


def test_regenerate_makes_a_branch_and_the_switcher_goes_between(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    first = ask(qtbot, window, "q")
    loader.answer = "Something else."
    window.actions_by_key["again"].trigger()
    idle(qtbot, window)
    second = window.transcript.items[-1]
    assert (second.content, second.branch, second.branches) == ("Something else.", 2, 2)
    assert loader.requests[0].seed != loader.requests[1].seed
    window.transcript.branch.emit(second.id, -1)
    assert window.transcript.items[-1].content == first.content
    view = window.transcript.view(window.transcript.items[-1].id)
    assert view is not None
    qtbot.mouseClick(view.findChild(QAbstractButton, "right"), Qt.MouseButton.LeftButton)
    assert window.transcript.items[-1].content == "Something else."


def test_verify_replays_the_reply_and_keeps_the_receipt(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """The first promise, checked on demand: the same request, the same tokens, by classic decode."""
    ask(qtbot, window, "one")
    item = ask(qtbot, window, "two")
    asked: list[tuple[Request, tuple[int, ...]]] = []
    engine = loader.engines[-1]
    real = engine.verify

    def spy(request: Request, tokens: tuple[int, ...], stop: object) -> object:
        asked.append((request, tokens))
        return real(request, tokens, stop)  # type: ignore[arg-type]

    engine.verify = spy  # type: ignore[assignment, method-assign]
    view = window.transcript.view(item.id)
    assert view is not None
    qtbot.mouseClick(view.findChild(QAbstractButton, "check"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: item.check.startswith("Verified: classic decode gives the same"))
    request, tokens = asked[0]
    assert request == loader.requests[-1], "byte for byte the request that wrote it"
    assert len(tokens) == int(item.caption.split()[0])
    engine.differs_at = 3
    window.transcript.check.emit(item.id)
    qtbot.waitUntil(lambda: "differs at token 3" in item.check)
    window.services.chats.open(window.services.chats.current)
    assert "differs at token 3" in window.transcript.items[-1].check, "kept in the store"


def test_verify_refuses_a_reply_of_another_model(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    item = ask(qtbot, window, "one")
    engine = loader.engines[-1]
    engine.info = dataclasses.replace(engine.info, weights_hash="other", name="Other")
    window.transcript.check.emit(item.id)
    qtbot.waitUntil(lambda: item.check == "Not verified: another model wrote this. Other is loaded.")
    qtbot.waitUntil(lambda: window.services.checks.item_of(item.id) is None)
    assert window.services.store.receipts(item.id) == []


def test_edit_and_send_again_makes_a_branch_and_keeps_the_draft(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    ask(qtbot, window, "first")
    ask(qtbot, window, "second")
    window.composer.set_text("unsent")
    window.transcript.edit.emit(window.transcript.items[0].id)
    assert window.composer.text() == "first"
    assert window.composer.editing
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Escape)
    assert (window.composer.text(), window.composer.editing) == ("unsent", False)
    window.transcript.edit.emit(window.transcript.items[0].id)
    ask(qtbot, window, "first, better")
    assert window.transcript.items[0].content == "first, better"
    assert (window.transcript.items[0].branch, window.transcript.items[0].branches) == (2, 2)
    assert len(window.transcript.items) == 2
    assert len(loader.requests[-1].messages) == 1
    assert window.composer.text() == "unsent"
    window.transcript.branch.emit(window.transcript.items[0].id, -1)
    assert len(window.transcript.items) == 4


def test_up_in_the_empty_box_edits_the_last_message(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "to be edited")
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Up)
    assert window.composer.text() == "to be edited"


def test_deleting_the_streaming_chat_is_safe_and_undoable(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """Bug 32: deleting the current chat froze or crashed the app."""
    held(qtbot, window, loader, "doomed")
    number = window.services.chats.current
    window.actions_by_key["delete"].trigger()
    assert window.services.chats.current == 0
    assert window.services.chats.conversations() == []
    assert "doomed" in window.toast.label.text()
    loader.release()
    idle(qtbot, window)
    window.toast.button.click()
    assert window.services.chats.current == number
    assert [i.state for i in window.transcript.items] == [State.COMPLETE, State.STOPPED]


def test_deleting_a_message_is_undoable(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    window.transcript.delete.emit(window.transcript.items[2].id)
    assert len(window.transcript.items) == 2
    window.actions_by_key["undo_delete"].trigger()
    assert len(window.transcript.items) == 4


def test_copy_gives_the_stored_source_without_reasoning(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    """Bugs 19 and 20."""
    loader.answer = "# Title\n\n| a |\n|---|\n| `b` |\n\n\ttab  \n<think>x</think>"
    loader.reasoning = "secret thoughts"
    ask(qtbot, window, "q")
    window.actions_by_key["copy_last"].trigger()
    assert QGuiApplication.clipboard().text() == loader.answer


def test_a_failure_is_told_at_the_reply_and_keeps_the_text(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    """Bug 30: a context error wiped the answer."""
    loader.error = ContextFull(
        "The context is full.", kept="Nothing was lost.", todo="Start a new chat.", detail="4,097 > 4,096"
    )
    item = ask(qtbot, window, "q")
    assert item.state is State.FAILED
    assert item.content
    assert item.error == {
        "what": "The context is full.",
        "kept": "Nothing was lost.",
        "todo": "Start a new chat.",
        "detail": "4,097 > 4,096",
    }
    stored = window.services.store.path(window.services.chats.current)[-1]
    assert (stored.content, stored.state) == (item.content, State.FAILED)
    assert stored.reply is not None
    assert stored.reply.error == item.error
    loader.error = None
    window.transcript.act.emit(item.id, "regenerate")
    idle(qtbot, window)
    assert window.transcript.items[-1].state is State.COMPLETE


def test_a_bug_in_the_engine_is_told_and_reported(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    bugs: list[str] = []
    window.services.generations.bug.connect(bugs.append)
    loader.error = ZeroDivisionError("oops")
    item = ask(qtbot, window, "q")
    assert item.error is not None
    assert "made a mistake" in item.error["what"]
    assert len(bugs) == 1
    assert "ZeroDivisionError: oops" in bugs[0]
    loader.error = None
    assert ask(qtbot, window, "again").state is State.COMPLETE


def test_a_load_that_fails_is_told_and_the_old_model_answers(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    loader.fail = CheckpointError("A shard is missing.", todo="Download it again.", detail="model-2.safetensors")
    window.actions_by_key["reload"].trigger()
    qtbot.waitUntil(lambda: not window.services.loader.loading)
    assert "A shard is missing." in window.empty.error.text
    assert "still loaded" in window.empty.error.text
    assert window.header.model.text() == "Pacenote demo 20M", "not the failed model's name"
    assert ask(qtbot, window, "are you there?").state is State.COMPLETE
    loader.fail = CheckpointError("Again.", todo="x")
    window.actions_by_key["reload"].trigger()
    qtbot.waitUntil(lambda: not window.banner.isHidden())
    assert "Again." in window.banner.text
    window.actions_by_key["reload"].trigger()
    qtbot.waitUntil(lambda: not window.services.loader.loading)
    assert window.banner.isHidden()


def test_a_message_sent_while_the_model_loads_waits_for_it(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    for failure in (None, CheckpointError("A shard is missing.", todo="Download it again.")):
        loader.fail = failure
        window.services.load()
        type_and_send(qtbot, window, "early")
        assert window.transcript.items[-1].waiting == "Waiting for the model…"
        idle(qtbot, window)
        assert window.transcript.items[-1].state is State.COMPLETE, "by the new model, or by the one that stayed"


def test_without_any_model_the_message_is_kept_and_the_reply_says_what_to_do(
    qtbot: QtBot, qapp: QApplication, loader: FakeLoader
) -> None:
    theme = Theme(qapp, "light")
    services = Services(paths.resolve(), loader)
    window = MainWindow(services, theme)
    window.show()
    loader.fail = CheckpointError("A shard is missing.", todo="Download it again.")
    services.start()
    item = ask(qtbot, window, "anybody there?")
    assert item.error is not None
    assert item.error["what"] == "No model is loaded."
    assert window.header.model.text() == "No model"
    services.load()
    qtbot.waitUntil(lambda: services.loader.info is not None)
    window.transcript.act.emit(item.id, "regenerate")
    idle(qtbot, window)
    assert window.transcript.items[-1].state is State.COMPLETE
    assert [i.content for i in window.transcript.items][0] == "anybody there?"  # noqa: RUF015
    window.close()
    services.close()
    window.deleteLater()
    services.deleteLater()
    theme.setParent(None)
    theme.deleteLater()


def test_a_setting_that_needs_a_reload_says_so_and_the_panel_shows_what_is(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    window.panel.tick()
    assert "4-bit" in window.panel.drafter.text()
    window.open_settings()
    dialog = window._settings_dialog
    dialog.fields["drafter"].editor.setCurrentIndex(2)
    assert not dialog._pending.isHidden()
    assert "4-bit" in window.panel.drafter.text()
    dialog._reload.click()
    qtbot.waitUntil(lambda: "dense bfloat16" in window.panel.drafter.text())
    assert not window.services.reload_pending()
    dialog.close()


def test_a_full_disk_is_told_nothing_is_lost_and_the_window_stays_usable(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader
) -> None:
    loader.answer = "x" * 60_000
    loader.pieces = Pieces(most=400)
    window.services.load()
    qtbot.waitUntil(lambda: not window.services.loader.loading)
    connection = window.services.store.db.connection
    item = held(qtbot, window, loader, "fill it", at=2)
    window.services.generations.flush()
    told: list[dict[str, str]] = []
    window.services.chats.failed.connect(told.append)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    loader.release()
    idle(qtbot, window)
    assert not window.banner.isHidden()
    assert "disk is full" in window.banner.text
    assert "press Save again" in window.banner.text
    assert [button.text() for button in window.banner.buttons()] == ["Save again"]
    assert item.content == loader.answer, "still on screen, whole"
    assert window.services.generations.unsaved() == 1
    window.composer.set_text("y" * 50_000)
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Return)
    assert window.composer.text() == "y" * 50_000, "what could not be saved stays in the composer"
    assert "Save again" not in told[0]["todo"], "its card has only OK"
    assert [button.text() for button in window.banner.buttons()] == ["OK"]
    connection.execute("PRAGMA max_page_count = 100000")
    window.services.generations.save_again()
    assert window.services.generations.unsaved() == 0
    stored = window.services.store.path(window.services.chats.current)[-1]
    assert (stored.content, stored.state) == (loader.answer, State.COMPLETE)
    assert window.banner.isHidden()


def test_quitting_with_a_reply_that_is_not_on_disk_asks_first(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("app.dialogs.quit_anyway", lambda parent, replies: asked.append(replies) or False)
    connection = window.services.store.db.connection
    held(qtbot, window, loader, "q", at=2)
    connection.execute("PRAGMA query_only = 1")
    loader.release()
    idle(qtbot, window)
    assert "cannot be written" in window.banner.text
    assert not window.close()
    assert asked == [1]
    connection.execute("PRAGMA query_only = 0")
    assert window.close()
    assert asked == [1], "saved by itself, so nothing to ask"


def test_examples_do_without_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: str) -> Path:
        raise ModuleNotFoundError

    monkeypatch.setattr("app.chat.empty.resources.files", gone)
    assert examples() == DEFAULT_EXAMPLES


def test_conversations_survive_a_restart(qtbot: QtBot, qapp: QApplication, loader: FakeLoader) -> None:
    """Bugs 25, 26."""
    theme = Theme(qapp, "light")
    texts: list[list[str]] = []
    for start in range(2):
        services = Services(paths.resolve(), loader)
        window = MainWindow(services, theme)
        window.show()
        services.start()
        qtbot.waitUntil(lambda s=services: s.loader.info is not None)
        if start == 0:
            ask(qtbot, window, "remember me")
            window.composer.set_text("a draft")
        texts.append([item.content for item in window.transcript.items])
        assert window.composer.text() == "a draft"
        window.close()
        services.close()
        window.deleteLater()
        services.deleteLater()
    assert texts[0] == texts[1]
    assert texts[0][0] == "remember me"
    theme.setParent(None)
    theme.deleteLater()


def test_quitting_while_a_reply_is_written_keeps_it(qtbot: QtBot, window: MainWindow, loader: FakeLoader) -> None:
    item = held(qtbot, window, loader, "q")
    QTimer.singleShot(0, loader.release)
    loader.release()
    window.services.close()
    from app.store import Database, Repository

    again = Repository(Database(window.services.paths.database))
    message = again.path(window.services.chats.current)[-1]
    assert message.content
    assert message.content.startswith("You said")
    assert message.state in (State.STOPPED, State.COMPLETE)
    assert item.content == message.content
    again.db.close()


def test_the_gui_thread_never_stalls_while_2000_tokens_stream(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, record_property: Callable[[str, object], None]
) -> None:
    """Bug 1: a 20 ms heartbeat has no gap over 100 ms, from a source at full speed, in a window's very first reply.

    What other programs on this machine take is not ours: the time in which our threads were ready and got no core is
    left out where the system tells it. On a machine with more to do than it has cores only this thread's own work is
    judged, and the output says so.
    """
    loader.answer = LONG * 4
    window.services.change_settings(dataclasses.replace(Settings(), max_tokens=100_000))
    window.rehearse()  # as at the start of the application
    heart = Heart()
    item = ask(qtbot, window, "write a lot")
    qtbot.waitUntil(lambda: window.transcript.up_to_date, timeout=20_000)
    heart.stop()
    tokens = int(item.caption.split()[0].replace(",", ""))
    assert tokens >= 2000
    gap, work = max(heart.gaps), max(heart.works)
    sys.stderr.write(
        f"heartbeat over {tokens} tokens, {len(item.content)} characters: {len(heart.gaps)} beats, longest gap "
        f"{gap:.0f} ms ({max(heart.walls):.0f} ms with what others took), most work in a gap {work:.0f} ms\n"
    )
    record_property("heartbeat_max_ms", gap)
    assert work <= 80
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if gap > 100 and load > cores + 1:
        sys.stderr.write(f"the clock was not judged: load {load:.1f} on {cores} cores\n")
    else:
        assert gap <= 100


def test_the_session_log_is_exported(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(qtbot, window, "secret words")
    target = tmp_path / "out.jsonl"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(target), ""))
    window.actions_by_key["export_log"].trigger()
    window.findChild(LogExport).export.click()
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    kinds = [row["kind"] for row in rows]
    assert (kinds[0], kinds[-1]) == ("header", "footer")
    assert kinds.count("round") > 3
    assert "secret words" not in target.read_text(), "no text of the chat unless asked for"
    monkeypatch.setattr("engine.telemetry.export.os.replace", _full)
    qtbot.waitUntil(lambda: window.findChild(LogExport) is None)
    window.actions_by_key["export_log"].trigger()
    window.findChild(LogExport).export.click()
    assert "could not be exported" in window.banner.text
    window.findChild(LogExport).reject()


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_wider_block_than_was_probed_waits_for_a_reload(qtbot: QtBot, window: MainWindow) -> None:
    services = window.services
    for size, pending in ((5, False), (7, True), (2, False)):
        services.change_settings(dataclasses.replace(Settings(), block_size=size))
        assert services.reload_pending() is pending
    services.change_settings(dataclasses.replace(Settings(), block_size=7))
    services.load()
    qtbot.waitUntil(lambda: not services.loader.loading)
    assert not services.reload_pending()
    services.change_settings(dataclasses.replace(Settings(), block_size=3))
    assert not services.reload_pending(), "fewer widths than probed are fine"


def test_chats_are_exported_and_imported(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(qtbot, window, "keep this")
    shown = [item.content for item in window.transcript.items]
    markdown, everything = tmp_path / "one.md", tmp_path / "all.json"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(markdown), ""))
    window.actions_by_key["export_chat"].trigger()
    assert "keep this" in markdown.read_text()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(everything), ""))
    window.actions_by_key["export_all"].trigger()
    window.actions_by_key["delete"].trigger()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_, **__: (str(everything), ""))
    window.actions_by_key["import_chats"].trigger()
    assert [item.content for item in window.transcript.items] == shown
    everything.write_text("{}")
    window.actions_by_key["import_chats"].trigger()
    assert "no export" in window.banner.text
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(tmp_path / "no" / "folder.json"), ""))
    window.actions_by_key["export_all"].trigger()
    assert "could not be written" in window.banner.text


def test_find_goes_to_messages_and_search_filters_chats(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "apples")
    window.new_chat()
    ask(qtbot, window, "pears")
    window.find_in_chat()
    window.find_bar.line.setText("pear")
    assert window.find_bar.count.text() == "message 2 of 2"
    window.find_bar.next()
    assert window.find_bar.count.text() == "message 1 of 2"
    window.find_bar.line.setText("nothing")
    assert window.find_bar.count.text() == "no message"
    window.find_bar.close_bar()
    window.sidebar.search.setText("APPLES")
    qtbot.waitUntil(lambda: window.sidebar.model.rowCount() == 2)
    window.sidebar.search.clear()
    qtbot.waitUntil(lambda: window.sidebar.model.rowCount() == 3)


def test_menus_have_their_roles_and_shortcuts(window: MainWindow) -> None:
    """ux 1.2 item 20."""
    expected = {
        "new": "Ctrl+N",
        "close": "Ctrl+W",
        "minimize": "Ctrl+M",
        "settings": "Ctrl+,",
        "find": "Ctrl+F",
        "search": "Ctrl+K",
        "copy_last": "Ctrl+Shift+C",
        "again": "Ctrl+R",
        "stop": "Ctrl+.",
        "sidebar": "Ctrl+Alt+S",
        "panel": "Ctrl+Alt+P",
    }
    for key, shortcut in expected.items():
        assert window.actions_by_key[key].shortcuts()[0].toString() == shortcut
    roles = {key: window.actions_by_key[key].menuRole() for key in ("settings", "quit", "about")}
    assert roles == {
        "settings": QAction.MenuRole.PreferencesRole,
        "quit": QAction.MenuRole.QuitRole,
        "about": QAction.MenuRole.AboutRole,
    }
    every = [s.toString() for a in window.actions_by_key.values() for s in a.shortcuts()]
    assert len(every) == len(set(every)), "no shortcut twice"


def test_every_control_has_a_name_and_takes_the_keyboard(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "q")
    for control in window.findChildren(QAbstractButton) + window.findChildren(QLineEdit):
        if control.objectName().startswith("qt_") or not control.isVisibleTo(window):
            continue
        name = control.accessibleName() or (control.text() if isinstance(control, QAbstractButton) else "")
        assert name, control
        # The clear button inside a line edit is reached by the line edit.
        if not isinstance(control.parent(), QLineEdit):
            assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, name


def test_the_panel_shows_the_open_chats_last_reply(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "one")
    first, speed = window.services.chats.current, window.panel.speed.text()
    window.new_chat()
    assert window.panel.speed.text() == "–"
    ask(qtbot, window, "two")
    window.services.chats.open(first)
    assert window.panel.speed.text() == speed


def test_a_narrow_window_folds_and_unfolds(qtbot: QtBot, window: MainWindow) -> None:
    assert not window.panel.isHidden()
    window.resize(800, 600)
    assert (window.panel.isHidden(), window.strip.isHidden(), window.sidebar.isHidden()) == (True, False, False)
    window.resize(640, 480)
    assert window.sidebar.isHidden()
    window.actions_by_key["sidebar"].trigger()
    assert not window.sidebar.isHidden()
    window.resize(1200, 700)
    assert (window.panel.isHidden(), window.strip.isHidden()) == (False, True)
    window.actions_by_key["panel"].trigger()
    assert window.panel.isHidden()
    assert window.strip.isHidden()
    window.actions_by_key["panel"].trigger()


def test_the_theme_is_switched_live(qtbot: QtBot, window: MainWindow) -> None:
    """Bug 18."""
    ask(qtbot, window, "q")
    light = window.grab().toImage()
    window.services.change_settings(dataclasses.replace(window.services.settings, theme="dark"))
    dark = window.grab().toImage()
    middle = (window.width() // 2, window.height() // 2)
    assert light.pixelColor(*middle).lightness() > 200
    assert dark.pixelColor(*middle).lightness() < 60
    window.services.change_settings(dataclasses.replace(window.services.settings, theme="light"))


def test_settings_that_cannot_be_saved_are_told(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.atomic.os.fsync", _full)
    window.services.change_settings(dataclasses.replace(Settings(), top_k=7))
    assert "settings could not be saved" in window.banner.text
    assert window.services.settings.top_k == 7


@pytest.mark.parametrize("where", ["composer", "search", "find"])
def test_ctrl_backspace_in_a_text_field_deletes_a_word_and_no_chat(
    qtbot: QtBot, window: MainWindow, where: str
) -> None:
    """The shortcut of Delete Chat took the key from every text field and deleted the open chat."""
    ask(qtbot, window, "precious")
    chat = window.services.chats.current
    window.activateWindow()
    if where == "find":
        window.find_in_chat()
    field = {"composer": window.composer.box, "search": window.sidebar.search, "find": window.find_bar.line}[where]
    field.setFocus()
    for character in "some words":
        qtbot.keyClick(field, character)
    qtbot.keyClick(field, Qt.Key.Key_Backspace, Qt.KeyboardModifier.ControlModifier)
    text = field.text() if isinstance(field, QLineEdit) else window.composer.text()
    assert text == "some "
    assert window.services.chats.current == chat
    assert window.services.store.conversation(chat) is not None


def test_cmd_backspace_in_the_composer_deletes_to_the_start_of_the_line(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box, "MAC", True)
    window.composer.set_text("one\ntwo three")
    qtbot.keyClick(window.composer.box, Qt.Key.Key_Backspace, Qt.KeyboardModifier.ControlModifier)
    assert window.composer.text() == "one\n"


def test_ctrl_backspace_in_the_list_deletes_the_marked_chat_and_no_hidden_one(qtbot: QtBot, window: MainWindow) -> None:
    """With a search that hides the open chat the shortcut deleted it all the same."""
    ask(qtbot, window, "apples")
    apples = window.services.chats.current
    window.new_chat()
    ask(qtbot, window, "pears")
    pears, store = window.services.chats.current, window.services.store
    window.activateWindow()
    window.sidebar.search.setText("apples")
    qtbot.waitUntil(lambda: window.sidebar.model.rowCount() == 2)
    window.sidebar.list.setFocus()
    qtbot.keyClick(window.sidebar.list, Qt.Key.Key_Backspace, Qt.KeyboardModifier.ControlModifier)
    assert window.services.chats.current == pears, "the focus alone opens nothing"
    assert store.conversation(apples) is not None
    assert store.conversation(pears) is not None
    window.sidebar.search.clear()
    qtbot.waitUntil(lambda: window.sidebar.model.rowCount() == 3)
    qtbot.keyClick(window.sidebar.list, Qt.Key.Key_Backspace, Qt.KeyboardModifier.ControlModifier)
    assert store.conversation(pears) is None


def test_undoing_a_deletion_marks_the_chat_that_comes_back(qtbot: QtBot, window: MainWindow) -> None:
    """The list was filled before the chat was open, so it marked another one, and a click there did nothing."""
    ask(qtbot, window, "apples")
    window.new_chat()
    ask(qtbot, window, "pears")
    pears = window.services.chats.current
    window.actions_by_key["delete"].trigger()
    window.actions_by_key["undo_delete"].trigger()
    assert window.services.chats.current == pears
    assert window.sidebar.list.currentIndex().data(ID_ROLE) == pears


def test_the_model_menu_is_not_mirrored(window: MainWindow) -> None:
    """It took over the layout that puts the arrow of its button to the right."""
    assert window.header.model_menu.layoutDirection() is Qt.LayoutDirection.LeftToRight


def test_a_custom_model_that_fails_at_start_leads_to_the_demo_and_can_be_dismissed(
    qtbot: QtBot, qapp: QApplication, loader: FakeLoader
) -> None:
    """The next start said "No model", and nothing offered one that works."""
    theme = Theme(qapp, "light")
    services = Services(paths.resolve(), loader)
    services.change_settings(dataclasses.replace(Settings(), target="/gone"))
    window = MainWindow(services, theme)
    window.show()
    loader.fail = CheckpointError("There is no such folder.", todo="x")
    services.start()
    qtbot.waitUntil(lambda: not services.loader.loading)
    card = window.empty.error
    buttons = {button.text(): button for button in card.buttons()}
    assert list(buttons) == ["Open model…", "Use the demo model", "Dismiss"]
    buttons["Dismiss"].click()
    assert card.isHidden()
    assert window.header.model.text() == "No model"
    loader.fail = CheckpointError("There is no such folder.", todo="x")
    window.reload_model()
    qtbot.waitUntil(lambda: not services.loader.loading)
    next(button for button in card.buttons() if "demo" in button.text()).click()
    qtbot.waitUntil(lambda: services.loader.info is not None)
    assert services.settings.target == ""
    assert card.isHidden()
    window.close()
    services.close()
    window.deleteLater()
    services.deleteLater()
    theme.setParent(None)
    theme.deleteLater()


def test_chats_and_logs_are_private_whatever_the_umask(
    qtbot: QtBot, qapp: QApplication, loader: FakeLoader, home: Path
) -> None:
    """They could be read by every user of the machine."""
    old = os.umask(0)
    try:
        (home / "data").mkdir(parents=True)
        (home / "data" / "chats.db").touch()  # of an older Pacenote
        services = Services(paths.resolve(), loader)
        theme = Theme(qapp, "light")
        window = MainWindow(services, theme)
        services.start()
        qtbot.waitUntil(lambda: services.loader.info is not None)
        ask(qtbot, window, "secret")
        data = services.paths.data
        modes = {path.name: path.stat().st_mode & 0o777 for path in [data, *data.rglob("*")]}
        window.close()
        services.close()
    finally:
        os.umask(old)
    logs = [name for name in modes if name.endswith(".jsonl")]
    assert len(logs) == 1
    assert (modes["data"], modes["sessions"]) == (0o700, 0o700)
    for name in ("chats.db", "chats.db-wal", "chats.db-shm", *logs):
        assert modes[name] == 0o600, name
    window.deleteLater()
    services.deleteLater()
    theme.setParent(None)
    theme.deleteLater()


def test_one_token_has_no_speed() -> None:
    """A reply that was stopped after its first token said 0.0 tok/s."""
    stats = {**stats_dict(StatsBuilder().build()), "tokens": 1}
    assert "tok/s" not in caption(stats, 1, "stopped")[0]


def test_a_message_that_does_not_fit_can_be_edited(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its card offered Regenerate, which fails again."""

    def too_long(_: Request) -> tuple[str, str]:
        raise ContextFull("The message is too long.", todo="Shorten it.")

    monkeypatch.setattr(loader, "_script", too_long)
    window.services.load()
    qtbot.waitUntil(lambda: not window.services.loader.loading)
    item = ask(qtbot, window, "very long")
    view = window.transcript.view(item.id)
    assert view is not None
    assert view._error is not None
    (button,) = view._error.buttons()
    assert button.text() == "Edit"
    button.click()
    assert window.composer.editing
    assert window.composer.text() == "very long"


def test_a_session_log_that_is_off_is_not_told_under_block_size(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sessionlog.EventLog, "take_notice", lambda _: Notice("decline", "The session log is off: the disk is full.")
    )
    item = ask(qtbot, window, "q")
    assert "session log" not in window.panel.width_label.text()
    assert "session log" in item.caption_tip


def test_figures_that_do_not_fit_end_in_an_ellipsis(qtbot: QtBot, window: MainWindow) -> None:
    """They were cut in the middle of a word."""
    item = ask(qtbot, window, "q")
    view = window.transcript.view(item.id)
    assert view is not None
    label = view._actions._caption
    assert label.text() == item.caption
    window.resize(640, 480)
    view._actions.resize(260, 28)
    assert label.text().endswith("…")
    assert item.caption.startswith(label.text().rstrip("…").rstrip())


def test_an_example_starts_a_chat(qtbot: QtBot, window: MainWindow) -> None:
    from PySide6.QtWidgets import QPushButton

    first = examples()[0]
    button = next(b for b in window.empty.findChildren(QPushButton) if b.text() == first)
    button.click()
    idle(qtbot, window)
    assert window.transcript.items[0].content == first


def test_the_acceptance_alarm_is_seen_without_the_panel_too(window: MainWindow) -> None:
    """In a narrow window there is no panel: the message at the bottom says it in short."""
    window.services.generations.alarm.emit(
        "Only 7 % of the last 200 drafts were accepted; 60 % are expected of this pair."
    )
    assert window.toast.isVisible()
    assert window.toast.label.text().startswith("Only 7 % of the last 200 drafts were accepted")
    assert not window.toast.button.isVisible()
