"""The target model as speculation needs it: prefill, step, verify, and a state that can be rolled back."""

from engine.target.model import Rows, Target
from engine.target.state import Mark, Snapshot, TargetState

__all__ = ["Mark", "Rows", "Snapshot", "Target", "TargetState"]
