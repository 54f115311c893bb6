"""What stands behind the window: store, engine thread, loader, chats. Made once, closed once, in the right order."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app import collector, sessionlog
from app.activity import Activity, system
from app.chat.chats import Chats
from app.chat.checks import Checks
from app.chat.generations import Generations
from app.chat.markdown.highlight import import_lexers
from app.enginelike import Loader
from app.errorcard import as_dict
from app.models.loader import ModelLoader, Numbers
from app.models.own import OwnFolders
from app.models.shelf import Shelf
from app.panel.meter import Meter
from app.paths import Paths
from app.pump import Pump
from app.sessionlog import SessionLogs
from app.settings import Settings, SettingsFile
from app.store import Database, Repository
from app.worker import EngineThread
from engine import Hub, KnownError


class Services(QObject):
    """Raises StoreError when the conversations cannot be opened."""

    settings_changed = Signal()
    settings_failed = Signal(dict)

    def __init__(
        self, paths: Paths, load: Loader | None = None, parent: QObject | None = None, *, hub: Hub | None = None
    ) -> None:
        super().__init__(parent)
        self.paths = paths
        self.file = SettingsFile(paths.settings)
        self.settings = self.file.load()
        self.store = Repository(Database(paths.database))
        self.meter = Meter()
        sessionlog.remove(paths.sessions, self.store.gone)
        logs = SessionLogs(paths.sessions, lambda: self.settings.log_text)
        self.engine = EngineThread(
            load, logs, self, afterwards=import_lexers, kept=self._kept_chat, detailed=lambda: self.settings.time_stages
        )
        self.pump = Pump(self.engine, self)
        numbers = Numbers()
        self.loader = ModelLoader(self.engine, numbers, self)
        self.shelf = Shelf(hub or Hub(paths.heads), OwnFolders(paths.own_models), parent=self)
        self.shelf.held = self._held
        self.loader.changed.connect(self._on_model)
        self.generations = Generations(self.engine, self.store, self.meter, numbers, self)
        self.activity = Activity(self._writing, system(), self)
        self.generations.live_changed.connect(self.activity.update)
        self.checks = Checks(self.engine, self.store, numbers, self)
        self.chats = Chats(self.store, self.generations, self.checks, self.settings, self)
        self.pump.arrived.connect(self.loader.on_events)
        self.pump.arrived.connect(self.generations.on_events)
        self.pump.arrived.connect(self.checks.on_events)
        self._closed = False

    def start(self) -> None:
        """Start the engine's thread and load the model of the settings."""
        self.engine.start()
        self.load()

    def _writing(self) -> bool:
        return bool(self.generations.live_conversations())

    def _kept_chat(self) -> Path | None:
        """Called on the engine's thread. Where the last chat's caches are kept; what is not wanted does not stay."""
        if self.settings.keep_chat:
            return self.paths.kept_chat
        with contextlib.suppress(OSError):
            self.paths.kept_chat.unlink(missing_ok=True)
        return None

    def load(self, *, anyway: bool = False, probe_again: bool = False) -> None:
        """anyway: also what does not fit in memory. probe_again: see `LoadOptions`."""
        self.loader.load(replace(self.settings.load_options(), load_anyway=anyway, probe_again=probe_again))

    def _held(self) -> int:
        """Bytes that the model in use would give back."""
        info = self.loader.info
        return 0 if info is None else info.target_bytes + (info.drafter.bytes if info.drafter is not None else 0)

    def reload_pending(self) -> bool:
        """Whether a setting waits for the model to be loaded again."""
        loaded, wanted = self.loader.options, self.settings.load_options()
        if loaded is None:
            return False
        if loaded.max_block < wanted.max_block:
            return True  # a wider block than was probed
        # How it was loaded, once, is no setting.
        return replace(loaded, max_block=wanted.max_block, load_anyway=False, probe_again=False) != wanted

    @Slot()
    def _on_model(self) -> None:
        """Another model is loaded, so other memory is free."""
        if self.loader.info is not None:
            collector.leave_out()
        if self.shelf.looked:
            self.shelf.refresh()

    def change_settings(self, settings: Settings) -> None:
        """Use and keep them. When they cannot be written they are used all the same, and `settings_failed` tells."""
        self.settings = settings
        self.chats.settings = settings
        self.settings_changed.emit()
        try:
            self.file.save(settings)
        except KnownError as error:
            self.settings_failed.emit(as_dict(error))

    def close(self) -> None:
        """Stop what runs, take the engine's last events, save, close. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self.chats.save_draft()
        self.shelf.close()
        self.engine.close()
        if self.engine.farewell is not None:
            # The window is gone; the next start reads the chat again, which its progress shows.
            sys.stderr.write(f"{self.engine.farewell.text}\n")
        self.pump.drain_all()
        self.generations.close()
        self.activity.close()
        self.store.db.close()
