"""The MTP head: bind to a target, draft, learn what was accepted."""

from engine.drafter.drafter import Drafter
from engine.drafter.state import HeadSnapshot, HeadState

__all__ = ["Drafter", "HeadSnapshot", "HeadState"]
