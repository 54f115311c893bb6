"""The window's part of the self-test. `engine.selftest.suite` looks `checks` up by name; importing needs no Qt."""

from app.selftest.checks import checks

__all__ = ["checks"]
