"""From an empty computer to a model that answers, by the window alone: find, fetch, load, ask, unload."""

from __future__ import annotations

import dataclasses
import gc
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import huggingface_hub
import keyring
import keyring.backends.fail
import mlx.core as mx
import pytest
from pytestqt.qtbot import QtBot

from app import paths
from app.application import make_qt
from app.models.dialog import ModelsDialog
from app.models.entry import State
from app.services import Services
from tests.support.fake_hub import FakeHub, fake_hub
from tests.support.tiny_pair import Shape, write_head, write_target

TARGET, HEAD = "owner/target", "owner/head"


@pytest.fixture(scope="session")
def qapp_cls() -> object:
    return make_qt


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    shape = Shape()
    write_target(tmp_path / "target", shape, bits=4)
    write_head(tmp_path / "head", shape)
    with fake_hub() as served:
        served.add(TARGET, tmp_path / "target")
        served.add(HEAD, tmp_path / "head")
        monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
        monkeypatch.setenv("PACENOTE_HOME", str(tmp_path / "home"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr(keyring, "get_keyring", keyring.backends.fail.Keyring)  # not the user's own
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        yield served
    huggingface_hub.close_session()


def test_a_repo_becomes_a_model_that_answers(qtbot: QtBot, hub: FakeHub) -> None:
    """The real hub client, the real engine, a local server. Nothing is typed but the names of two repos."""
    # What earlier tests of this process left would be freed in the midst of this one, which compares what is held.
    gc.collect()
    mx.clear_cache()
    services = Services(paths.resolve())
    services.engine.start()
    window = ModelsDialog(services.shelf, services.loader)
    qtbot.addWidget(window)
    asked: list[tuple[str, str, bool]] = []
    window.load_wanted.connect(lambda *args: asked.append(args))
    wrong: list[object] = []
    services.shelf.bug.connect(wrong.append)
    services.shelf.failed.connect(wrong.append)
    try:
        for repo in (TARGET, HEAD):
            window.other.place.setText(repo)
            window.other.add.click()
        try:
            qtbot.waitUntil(lambda: found(services), timeout=60_000)
        except qtbot.TimeoutError:
            pytest.fail(f"not found after a minute: {wrong}\n{state(services, hub)}")
        assert not wrong
        assert "MTP head" in window.rows[TARGET].text
        assert "Fits: needs about" in window.rows[TARGET].text
        window.rows[TARGET].press("load")
        assert asked == [(TARGET, HEAD, False)]
        services.change_settings(dataclasses.replace(services.settings, target=TARGET, head=HEAD, max_tokens=12))
        services.load()
        qtbot.waitUntil(lambda: services.loader.info is not None, timeout=120_000)
        info, memory = services.loader.info, services.loader.memory
        assert info is not None
        assert (info.name, info.drafter is not None) == (TARGET, True)
        assert memory is not None
        added = memory[1].held - memory[0].held  # other tests of this process may still hold memory as well
        assert added > 0
        services.chats.send_text("hello")
        qtbot.waitUntil(lambda: replied(services), timeout=60_000)
        window.unload.click()
        qtbot.waitUntil(lambda: services.loader.info is None, timeout=30_000)
        after = services.loader.memory
        assert after is not None
        assert after[1].held - memory[0].held < added / 2
    finally:
        services.close()


def found(services: Services) -> bool:
    entry = services.shelf.entry(TARGET)
    return entry is not None and entry.state is State.HERE and entry.head == HEAD and entry.fit is not None


def state(services: Services, hub: FakeHub) -> str:
    """All that says where a download is, and what every thread is at."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = [
        f"--- {names.get(ident)}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    ]
    return "\n".join([*map(str, services.shelf.entries()), *map(str, hub.seen), *stacks])


def replied(services: Services) -> bool:
    items = services.chats.items()
    return not services.generations.live_conversations() and items[-1].role == "assistant" and bool(items[-1].content)
