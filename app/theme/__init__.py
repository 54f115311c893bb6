"""Colours, type and space as roles; the one place where they become Qt."""

from app.theme.manager import Theme
from app.theme.tokens import DARK, LIGHT, Roles

__all__ = ["DARK", "LIGHT", "Roles", "Theme"]
