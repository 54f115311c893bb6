"""What the user chose. One table (`table.Settings`) drives the file, the dialog and the defaults."""

from app.settings.file import SettingsFile
from app.settings.table import Applies, Settings, Spec, specs

__all__ = ["Applies", "Settings", "SettingsFile", "Spec", "specs"]
