"""What the window shows and asks about the context, kept chats and reasoning."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import paths
from app.chat.generations import prefill_text
from app.chat.requests import request_dict, request_from
from app.panel.meter import Meter
from app.panel.panel import Panel
from app.panel.words import kept_text
from app.replay import DEMO_INFO
from app.services import Services
from app.settings import Settings
from app.window import MainWindow
from engine import ContextFull, ContextUse, Message, Notice, PrefillProgress, Request, WhenFull
from tests.unit.app.fakes import FakeLoader
from tests.unit.app.test_window import ask, idle

USE = ContextUse(3912, 4096, 6, 14, 10 << 20, 2 << 30)


def test_the_panel_shows_the_context_and_what_chats_are_kept_in(qtbot: QtBot) -> None:
    meter = Meter()
    panel = Panel(meter)
    qtbot.addWidget(panel)
    panel.show()
    panel.set_info(DEMO_INFO)
    assert panel.kept.text() == "–"
    meter.context(USE)
    panel.tick()
    assert panel.context.text() == "3,912 / 4,096"
    assert "6 messages left out of the prompt" in panel.context.toolTip()
    assert panel.kept.text() == "10.0 MiB of 2.00 GiB"
    assert panel.kept.toolTip().startswith("14 places in chats")
    meter.begin()
    panel.tick()
    assert panel.kept.text() == "10.0 MiB of 2.00 GiB", "it is of all chats, not of one reply"
    meter.new_model()
    panel.tick()
    assert panel.kept.text() == "–", "another model keeps nothing yet"


def test_a_reply_brings_the_figures(qtbot: QtBot, window: MainWindow) -> None:
    """From the engine's event to the panel."""
    ask(qtbot, window, "q")
    use = window.services.meter.use
    assert use is not None
    assert window.services.meter.position == use.tokens
    assert kept_text(use) == "0.4 MiB of 1.00 GiB"


def test_the_time_left_is_told_from_a_second_on() -> None:
    assert prefill_text(PrefillProgress(64, 512, 0, 2.0, 14.3)).endswith("about 14.3 s left")
    assert prefill_text(PrefillProgress(64, 512, 32, 2.0, 75.0)).endswith("32 kept from before, about 1 min 15 s left")
    assert "left" not in prefill_text(PrefillProgress(64, 512, 0, 2.0, 0.4))
    assert "left" not in prefill_text(PrefillProgress(64, 512, 0, 2.0))


def test_a_full_chat_offers_to_leave_out_its_oldest_turns(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For this reply; a setting does it always. A message that is too long alone does not offer it."""
    script = loader._script

    def full(request: Request) -> tuple[str, str]:
        if request.when_full is WhenFull.REFUSE:
            raise ContextFull("This chat has 5000 tokens.", todo="Leave out the oldest turns.", can_drop=True)
        return script(request)

    monkeypatch.setattr(loader, "_script", full)
    window.services.load()
    qtbot.waitUntil(lambda: not window.services.loader.loading)
    item = ask(qtbot, window, "one more")
    view = window.transcript.view(item.id)
    assert view is not None
    assert view._error is not None
    leave_out, edit = view._error.buttons()
    assert (leave_out.text(), edit.text()) == ("Leave out the oldest turns", "Edit")
    leave_out.click()
    idle(qtbot, window)
    assert loader.requests[-1].when_full is WhenFull.DROP_OLDEST
    assert window.transcript.items[-1].content.startswith("You said: one more")
    window.services.change_settings(dataclasses.replace(window.services.settings, when_full="drop oldest turns"))
    ask(qtbot, window, "and another")
    assert loader.requests[-1].when_full is WhenFull.DROP_OLDEST


@pytest.mark.parametrize(
    ("setting", "asked"), [("default", None), ("off", False), ("on", True), ("low", "low"), ("high", "high")]
)
def test_the_reasoning_setting_reaches_the_request(
    qtbot: QtBot, window: MainWindow, loader: FakeLoader, setting: str, asked: bool | str | None
) -> None:
    window.services.change_settings(dataclasses.replace(window.services.settings, reasoning=setting))
    ask(qtbot, window, "q")
    assert loader.requests[-1].thinking == asked


def test_a_stored_request_comes_back_whole() -> None:
    """Verify must leave out the same turns and reason as much; rows of older versions do not say."""
    request = Request((Message("user", "q"),), thinking="low", when_full=WhenFull.DROP_OLDEST, seed=3)
    kept = json.loads(json.dumps(request_dict(request)))
    assert request_from(kept, request.messages, 3) == request
    del kept["when_full"]
    assert request_from(kept, request.messages, 3).when_full is WhenFull.REFUSE


def test_the_memory_for_kept_chats_is_a_setting_that_waits_for_a_reload() -> None:
    assert Settings().load_options().boundary_bytes is None
    assert Settings(kept_memory=512).load_options().boundary_bytes == 512 * 2**20


@pytest.mark.parametrize("keep", [False, True])
def test_the_last_chats_caches_are_kept_at_quit_only_when_asked(
    qapp: object, qtbot: QtBot, keep: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Off: nothing is written, and what an earlier run left is taken away. A disk that refuses is told."""
    where, loader = paths.resolve(), FakeLoader()
    where.kept_chat.write_bytes(b"of an earlier run")
    services = Services(where, loader)
    services.change_settings(Settings(keep_chat=keep))
    services.start()
    qtbot.waitUntil(lambda: services.loader.info is not None)
    (engine,) = loader.engines
    engine.cannot_keep = Notice("cache", "This chat could not be kept for the next start: the disk is full.")
    services.load()
    qtbot.waitUntil(lambda: not services.loader.loading)
    first, second = loader.engines
    second.cannot_keep = engine.cannot_keep
    services.close()
    assert first.kept == ([("restored", where.kept_chat)] if keep else [])
    assert second.kept == ([("saved", where.kept_chat)] if keep else [])
    assert where.kept_chat.exists() == keep
    assert ("the disk is full" in capsys.readouterr().err) == keep


def test_the_kept_chat_lies_in_the_private_folder(tmp_path: Path) -> None:
    assert paths.Paths(tmp_path, tmp_path, tmp_path).kept_chat.parent == tmp_path
