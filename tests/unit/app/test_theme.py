"""Colours by role: legible in both themes, and switched live."""

from __future__ import annotations

import itertools
import re

import pytest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.theme import DARK, LIGHT, Roles, Theme
from app.theme.icons import _PATHS, icon
from app.theme.manager import current
from app.theme.style import _SHEET, style_sheet
from app.theme.tokens import TEXT_PAIRS, contrast
from engine import STAGES


@pytest.mark.parametrize("roles", [LIGHT, DARK], ids=lambda roles: roles.name)
@pytest.mark.parametrize(("front", "back"), TEXT_PAIRS)
def test_every_text_colour_is_legible(roles: Roles, front: str, back: str) -> None:
    """Bug 17: code unreadable in the light theme. WCAG AA: 4.5:1."""
    assert contrast(getattr(roles, front), getattr(roles, back)) >= 4.5


@pytest.mark.parametrize("roles", [LIGHT, DARK], ids=lambda roles: roles.name)
def test_neighbouring_stages_differ_without_colour_vision(roles: Roles) -> None:
    """Neighbours in the bar differ in lightness; the gap, the order and the labels tell the rest."""
    order = [getattr(roles, stage.removesuffix("_ms")) for stage in STAGES]
    for left, right in itertools.pairwise(order):
        assert contrast(left, right) >= 1.4


def test_contrast_is_the_published_formula() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("roles", [LIGHT, DARK], ids=lambda roles: roles.name)
def test_the_sheet_uses_roles_only(roles: Roles) -> None:
    """No colour of the sheet is written by hand, so none can be left behind."""
    sheet = style_sheet(roles)
    known = {getattr(roles, name) for name in roles.__slots__}
    assert set(re.findall(r"#[0-9a-f]{6}\b", sheet)) <= known
    assert "$" not in sheet


GROUNDS = ("bg", "bg_raised", "bg_sunken")


@pytest.mark.parametrize("roles", [LIGHT, DARK], ids=lambda roles: roles.name)
def test_every_text_colour_of_the_sheet_is_legible_where_it_stands(roles: Roles) -> None:
    """Of each rule with a colour: on its own ground, or, where it has none, on every ground of the window."""
    rules = re.findall(r"([^{}]+)\{([^}]*)\}", _SHEET.template.replace("${", "$").replace("}px", "px"))
    checked = 0
    for selector, body in rules:
        found = dict(re.findall(r"(?<![-\w])(color|background):\s*\$(\w+)", body))
        if "color" not in found:
            continue
        for ground in [found["background"]] if "background" in found else GROUNDS:
            checked += 1
            ratio = contrast(getattr(roles, found["color"]), getattr(roles, ground))
            assert ratio >= 4.5, f"{selector.strip()}: {found['color']} on {ground} has {ratio:.2f}"
    assert checked > 30


@pytest.mark.parametrize("roles", [LIGHT, DARK], ids=lambda roles: roles.name)
def test_code_is_legible_on_every_ground_that_it_stands_on(roles: Roles) -> None:
    """In its block, and marked by the speculation view's pointer."""
    for name in ("keyword", "string", "number", "name", "comment"):
        assert contrast(getattr(roles, f"code_{name}"), roles.bg_sunken) >= 4.5
    assert contrast(roles.text, roles.selection) >= 4.5


def test_switching_changes_palette_and_roles_at_once(qapp: QApplication, qtbot: QtBot) -> None:
    theme = Theme(qapp, "light")
    label = QLabel("x")
    qtbot.addWidget(label)
    with qtbot.waitSignal(theme.changed):
        theme.set_mode("dark")
    assert current() is DARK
    assert qapp.palette().window().color().name() == DARK.bg
    assert label.palette().windowText().color().name() == DARK.text
    theme.set_mode("light")
    assert qapp.palette().link().color().name() == LIGHT.accent
    theme.setParent(None)
    theme.deleteLater()


def test_every_icon_draws(qapp: QApplication) -> None:
    for name in _PATHS:
        assert not icon(name, LIGHT.text).isNull()
        image = icon(name, LIGHT.text).pixmap(32, 32).toImage()
        side = image.width()
        assert any(image.pixelColor(x, y).alpha() for x in range(side) for y in range(side)), name
