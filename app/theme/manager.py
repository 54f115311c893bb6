"""Applies the tokens to the application and follows the system's light or dark."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from app.theme.style import style_sheet
from app.theme.tokens import BODY, CODE, DARK, LIGHT, Roles

# There is one application, so there is one set of roles; asked for with every paint.
_in_use: list[Roles] = [LIGHT]


class Theme(QObject):
    """The roles in use. `changed` is emitted after palette and style sheet are in place."""

    changed = Signal()

    def __init__(self, application: QApplication, mode: str = "system") -> None:
        super().__init__(application)
        self._application = application
        self.mode = mode
        self.roles = LIGHT
        hints = application.styleHints()
        hints.colorSchemeChanged.connect(self._on_system_changed)
        self.set_mode(mode)

    def set_mode(self, mode: str) -> None:
        """mode: "system", "light" or "dark"."""
        self.mode = mode
        hints = self._application.styleHints()
        wanted = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}.get(mode)
        # Tells native title bars, menus and dialogs; a system that cannot do it ignores it.
        if wanted is None:
            hints.unsetColorScheme()
        else:
            hints.setColorScheme(wanted)
        self._apply()

    @Slot()
    def _on_system_changed(self) -> None:
        if self.mode == "system":
            self._apply()

    def _apply(self) -> None:
        dark = (
            self._application.styleHints().colorScheme() == Qt.ColorScheme.Dark
            if self.mode == "system"
            else self.mode == "dark"
        )
        self.roles = DARK if dark else LIGHT
        _in_use[0] = self.roles
        self._application.setPalette(palette(self.roles))
        self._application.setStyleSheet(style_sheet(self.roles))
        self.changed.emit()


def current() -> Roles:
    """The roles in use, for code that paints."""
    return _in_use[0]


def palette(roles: Roles) -> QPalette:
    """The roles as a Qt palette."""
    result = QPalette()
    table = {
        QPalette.ColorRole.Window: roles.bg,
        QPalette.ColorRole.WindowText: roles.text,
        # Fusion draws no outline that shows on dark; a lighter field does.
        QPalette.ColorRole.Base: roles.bg_raised if roles.name == "dark" else roles.bg,
        QPalette.ColorRole.AlternateBase: roles.bg_sunken,
        QPalette.ColorRole.Text: roles.text,
        QPalette.ColorRole.Button: roles.bg_raised,
        QPalette.ColorRole.ButtonText: roles.text,
        QPalette.ColorRole.BrightText: roles.on_accent,
        QPalette.ColorRole.Highlight: roles.selection,
        QPalette.ColorRole.HighlightedText: roles.text,
        QPalette.ColorRole.Link: roles.accent,
        QPalette.ColorRole.LinkVisited: roles.accent,
        QPalette.ColorRole.PlaceholderText: roles.text_soft,
        QPalette.ColorRole.ToolTipBase: roles.bg_raised,
        QPalette.ColorRole.ToolTipText: roles.text,
        QPalette.ColorRole.Mid: roles.line,
        QPalette.ColorRole.Light: roles.bg_raised,
        QPalette.ColorRole.Midlight: roles.line,
        QPalette.ColorRole.Dark: roles.text_soft,
        QPalette.ColorRole.Shadow: roles.line,
        QPalette.ColorRole.Accent: roles.accent,
    }
    for role, value in table.items():
        result.setColor(role, QColor(value))
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText, QPalette.ColorRole.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, role, QColor(roles.text_soft))
    return result


def text_font(size: int = BODY[0], *, bold: bool = False) -> QFont:
    """The system font at a pixel size."""
    font = QFont(QApplication.font())
    font.setPixelSize(size)
    if bold:
        font.setWeight(QFont.Weight.DemiBold)
    return font


def figure_font(size: int, *, bold: bool = False) -> QFont:
    """The system font with figures of one width, so that a number never moves its neighbours."""
    font = text_font(size, bold=bold)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def code_font(size: int = CODE[0]) -> QFont:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(size)
    return font


def use_class(widget: QWidget, name: str) -> None:
    """Give a widget a class of the style sheet, and have it drawn so."""
    if widget.property("class") != name:
        widget.setProperty("class", name)
        if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
            return  # not drawn yet: Qt will look at the class when it is
        widget.style().unpolish(widget)
        widget.style().polish(widget)
