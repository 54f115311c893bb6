"""`pacenote doctor --check-updates`: is there a newer release? The only command that asks for one."""

from __future__ import annotations

from engine.releases import address, is_newer, newest
from engine.telemetry.environment import environment


def check() -> int:
    """Returns 0 when the question was answered, whichever way.

    Raises:
        KnownError: nobody has said where to ask, or there is no answer.
    """
    here = environment().pacenote
    found = newest(address())
    if is_newer(found.version, here):
        print(f"Pacenote {found.version} is out, this is {here}.{f' See {found.page}' if found.page else ''}")
    else:
        print(f"Pacenote {here} is the newest release ({found.version} is published).")
    return 0
