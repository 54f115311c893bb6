"""The tokens of the look: colour roles in two value sets, type sizes, space."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Roles:
    """Colours by what they are for. Values are #rrggbb.

    The five stage colours are told apart by lightness as well as by hue, and in the window by order and label.
    """

    name: str
    bg: str
    bg_raised: str
    bg_sunken: str
    text: str
    text_soft: str
    line: str
    accent: str
    on_accent: str
    selection: str
    good: str
    warn: str
    bad: str
    draft: str
    verify: str
    hook: str
    rollback: str
    host: str
    code_keyword: str
    code_string: str
    code_number: str
    code_name: str
    code_comment: str


LIGHT = Roles(
    name="light",
    bg="#ffffff",
    bg_raised="#f1f3f3",
    bg_sunken="#f7f8f8",
    text="#1b2021",
    text_soft="#586366",
    line="#dde2e3",
    accent="#0b6e75",
    on_accent="#ffffff",
    selection="#bfe3e5",
    good="#1c7145",
    warn="#8a5700",
    bad="#b3261e",
    draft="#e0a030",
    verify="#0b6e75",
    hook="#6d4fa8",
    rollback="#e58a70",
    host="#b4bdbf",
    code_keyword="#8a2f8f",
    code_string="#1c6b3c",
    code_number="#8f4a00",
    code_name="#0f5f8f",
    code_comment="#5f6a6d",
)

DARK = Roles(
    name="dark",
    bg="#17191b",
    bg_raised="#25292b",
    bg_sunken="#1d2022",
    text="#e4e8e9",
    text_soft="#9ba6aa",
    line="#33393c",
    accent="#4fb8bf",
    on_accent="#0d1617",
    selection="#1f5358",
    good="#63c391",
    warn="#e0aa50",
    bad="#f28b82",
    draft="#e8b458",
    verify="#3a9299",
    hook="#8a6cc4",
    rollback="#f0a08a",
    host="#a3adb0",
    code_keyword="#d49be0",
    code_string="#8fcf9f",
    code_number="#e3b07a",
    code_name="#86c5ee",
    code_comment="#98a3a7",
)

# Type: (pixel size, line height in pixels).
BODY = (14, 22)
TRANSCRIPT = (15, 24)
CAPTION = (12, 16)
FIGURE = (22, 28)
CODE = (13, 20)
HEADINGS = (21, 18, 16, 15, 15, 15)

# Space and shape, in pixels.
GAP_4, GAP_8, GAP_12, GAP_16, GAP_24, GAP_32 = 4, 8, 12, 16, 24, 32
RADIUS, RADIUS_COMPOSER = 8, 12
COLUMN_WIDTH = 760
SIDEBAR_WIDTH, PANEL_WIDTH = 240, 300
PANEL_BREAK, SIDEBAR_BREAK = 900, 720
MIN_WIDTH, MIN_HEIGHT = 640, 480


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, 0 to 1 (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


_WORDS = ("text", "text_soft", "accent", "good", "warn", "bad")
_GROUNDS = ("bg", "bg_raised", "bg_sunken")
TEXT_PAIRS: tuple[tuple[str, str], ...] = (
    *((front, back) for back in _GROUNDS for front in _WORDS),
    ("on_accent", "accent"),
    ("text", "selection"),
    ("text", "line"),
    *((f"code_{part}", "bg_sunken") for part in ("keyword", "string", "number", "name", "comment")),
)
"""(text role, background role): every pair that carries words on screen."""
