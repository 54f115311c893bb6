"""Rounds and log fixtures as the engine could produce them."""

from __future__ import annotations

from hypothesis import strategies as st

import tests.support.texts  # noqa: F401 - loads the hypothesis profile
from engine import (
    DrafterInfo,
    EndReason,
    EngineInfo,
    ExactnessState,
    Finished,
    Message,
    PrefillProgress,
    ReplyStats,
    Request,
    Round,
    Sampler,
    Segment,
    Verdict,
)
from engine.telemetry.environment import Conditions, Environment
from engine.telemetry.stats import StatsBuilder

_ms = st.floats(0, 500, allow_nan=False)


@st.composite
def _round(draw: st.DrawFn) -> Round:
    width = draw(st.integers(1, 8))
    drafted = width - 1
    accepted = draw(st.integers(0, drafted))
    cut = draw(st.integers(0, accepted))
    emitted = accepted + 1 - cut
    return Round(
        index=draw(st.integers(0, 10_000)),
        position=draw(st.integers(0, 10_000)),
        width=width,
        drafted=drafted,
        accepted=accepted,
        emitted=emitted,
        cut=cut,
        draft_ms=draw(_ms),
        verify_ms=draw(_ms),
        rollback_ms=draw(_ms),
        hook_ms=draw(_ms),
        host_ms=draw(_ms),
        tokens=tuple(draw(st.lists(st.integers(0, 250_000), min_size=emitted, max_size=emitted))),
        parked=width == 1 and draw(st.booleans()),
    )


rounds = _round()
prefills = st.builds(
    PrefillProgress,
    done=st.integers(0, 5000),
    total=st.integers(0, 5000),
    restored=st.integers(0, 5000),
    seconds=st.floats(0, 100, allow_nan=False),
)


def build(prefill: PrefillProgress, seen: list[Round]) -> ReplyStats:
    builder = StatsBuilder()
    builder.prefill(prefill)
    for round_ in seen:
        builder.observe(round_)
    return builder.build()


def some_round(index: int, **fields: object) -> Round:
    """Two drafts, one accepted; times that no binary fraction can hold."""
    values: dict[str, object] = {"draft_ms": 0.1, "verify_ms": 0.7, "rollback_ms": 0.3, "hook_ms": 0.2, "host_ms": 0.1}
    return Round(index, 10 + 2 * index, 3, 2, 1, 2, 0, tokens=(index, index + 1), **{**values, **fields})  # type: ignore[arg-type]


INFO = EngineInfo(
    name="tiny",
    path="/models/tiny",
    parameters=1000,
    target_bytes=4000,
    quantization="affine 4 bit, group 64",
    context_length=4096,
    device="CPU",
    policy="float32 activations",
    weights_hash="abc123",
    revision="",
    drafter=DrafterInfo("inside the target", "4-bit group 64", "default", 100, 400),
    drafter_reason="",
    verdict=Verdict(ExactnessState.EXACT_STOCK, "stock", "equal on 3 inputs", (2, 3, 4), 3),
    load_seconds=1.0,
    supports_thinking=True,
)
SECRET = "a secret only the user knows"
REQUEST = Request(
    (
        Message("user", SECRET),
        Message("assistant", SECRET, SECRET, (Segment("prefill", (1, 2)),), 3),
        Message("user", "x"),
    ),
    Sampler(temperature=0.8),
    seed=7,
    stop=(SECRET,),
)
ENVIRONMENT = Environment("0.1.0", "0.32.4", "0.32.2", "", "3.11", "Linux", "x86_64", 2, 8 * 2**30)
CONDITIONS = Conditions((0.5, 0.4, 0.3), "mains")
PREFILL = PrefillProgress(12, 12, 4, 0.123456789)


def finished(seen: list[Round]) -> Finished:
    tokens = tuple(t for r in seen for t in r.tokens)
    return Finished(EndReason.EOS, (99, *tokens), (), SECRET, SECRET, build(PREFILL, seen), 7)
