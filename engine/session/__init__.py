"""A chat's caches: boundaries that later turns start from."""

from engine.session.boundaries import Boundaries, Boundary, schedule_key

__all__ = ["Boundaries", "Boundary", "schedule_key"]
