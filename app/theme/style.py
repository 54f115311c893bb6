"""The style sheet, built from the roles. Narrow on purpose: what it does not name stays native."""

from __future__ import annotations

import sys
from string import Template

from app.theme.tokens import BODY, CAPTION, RADIUS, RADIUS_COMPOSER, Roles

_SHEET = Template("""
QWidget#window, QWidget#column, QWidget#transcript { background: $bg; color: $text; }
QWidget#sidebar, QWidget#panel, QWidget#strip { background: $bg_sunken; }
QWidget#sidebar { border-right: 1px solid $line; }
QWidget#panel { border-left: 1px solid $line; }
QMainWindow::separator { width: 1px; height: 1px; }
QWidget#header { border-bottom: 1px solid $line; background: $bg; }
QWidget#strip { border-top: 1px solid $line; }

QLabel[class~="caption"] { color: $text_soft; font-size: ${caption}px; }
QLabel[class~="title"] { font-size: ${body}px; font-weight: 600; }
QLabel[class~="heading"] { font-size: 22px; font-weight: 600; }
QLabel[class~="soft"] { color: $text_soft; }
QLabel[class~="bad"] { color: $bad; }
QLabel[class~="warn"] { color: $warn; }

QToolButton[class~="quiet"], QPushButton[class~="quiet"] {
    border: none; border-radius: 6px; padding: 4px 6px; background: transparent; color: $text_soft;
}
QToolButton[class~="quiet"]:hover, QPushButton[class~="quiet"]:hover { background: $bg_raised; color: $text; }
QToolButton[class~="quiet"]:focus, QPushButton[class~="quiet"]:focus { background: $bg_raised; }
QToolButton[class~="quiet"]:checked { color: $accent; }
QToolButton[class~="quiet"]::menu-indicator, QPushButton[class~="quiet"]::menu-indicator { image: none; }
QPushButton[class~="plain"] {
    border: 1px solid $line; border-radius: 6px; padding: 5px 12px; background: $bg; color: $text;
}
QPushButton[class~="plain"]:hover { background: $bg_raised; }
QPushButton[class~="plain"]:focus { border-color: $accent; }
QPushButton[class~="small"] {
    border: 1px solid $line; border-radius: 6px; padding: 3px 10px;
    background: $bg; color: $text; font-size: ${caption}px;
}
QPushButton[class~="small"]:hover { background: $bg_raised; }
QPushButton[class~="small"]:focus { border-color: $accent; }
QPushButton[class~="small"]:disabled, QPushButton[class~="plain"]:disabled {
    background: $bg_sunken; color: $text_soft; border-color: $bg_sunken;
}
QPushButton[class~="example"] {
    border: 1px solid $line; border-radius: ${radius}px; padding: 9px 14px;
    background: $bg; color: $text; text-align: left;
}
QPushButton[class~="example"]:hover { background: $bg_sunken; }
QPushButton[class~="example"]:focus { border-color: $accent; }
QPushButton[class~="send"] {
    border: none; border-radius: 8px; background: $accent; color: $on_accent; font-weight: 600; padding: 0 12px;
}
QPushButton[class~="send"]:disabled { background: $bg_raised; color: $text_soft; }
QPushButton[class~="send"]:focus { border: 2px solid $text; }
QPushButton[class~="pill"] {
    border: 1px solid $line; border-radius: 15px; padding: 5px 14px;
    background: $bg; color: $text; font-size: ${caption}px;
}
QPushButton[class~="pill"]:hover { background: $bg_raised; }

QFrame#composer { background: $bg; border: 1px solid $line; border-radius: ${composer}px; }
QFrame#composer[focused="true"] { border-color: $accent; }
QFrame#composer QPlainTextEdit { background: transparent; border: none; }
QFrame[class~="card"] { background: $bg_sunken; border: 1px solid $line; border-radius: ${radius}px; }
QFrame[class~="error"] { background: $bg_sunken; border: 1px solid $bad; border-radius: ${radius}px; }
QFrame[class~="popover"] { background: $bg; border: 1px solid $line; border-radius: ${radius}px; }
QFrame[class~="toast"] { background: $bg_raised; border: 1px solid $line; border-radius: ${radius}px; }
QFrame[class~="bubble"] { background: $bg_raised; border-radius: ${composer}px; }
QFrame[class~="chip"] { background: $bg_raised; border: 1px solid $line; border-radius: 6px; }
QFrame[class~="chip"] QPushButton[class~="quiet"] { color: $text; padding: 2px 2px; font-size: ${caption}px; }
QFrame[class~="chip"] QPushButton[class~="quiet"]:focus, QFrame[class~="chip"] QToolButton[class~="quiet"]:focus {
    background: $line;
}
QFrame[class~="code"] { background: $bg_sunken; border: 1px solid $line; border-radius: ${radius}px; }
QFrame[class~="code"] QPlainTextEdit,
QTextBrowser[class~="prose"] { background: transparent; border: none; color: $text; }
QTextBrowser[class~="reasoning"] { background: transparent; border: none; color: $text_soft; }

QLineEdit#search {
    border: 1px solid $line; border-radius: 6px; padding: 4px 8px; background: $bg; color: $text;
}
QLineEdit#search:focus { border-color: $accent; }
QListView#conversations { background: transparent; border: none; outline: none; }
QProgressBar { border: none; border-radius: 2px; background: $line; max-height: 4px; min-height: 4px; }
QProgressBar::chunk { border-radius: 2px; background: $accent; }
QToolTip { background: $bg_raised; color: $text; border: 1px solid $line; padding: 4px 6px; }
""")

# A Mac's scroll bars are left alone: a style sheet would cost them their overlay behaviour.
_BARS = Template("""
QScrollBar:vertical { background: transparent; width: 12px; margin: 0; }
QScrollBar::handle:vertical { background: $line; border-radius: 4px; min-height: 32px; margin: 2px; }
QScrollBar::handle:vertical:hover { background: $text_soft; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle:horizontal { background: $line; border-radius: 3px; min-width: 32px; margin: 2px; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
""")


def style_sheet(roles: Roles) -> str:
    """The application's style sheet in these colours."""
    values = {name: getattr(roles, name) for name in roles.__slots__}
    sheet = _SHEET.template + (_BARS.template if sys.platform != "darwin" else "")
    return Template(sheet).substitute(values, caption=CAPTION[0], body=BODY[0], radius=RADIUS, composer=RADIUS_COMPOSER)
