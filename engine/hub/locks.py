"""Locks between programs, of the kind `huggingface_hub` uses. The system gives back one whose holder died."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from engine.errors import LoadCancelled

_POLL = 0.2  # seconds


@contextmanager
def held(path: Path, timeout: float, refused: Callable[[OSError], Exception]) -> Iterator[None]:
    """Hold a lock; its folder is made.

    Args:
        refused: makes of what the disk refuses what is raised.

    Raises:
        TimeoutError: another program had it for `timeout` seconds.
    """
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(WeakFileLock(path, timeout=timeout))
        except TimeoutError:
            raise
        except FileNotFoundError as error:  # who had it has just finished, and removed the folder
            raise TimeoutError from error
        except OSError as error:
            raise refused(error) from error
        yield


@contextmanager
def held_patiently(
    path: Path,
    stop: threading.Event,
    refused: Callable[[OSError], Exception],
    waits: Callable[[bool], None] = lambda waits: None,
) -> Iterator[None]:
    """The same, however long another program has it. waits: called with True when it does, then with False.

    Raises LoadCancelled when `stop` is set.
    """
    waited = False
    with ExitStack() as stack:
        while True:
            if stop.is_set():
                raise LoadCancelled
            try:
                stack.enter_context(held(path, _POLL, refused))
                break
            except TimeoutError:
                if not waited:
                    waits(True)
                waited = True
        if waited:
            waits(False)
        yield
