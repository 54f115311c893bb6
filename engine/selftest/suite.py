"""Which checks there are: the engine's, and the window's where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial

from engine.request import LoadOptions
from engine.selftest import installation, machine
from engine.selftest.check import Check, Finding, Skip
from engine.selftest.pair import PairChecks

WINDOW = "app.selftest.checks"
"""The module with the window's checks: `checks()` gives them. By name, since the engine never imports the window."""


def suite(options: LoadOptions) -> list[Check]:
    """All checks in the order of the report. What may crash worst comes last."""
    pair = PairChecks(options)
    return [
        Check("versions", installation.versions),
        Check("resources", installation.resources),
        Check("device", machine.device),
        Check("metallib", machine.metallib),
        Check("gpu", machine.gpu),
        Check("compiler", machine.compiler),
        Check("memory", partial(machine.memory, options)),
        Check("disk", machine.disk),
        *_window_checks(),
        # A large model is read from disk, probed and timed.
        Check("pair", pair.load, limit=1800),
        Check("exactness", pair.exactness, limit=900),
        Check("kernels", pair.kernels),
        Check("tokens", pair.tokens, limit=900),
    ]


def _window_checks() -> Sequence[Check]:
    """A window that is not there is skipped; one that cannot be imported is a failed check, not the end of the test."""
    try:
        found: Sequence[Check] = importlib.import_module(WINDOW).checks()
    except Exception as error:  # noqa: BLE001 - it becomes the result of a check
        return [Check("window", partial(_cannot_be_checked, error))]
    return found


def _cannot_be_checked(error: Exception) -> Finding:
    if isinstance(error, ModuleNotFoundError) and error.name in (WINDOW, WINDOW.partition(".")[0]):
        raise Skip("The window is not part of this installation.")
    raise error
