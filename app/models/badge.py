"""How far all downloads are, on the icon in the Dock."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from PySide6.QtGui import QGuiApplication

from engine import DownloadProgress


def show_share(running: Sequence[DownloadProgress]) -> None:
    """Per cent of all their bytes; none when nothing runs. Elsewhere Qt asks for a desktop file, which is not there."""
    application = QGuiApplication.instance()
    if platform.system() != "Darwin" or not isinstance(application, QGuiApplication):
        return
    done, total = sum(p.done for p in running), sum(p.total for p in running)
    application.setBadgeNumber(max(1, 100 * done // total) if total else 0)
