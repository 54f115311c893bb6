"""A chat's caches: boundaries that later turns start from."""

from engine.session.boundaries import Boundaries, name, schedule_key
from engine.session.boundary import Boundary, Trail
from engine.session.budget import boundary_budget
from engine.session.kept import KeptChat
from engine.session.reader import Reached, Reader

__all__ = [
    "Boundaries",
    "Boundary",
    "KeptChat",
    "Reached",
    "Reader",
    "Trail",
    "boundary_budget",
    "name",
    "schedule_key",
]
