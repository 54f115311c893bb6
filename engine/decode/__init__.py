"""Decode: the two loops that turn a model into a reply, and the prefill before them."""

from engine.decode.classic import classic
from engine.decode.line import Line
from engine.decode.paced import loops, paced
from engine.decode.prefill import prefill, replay
from engine.decode.speculative import speculative

__all__ = ["Line", "classic", "loops", "paced", "prefill", "replay", "speculative"]
