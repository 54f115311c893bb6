"""What the window does about the model, the settings and errors."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import Slot

from app.chat.empty import loading_text
from app.frame import Frame
from app.models.dialog import ModelsDialog
from app.services import Services
from app.settings import Settings
from app.settings.dialog import SettingsDialog
from app.theme import Theme


class ModelWindow(Frame):
    """Between the frame and the main window, which knows the chats."""

    def __init__(self, services: Services, theme: Theme) -> None:
        super().__init__(services, theme)
        self._load_error: dict[str, str] | None = None
        self.models: ModelsDialog | None = None
        loader = services.loader
        self.empty.cancel_load.connect(loader.cancel)
        self.empty.act.connect(self._on_load_action)
        self.banner.acted.connect(self._on_banner)
        loader.changed.connect(self.on_model)
        loader.progressed.connect(self._on_load_progress)
        loader.failed.connect(self._on_load_failed)
        services.settings_changed.connect(self._on_settings)
        services.settings_failed.connect(self.on_error)
        for view in (self.panel, self.strip):
            view.badge.again.connect(self.probe_again)

    @Slot()
    def refresh_live(self) -> None:
        """What depends on whether something runs."""
        raise NotImplementedError

    @Slot()
    def open_model(self) -> None:
        """The models window; not modal, downloads go on when it is closed."""
        if self.models is None:
            self.models = ModelsDialog(self.services.shelf, self.services.loader, self)
            self.models.load_wanted.connect(self._on_load_wanted)
        else:
            self.services.shelf.refresh()
        self.models.show()
        self.models.raise_()

    @Slot(str, str, bool)
    def _on_load_wanted(self, target: str, head: str, anyway: bool) -> None:
        self.services.change_settings(dataclasses.replace(self.services.settings, target=target, head=head))
        self._load_error = None
        self.banner.hide()
        self.services.load(anyway=anyway)

    @Slot()
    def reload_model(self) -> None:
        self._load_error = None
        self.banner.hide()
        self.services.load()

    @Slot()
    def probe_again(self) -> None:
        """Load the model again and check its exactness anew: caches computed under another verdict must not stay."""
        self._load_error = None
        self.banner.hide()
        self.services.load(probe_again=True)

    @Slot()
    def open_settings(self) -> None:
        dialog = SettingsDialog(self.services.settings, self.services.reload_pending(), self)
        dialog.changed.connect(self._on_dialog_changed)
        dialog.reload.connect(self.reload_model)
        self._settings_dialog = dialog
        dialog.open()

    @Slot(object)
    def _on_dialog_changed(self, settings: Settings) -> None:
        self.services.change_settings(settings)
        self._settings_dialog.show_pending(self.services.reload_pending())

    @Slot()
    def _on_settings(self) -> None:
        settings = self.services.settings
        self.composer.set_send_with(settings.send_with)
        if settings.theme != self.theme.mode:
            self.theme.set_mode(settings.theme)

    @Slot()
    def on_model(self) -> None:
        info = self.services.loader.info
        self.header.show_model(info.name if info is not None else "No model")
        self.services.meter.new_model(info.classic_ms if info is not None else 0.0)
        for view in (self.panel, self.strip):
            view.set_info(info)
        if self._load_error is None:
            if info is not None:
                self.empty.show_model(info)
            elif not self.services.loader.loading:
                self.empty.show_nothing()
        self.refresh_live()

    @Slot()
    def _on_load_progress(self) -> None:
        loader = self.services.loader
        if not loader.loading:
            return
        self._load_error = None
        text = loading_text(loader.progress, loader.seconds)
        self.header.show_model(text)
        self.empty.show_loading(loader.wanted_name, loader.progress, loader.seconds)
        self.actions_by_key["stop"].setEnabled(True)

    @Slot(dict)
    def _on_load_failed(self, error: dict[str, str]) -> None:
        self._load_error = error
        info, settings = self.services.loader.info, self.services.settings
        self.header.show_model(info.name if info is not None else "No model")
        actions = [("open", "Open model…")]
        if self.services.loader.refused is not None:
            actions.insert(0, ("anyway", "Load anyway"))
        elif info is None and (settings.target or settings.head):
            # Otherwise the next start fails the same way, and nothing leads to a model that works.
            actions.append(("demo", "Use the demo model"))
        actions.append(("dismiss_load", "Dismiss"))
        self.empty.show_error(error, info, *actions)
        if self.stack.currentWidget() is self.transcript:
            self.show_banner(error, *actions)
        self.refresh_live()

    @Slot(str)
    def _on_load_action(self, key: str) -> None:
        if key == "open":
            self.open_model()
        elif key == "anyway":
            self._load_error = None
            self.services.load(anyway=True)
        elif key == "demo":
            self.services.change_settings(dataclasses.replace(self.services.settings, target="", head=""))
            self.reload_model()
        elif key == "dismiss_load":
            self._load_error = None
            self.banner.hide()
            self.on_model()

    @Slot(dict)
    def on_error(self, error: dict[str, str]) -> None:
        self.show_banner(error, ("dismiss", "OK"))

    @Slot(dict)
    def _on_store_failed(self, error: dict[str, str]) -> None:
        self.show_banner(error, ("save", "Save again"))

    @Slot()
    def _on_store_recovered(self) -> None:
        self.banner.hide()

    def show_banner(self, error: dict[str, str], *actions: tuple[str, str]) -> None:
        self.banner.show_error(error, *actions)
        self.banner.show()

    @Slot(str)
    def _on_banner(self, key: str) -> None:
        self.banner.hide()
        if key == "save":
            self.services.generations.save_again()
        else:
            self._on_load_action(key)
