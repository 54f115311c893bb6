"""How wide each round is: the width with the most expected tokens per millisecond, here and now."""

from engine.pace.model import Acceptance, Costs
from engine.pace.pace import Pace

__all__ = ["Acceptance", "Costs", "Pace"]
