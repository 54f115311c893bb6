"""Python's garbage collector and the window's stalls.

A full collection visits every object that is left and holds the interpreter meanwhile: 40 to 60 ms once a model's
libraries are imported, and the window stands still.
"""

from __future__ import annotations

import gc


def leave_out() -> None:
    """Collect now, and have no later collection visit what is left: it lives as long as the model does.

    Call it on the GUI thread: what is collected may be Qt's.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def take_back() -> None:
    """Have the next collection visit everything. Before a model goes: what is left out is never given back."""
    gc.unfreeze()
