"""The chat that was written in last, kept from one run to the next."""

from __future__ import annotations

from pathlib import Path

from engine.backend import mlx_version
from engine.events import EngineInfo, ExactnessState, Notice
from engine.exactness.cache import verdict_key
from engine.session import disk
from engine.session.boundaries import Boundaries
from engine.target import Target


class KeptChat:
    """latest: name of the place that the next turn of the chat starts from; b"" before the first reply."""

    def __init__(self, target: Target, info: EngineInfo, boundaries: Boundaries) -> None:
        self.latest = b""
        self._boundaries = boundaries
        self._identity: disk.Identity = {
            "the model's weights": info.weights_hash,
            "the MLX version": mlx_version(),
            "the compute policy": target.backend.words(),
            "the drafter": f"{info.drafter.source}, {info.drafter.representation}" if info.drafter else "",
            # Device, system build, activation type, preloaded libraries: whatever else chooses kernels.
            # Inexact blocks write other bytes into the caches; they must not outlive the permission.
            "the permission of inexact speculation": str(info.verdict.state is ExactnessState.INEXACT_ALLOWED),
            "this machine": verdict_key(info.weights_hash, target.backend, target.dtype, ()),
        }

    def save(self, path: Path) -> Notice | None:
        """Write the latest boundary, in one piece or not at all. Says why when it could not be kept.

        Nothing to keep leaves no file: an older one would be of another chat.
        """
        boundary = self._boundaries.get(self.latest)
        if boundary is None:
            disk.discard(path)
            return _not_kept("its place in memory was given to other chats") if self.latest else None
        try:
            disk.save(path, self.latest, boundary, self._identity)
        except disk.CannotKeep as error:
            return _not_kept(str(error))
        return None

    def restore(self, path: Path) -> Notice | None:
        """Take up what the last run kept. Says why when it had to be discarded; the file is then gone."""
        try:
            found = disk.load(path, self._identity)
        except disk.Discarded as error:
            disk.discard(path)
            return Notice("cache", f"The chat kept from the last start was discarded: {error}. It is read again.")
        if found is not None:
            self.latest = found[0]
            if not self._boundaries.keep(*found):
                return Notice("cache", "The chat kept from the last start needs more memory than kept chats may take.")
        return None


def _not_kept(why: str) -> Notice:
    return Notice("cache", f"This chat could not be kept for the next start: {why}. It will be read again.")
