"""The ladder on virtual Macs: what it finds, what it engages, and that the text is classic decode's.

The probe meets the real qmv_wide here, where the other tests of the ladder have a stand-in. Its time is virtual too
(bytes of weights read), so that decisions do not vary; nothing here says how fast a Mac is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import mlx.core as mx
import pytest

from engine import loading
from engine.backend import Compute
from engine.events import ExactnessState
from engine.exactness import cache, ladder, probe
from engine.exactness.explain import explain, first_context
from engine.exactness.kernels import Attention, QmvRows, Stock, qmv_rows
from engine.exactness.probe import ProbeResult
from engine.loading import Pair
from engine.request import Sampler
from engine.target import Target
from tests.support.rig import NEVER, Rig
from tests.virtual_metal.mac import MACS, VirtualMac
from tests.virtual_metal.machine import Machine
from tests.virtual_metal.variants import BROKEN

WIDTHS = (2, 3)
SHORT = 256
"""A context length below the probe's synthetic prefixes: none of those is tried."""
Become = Callable[..., VirtualMac]


@pytest.fixture
def become(machine: Machine, restored: Callable[[Pair], Pair], monkeypatch: pytest.MonkeyPatch) -> Become:
    """Put a pair on a virtual Mac for one test. The probe has one short real prefix instead of three longer ones."""

    def become(pair: Pair, name: str, *, rowwise: bool = False) -> VirtualMac:
        mac = VirtualMac(machine, MACS[name], rowwise=rowwise)
        mac.install(monkeypatch)
        target = restored(pair).target
        dtype = target.dtype
        compute = Compute.FLOAT32 if dtype == mx.float32 else Compute.STORED
        target.backend = mac.backend(target.backend, compute=compute)
        for module in (ladder, qmv_rows):
            monkeypatch.setattr(module, "least_ms", mac.virtual_ms)
        monkeypatch.setattr(probe, "REAL_PREFIXES", (4,))
        return mac

    return become


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> dict[str, ProbeResult]:
    """What the ladder's probes found, by candidate."""
    found: dict[str, ProbeResult] = {}
    right = ladder.probe

    def recording(target: Target, widths, context_length, **rest) -> ProbeResult:
        result = right(target, widths, context_length, **rest)
        block = target.scope.block_limit > 0
        candidate = ladder.Candidate(target.scope.kernel, Attention.BLOCK if block else Attention.ONE_ROW)
        found[candidate.name] = result
        return result

    monkeypatch.setattr(ladder, "probe", recording)
    return found


def trust_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bytes alone decide on stock, as if there were no routing table."""
    monkeypatch.setattr(ladder, "stock_by_routing", lambda _, widths: (tuple(widths), ""))


def try_only(monkeypatch: pytest.MonkeyPatch, *kernels: str) -> None:
    """Leave the other rungs out, for time: each costs a probe of emulated forwards."""
    right = ladder.candidates
    monkeypatch.setattr(ladder, "candidates", lambda *a, **k: (c for c in right(*a, **k) if c.kernel.name in kernels))


EXACT = ("forced_qmv", "qmv_rows")


@pytest.mark.parametrize(
    ("name", "exact"),
    [("M3", EXACT), ("M4", EXACT), ("M5 Max", (*EXACT, "gather", "one_row"))],
    ids=["M3", "M4", "M5 Max"],
)
def test_stock_fails_by_its_bytes_and_forced_qmv_and_qmv_rows_pass(
    float_pair: Pair,
    become: Become,
    probes: dict[str, ProbeResult],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    exact: tuple[str, ...],
) -> None:
    """The case the product exists for, with the kernel that causes it."""
    mac = become(float_pair, name)
    trust_stock(monkeypatch)
    try_only(monkeypatch, "stock", *exact)
    target = float_pair.target
    decision = ladder.decide(target, WIDTHS, SHORT)
    verdict = decision.verdict
    assert [width for width, _ in probes["stock"].failures] == list(WIDTHS)
    assert probes["stock"].failures[0][1].startswith("hidden of row 1")
    for candidate in exact:
        assert probes[candidate].passed == WIDTHS, candidate
        assert probes[f"{candidate} + one-row attention"].passed == WIDTHS
    assert "stock: bytes differ at width 2" in verdict.reason
    assert verdict.state is ExactnessState.EXACT_FORCED
    assert verdict.kernel == "qmv_rows"
    assert {s.shape for s in decision.engaged.served} == {qmv_rows.shape_of(m) for m in served_layers(target)}
    assert mac.used["qmv_wide"]
    for sampler in (Sampler(), Sampler(temperature=0.8)):
        rig = Rig(target, float_pair.drafter, sampler, length=16)
        before = mac.used["pacenote_qmv_rows"]
        reply = rig.speculative([1, 2, 3], 3)
        assert reply.tokens == rig.classic([1, 2, 3]).tokens
        assert reply.accepted
        assert mac.used["pacenote_qmv_rows"] > before


def served_layers(target: Target) -> list:
    return [m for m in target.modules() if qmv_rows.shape_of(m)]


def test_what_differs_on_stock_kernels_is_the_products_and_nothing_else(float_pair: Pair, become: Become) -> None:
    """`explain` on a virtual M5 Max: qmv_wide is the cause, not a norm, a rotation or the attention."""
    become(float_pair, "M5 Max", rowwise=True)
    target = float_pair.target
    ladder.try_on(target, ladder.Candidate(Stock(), Attention.BLOCK))
    found = explain(target, first_context(target, 2, SHORT), 2)
    operations = {d.operation for d in found}
    assert {"in_proj_qkv", "gate_proj", "up_proj", "down_proj", "q_proj", "LM head"} <= operations
    made_of_products = {"LM head", "recurrent layer as a whole", "attention layer as a whole"}
    assert not {o for o in operations - made_of_products if "_proj" not in o}


def test_on_an_m1_stock_passes(float_pair: Pair, become: Become, probes: dict[str, ProbeResult]) -> None:
    """Before M3 a few rows take the kernel of one row: nothing to force, and nothing else is tried."""
    mac = become(float_pair, "M1", rowwise=True)
    decision = ladder.decide(float_pair.target, WIDTHS, SHORT)
    assert decision.verdict.state is ExactnessState.EXACT_STOCK
    assert list(probes) == ["stock"]
    assert "qmv_wide" not in mac.used
    assert "pacenote_qmv_rows" not in mac.used


@pytest.mark.parametrize("name", ["M3", "M5 Max"])
def test_in_16_bit_routing_keeps_stock_out_whatever_the_bytes_say(
    bfloat_pair: Pair, become: Become, probes: dict[str, ProbeResult], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Activations as a Mac has them. Stock is not even probed, and the decision is that of float32."""
    become(bfloat_pair, name)
    try_only(monkeypatch, "stock", *EXACT)
    decision = ladder.decide(bfloat_pair.target, (3,), SHORT)
    assert not [candidate for candidate in probes if candidate.startswith("stock")]
    assert "through qmv_wide, one row through another kernel" in decision.verdict.reason
    assert decision.verdict.kernel == "qmv_rows"
    assert decision.verdict.widths == (3,)
    rig = Rig(bfloat_pair.target, bfloat_pair.drafter, length=12)
    assert rig.speculative([1, 2, 3], 3).tokens == rig.classic([1, 2, 3]).tokens


def test_beyond_1024_keys_a_block_attends_row_by_row_on_a_max(
    float_pair: Pair, become: Become, probes: dict[str, ProbeResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two-pass attention cuts keys by the number of rows there: the probe's long prefixes see it. Two rows, of two
    query heads each, are still cut as one row is.
    """
    become(float_pair, "M5 Max", rowwise=True)
    try_only(monkeypatch, "qmv_rows")
    decision = ladder.decide(float_pair.target, WIDTHS, 1100)
    assert probes["qmv_rows"].passed == (2,)
    assert "after 1025 synthetic keys" in probes["qmv_rows"].failures[0][1]
    assert probes["qmv_rows + one-row attention"].passed == WIDTHS
    assert decision.verdict.kernel == "qmv_rows + one-row attention"
    assert decision.engaged.block_limit == 0


def test_a_broken_qmv_rows_is_not_engaged_and_the_verdict_says_why(
    float_pair: Pair, become: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The self-check refuses it for every shape; forced qmv is exact all the same."""
    become(float_pair, "M4")
    header, source = BROKEN["two lanes trade places"].texts()
    monkeypatch.setattr(qmv_rows, "HEADER", header)
    monkeypatch.setattr(qmv_rows, "SOURCE", source)
    decision = ladder.decide(float_pair.target, (3,), SHORT)
    assert decision.verdict.kernel == "forced_qmv"
    assert "qmv_rows leaves 6 of 6 shapes to forced qmv" in decision.verdict.reason
    assert "512 x 512 (4-bit group 64): plain, " in decision.verdict.reason
    assert decision.engaged.served == ()


def test_a_kept_verdict_is_used_only_while_its_kernel_still_passes(
    float_pair: Pair, become: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new system may bring a new run-time compiler: what qmv_rows serves is checked at every load."""
    become(float_pair, "M3")
    target = float_pair.target
    kept = ladder.Decision(
        replace(float_pair.info.verdict, widths=WIDTHS),
        ladder.Engaged("qmv_rows", 64, 0, (qmv_rows.Served(512, 512, 4, 64, False),)),
    )
    assert cache.remember("kept", kept)
    decision = cache.recall("kept")
    assert decision is not None
    assert decision.engaged == kept.engaged
    assert ladder.holds(target, decision, WIDTHS)
    ladder.engage(target, decision.engaged)
    assert isinstance(target.scope.kernel, QmvRows)
    header, source = BROKEN["the other product is fused"].texts()
    monkeypatch.setattr(qmv_rows, "HEADER", header.replace("if (FUSED)", "if (true)"))
    monkeypatch.setattr(qmv_rows, "SOURCE", source)
    assert not ladder.holds(target, decision, WIDTHS)
    decided: list[tuple[int, ...]] = []

    def decide(_: Target, widths, *__: object, **___: object) -> ladder.Decision:
        decided.append(tuple(widths))
        return ladder.Decision(replace(float_pair.info.verdict, widths=()), None)

    monkeypatch.setattr(ladder, "decide", decide)
    monkeypatch.setattr(cache, "recall", lambda _: decision)
    monkeypatch.setattr(cache, "remember", lambda *_: True)
    asked = loading.LoadOptions(max_block=3)
    loading._decide(target, float_pair.drafter, asked, "weights", SHORT, lambda _: None, NEVER)
    assert decided == [WIDTHS]


def test_off_apple_gpus_qmv_rows_is_not_even_looked_at(float_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU or CUDA backend never compiles it."""
    monkeypatch.setattr(qmv_rows, "survey", lambda *_: pytest.fail("surveyed off Metal"))
    monkeypatch.setattr(qmv_rows, "_kernel", lambda: pytest.fail("compiled off Metal"))
    names = [candidate.kernel.name for candidate in ladder.candidates(float_pair.target)]
    assert "forced_qmv" in names
    assert "qmv_rows" not in names
