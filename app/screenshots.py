"""`python -m app.screenshots OUTDIR [--engine script|real]`: pictures of the real window in its states.

Needs a display (Xvfb will do) or QT_QPA_PLATFORM=offscreen. Keeps its chats in a temporary folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication, QDialog

from app import paths
from app.application import Application, make_qt
from app.chat.chatsettings import ChatSettingsDialog
from app.chat.empty import examples
from app.chat.templates import TemplateDialog
from app.enginelike import Loader
from app.models.scripted import GIB, ScriptedHub
from app.replay import ScriptedEngine, ScriptedLoader
from app.samples import SAMPLES
from app.store import Attachment, Draft
from engine import Begun, CheckpointError, Found, HubError, LocalModel, Request, Unusable

FILES = (
    Attachment("meeting-notes.md", "# Notes\n\n" + "Something was said here.\n" * 40),
    Attachment("a-file-with-a-rather-long-name-for-a-chip.csv", "a,b\n1,2\n"),
)
PASTED = Attachment("Pasted text", "A line of text.\n" * 900, pasted=True)
WAIT_MS = 60_000
TARGET = "mlx-community/Qwen3.8-27B-4bit"
MODES = ("light", "dark")


class Hold:
    """Holds a scripted reply in the middle, so that a streaming window can be taken."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, index: int) -> None:
        if self.at is not None and index == self.at:
            self.reached.set()
            self.go_on.wait(30)


class Studio:
    """Drives one window and takes its picture."""

    def __init__(
        self, qt: QApplication, out: Path, load: Loader | None, hold: Hold | None, hub: ScriptedHub | None = None
    ) -> None:
        self.qt = qt
        self.out = out
        self.hold = hold
        self.hub = hub
        self.application = Application(qt, paths.resolve(), load, hub)
        self.application.start()
        self.window = self.application.window
        self.services = self.application.services
        self.until(self._loaded)

    def take(
        self, name: str, *, modes: tuple[str, ...] = ("light", "dark"), size: tuple[int, int] = (1180, 760)
    ) -> None:
        self.window.resize(*size)
        for mode in modes:
            self.application.theme.set_mode(mode)
            self.settle(250)
            # A slow machine may need longer to draw all of it.
            self.until(self._drawn)
            path = self.out / f"{name}-{mode}.png"
            self.window.grab().save(str(path))
            print(path)  # noqa: T201

    def dialog(self, kind: type[QDialog], name: str) -> None:
        """Take and close a dialog that the window has opened."""
        self.settle(250)
        for dialog in self.window.findChildren(kind):
            path = self.out / f"{name}-{self.application.theme.mode}.png"
            dialog.grab().save(str(path))
            print(path)  # noqa: T201
            dialog.close()

    def ask(self, text: str, *, wait: bool = True) -> None:
        self.services.chats.send_text(text)
        if wait:
            self.until(self._idle)

    def until(self, done: Callable[[], bool]) -> None:
        """Run the event loop until `done`, at most a minute."""
        loop = QEventLoop()
        poll, limit = QTimer(), QTimer()
        limit.setSingleShot(True)
        limit.timeout.connect(loop.quit)
        limit.start(WAIT_MS)
        # Held here: a connection to a bound method does not keep its object alive.
        check = _Check(done, loop)
        poll.timeout.connect(check.look)
        poll.start(10)
        if not done():
            loop.exec()
        poll.stop()

    def settle(self, milliseconds: int) -> None:
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()

    def take_models(self, name: str) -> None:
        """The models window, in both modes."""
        dialog = self.window.models
        assert dialog is not None  # opened by the caller
        for mode in MODES:
            self.application.theme.set_mode(mode)
            self.settle(250)
            path = self.out / f"{name}-{mode}.png"
            dialog.grab().save(str(path))
            print(path)  # noqa: T201

    def _looked(self) -> bool:
        return not self.services.shelf.looking

    def _half_way(self) -> bool:
        entry = self.services.shelf.entry(TARGET)
        return entry is not None and entry.progress is not None and entry.progress.done > 0

    def _loaded(self) -> bool:
        return not self.services.loader.loading

    def _drawn(self) -> bool:
        return self.window.transcript.up_to_date

    def _idle(self) -> bool:
        return not self.services.generations.live_conversations()

    def _some_text(self) -> bool:
        return len(self.window.transcript.items[-1].content) > 20 or self._idle()

    def _held(self) -> bool:
        return self.hold is not None and self.hold.reached.is_set()


class _Check:
    def __init__(self, done: Callable[[], bool], loop: QEventLoop) -> None:
        self._done, self._loop = done, loop

    def look(self) -> None:
        if self._done():
            self._loop.quit()


def scripted(studio: Studio, loader: ScriptedLoader) -> None:
    """All states, from a script."""
    hold = studio.hold
    assert hold is not None  # given by main
    studio.take("empty")
    for name in ("short", "code", "table", "rtl", "reasoning"):
        studio.window.new_chat()
        studio.ask(name)
        if name == "reasoning":
            for item in studio.window.transcript.items:
                view = studio.window.transcript.view(item.id)
                if item.role == "assistant" and view is not None and hasattr(view, "toggle_reasoning"):
                    view.toggle_reasoning()
        studio.take(name)
        if name in ("short", "code", "table"):
            studio.window.actions_by_key["speculation_view"].trigger()
            studio.take(f"speculation-{name}")
            studio.window.actions_by_key["speculation_view"].trigger()
    studio.services.chats.regenerate_last()
    studio.until(studio._idle)
    studio.window.transcript.check.emit(studio.window.transcript.items[-1].id)
    studio.take("verified-branch", modes=("light",))
    studio.window.delete_chat()
    studio.take("undo", modes=("dark",))
    studio.window.undo_delete()
    studio.window.sidebar.search.setText("grinder mill")
    studio.settle(300)
    studio.window.sidebar.search.returnPressed.emit()
    studio.take("search")
    studio.window.new_chat()
    hold.at = 40
    studio.ask("streaming", wait=False)
    studio.until(studio._held)
    studio.take("streaming")
    studio.take("narrow", size=(640, 560))
    hold.at = None
    hold.go_on.set()
    studio.until(studio._idle)
    cut_and_attached(studio)
    studio.window.new_chat()
    studio.ask("fails")
    studio.take("error")
    loader.fail = CheckpointError(
        "The model in /models/Qwen3.5-27B cannot be used: model-00003-of-00006.safetensors is missing.",
        todo="Download it again, or choose another folder.",
        detail="/models/Qwen3.5-27B/model.safetensors.index.json names 6 shards, 5 were found.",
    )
    studio.window.new_chat()
    studio.services.load()
    studio.until(studio._loaded)
    studio.take("load-error")
    studio.window.open_settings()
    studio.settle(300)
    studio.window._settings_dialog.grab().save(str(studio.out / "settings-dark.png"))
    studio.window._settings_dialog.close()
    studio.window.panel.badge.open_popover()
    studio.settle(200)
    popover = studio.window.panel.badge.popover
    if popover is not None:
        popover.grab().save(str(studio.out / "badge-dark.png"))
        popover.close()


def cut_and_attached(studio: Studio) -> None:
    """A reply that was cut, files in a message and in the composer, and the dialogs of a chat."""
    window, services = studio.window, studio.services
    settings = services.settings
    window.new_chat()
    services.change_settings(dataclasses.replace(settings, max_tokens=60))
    services.chats.send(Draft("short", FILES))
    studio.until(studio._idle)
    services.change_settings(settings)
    window.composer.set_draft(Draft("And what does this one say?", (*FILES, PASTED)))
    studio.take("attachments")
    studio.take("attachments-narrow", modes=("light",), size=(640, 560))
    window.composer.clear()
    window.chat_settings()
    studio.dialog(ChatSettingsDialog, "chat-settings")
    services.store.save_template("Explain to a child", "Explain {{thing}} so that a child of {{age}} understands it.")
    services.store.save_template("Proofread", "Proofread this text and list what you changed:\n\n{{text}}")
    window.manage_templates()
    studio.dialog(TemplateDialog, "templates")


def models(studio: Studio) -> None:
    """The models window: what is here, a download on its way, a gated repo."""
    hub, shelf = studio.hub, studio.services.shelf
    assert hub is not None  # given by main
    small = LocalModel("mlx-community/Qwen3.5-4B-MLX-4bit", "", False, int(2.4 * GIB), "4-bit group 64", 262_144)
    own = LocalModel("/Volumes/models/my-qwen-9B-bf16", "/Volumes/models/heads", True, 18 * GIB, "none", 262_144)
    hub.found = Found(
        (small, own),
        (Unusable("someone/half-a-model", "model-00003-of-00006.safetensors is missing."),),
        (Begun("mlx-community/Qwen3.6-27B-4bit", int(5.3 * GIB)),),
    )
    studio.window.open_model()
    studio.until(studio._looked)
    shelf.look_at("mlx-community/Qwen3.8-27B-8bit")
    hub.refusals["mlx-community/Qwen3.5-27B-4bit"] = HubError(
        "You have no access to mlx-community/Qwen3.5-27B-4bit.",
        todo="Open its page, accept its licence or ask for access, then try again.",
        detail="HTTP 403",
        status=403,
    )
    shelf.fetch("mlx-community/Qwen3.5-27B-4bit")
    shelf.fetch(TARGET)
    studio.until(studio._half_way)
    studio.until(studio._looked)
    studio.take_models("models")
    dialog = studio.window.models
    assert dialog is not None  # opened above
    dialog.list.scroll_to("mlx-community/Qwen3.5-27B-4bit")
    studio.take_models("models-gated")
    hub.go_on.set()
    dialog.close()


def real(studio: Studio) -> None:
    """What the real engine says, on this machine."""
    studio.take("real-empty", modes=("light",))
    first, second, *_ = examples()
    studio.window.new_chat()
    studio.ask(first)
    studio.take("real-reply")
    studio.window.transcript.check.emit(studio.window.transcript.items[-1].id)
    studio.until(studio._idle)
    studio.ask(second, wait=False)
    studio.until(studio._some_text)
    studio.take("real-streaming", modes=("dark",))
    studio.until(studio._idle)
    studio.take("real-chat", modes=("light",))


def reply(request: Request) -> tuple[str, str]:
    asked = request.messages[-1].content.split("\n")[0]
    if asked == "fails":
        raise CheckpointError(
            "The device ran out of memory while reading the prompt.",
            kept="Your message is saved.",
            todo="Close other programs, or use a smaller model, then press Regenerate.",
            detail="[metal] allocation of 2.1 GiB failed",
        )
    return SAMPLES.get(asked, ("", SAMPLES["short"][1]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.screenshots")
    parser.add_argument("out", type=Path)
    parser.add_argument("--engine", choices=("script", "real"), default="script")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["PACENOTE_HOME"] = home
        qt = make_qt(["pacenote"])
        if arguments.engine == "real":
            studio = Studio(qt, arguments.out, None, None)
            real(studio)
        else:
            hold = Hold()
            loader = ScriptedLoader(_Maker(hold).make)
            studio = Studio(qt, arguments.out, loader, hold, ScriptedHub(hold=True))
            settings = dataclasses.replace(studio.services.settings, block_size=4)
            studio.services.change_settings(settings)
            models(studio)
            scripted(studio, loader)
        studio.window.close()
        studio.application.close()
    return 0


class _Maker:
    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    def make(self, options: object) -> ScriptedEngine:
        return ScriptedEngine(reply, gate=self._hold)


if __name__ == "__main__":
    raise SystemExit(main())
