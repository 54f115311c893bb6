"""The ladder: what is engaged, at which widths, and why. Fails closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata

import mlx.core as mx
import mlx.nn as nn
import pytest

from engine.backend import Device
from engine.events import ExactnessState
from engine.exactness import cache, ladder, probe, routing
from engine.exactness.kernels import Attention, ForcedQmv, Stock, qmv_rows
from engine.loading import Pair
from engine.request import Sampler
from engine.target import Target
from tests.support.doubles import NeverTheSame, qmv_wide
from tests.support.rig import Rig


@pytest.fixture
def target(pair: Pair) -> Iterator[Target]:
    kernel, limit = pair.target.scope.kernel, pair.target.scope.block_limit
    yield pair.target
    pair.target.scope.kernel, pair.target.scope.block_limit = kernel, limit


def test_a_sound_device_engages_stock(target: Target) -> None:
    decision = ladder.decide(target, (2, 3))
    assert decision.verdict.state is ExactnessState.EXACT_STOCK
    assert decision.verdict.widths == (2, 3)
    assert decision.verdict.reason.startswith(f"Block = chain on {decision.verdict.inputs} inputs at widths 2, 3.")
    assert isinstance(target.scope.kernel, Stock)


def test_with_qmv_wide_stock_fails_and_another_kernel_keeps_the_text(
    pair: Pair, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The case the product exists for: M3 and later, with the stock wheel."""
    monkeypatch.setattr(mx, "quantized_matmul", qmv_wide)
    decision = ladder.decide(target, (2, 3, 4))
    verdict = decision.verdict
    assert verdict.state is ExactnessState.EXACT_FORCED
    assert verdict.kernel != "stock"
    assert verdict.widths == (2, 3, 4)
    assert "stock: bytes differ at width 2, hidden of row 1" in verdict.reason
    ladder.engage(target, ladder.Engaged("forced_qmv", 32, 2**31))
    for sampler in (Sampler(), Sampler(temperature=0.8)):
        rig = Rig(target, pair.drafter, sampler, length=60)
        assert rig.speculative([1, 2, 3], 4).tokens == rig.classic([1, 2, 3]).tokens


def test_the_double_changes_text_when_stock_is_used_all_the_same(
    pair: Pair, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the test above: hiddens of a stock block really differ from the chain's."""
    monkeypatch.setattr(mx, "quantized_matmul", qmv_wide)
    ladder.engage(target, ladder.Engaged("stock", 64, 2**31))
    rig = Rig(target, pair.drafter, length=20)
    assert not mx.array_equal(
        rig.speculative([1, 2, 3], 4).line.state.snapshot().arrays[0][1],
        rig.classic([1, 2, 3]).line.state.snapshot().arrays[0][1],
    )


def test_when_one_row_calls_vary_too_it_declines_with_the_reason(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mx, "quantized_matmul", NeverTheSame())
    monkeypatch.setattr(mx, "gather_qmm", lambda *a, **k: (_ for _ in ()).throw(RuntimeError("no kernel")))
    decision = ladder.decide(target, (2, 3))
    assert decision.engaged is None
    assert decision.verdict.state is ExactnessState.DECLINED
    assert decision.verdict.widths == ()
    for name in ("stock", "forced_qmv", "gather", "one_row"):
        assert f"{name}: bytes differ" in decision.verdict.reason
    assert decision.verdict.reason.endswith("Replies are written by classic decode.")
    allowed = ladder.allow_inexact(decision, target, (2, 3)).verdict
    assert allowed.state is ExactnessState.INEXACT_ALLOWED
    assert allowed.widths == (2, 3)
    assert "text may differ" in allowed.reason


def test_attention_alone_is_cured_by_one_row_queries(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    right = mx.fast.scaled_dot_product_attention

    def width_dependent(q: mx.array, k: mx.array, v: mx.array, **kwargs: object) -> mx.array:
        out = right(q, k, v, **kwargs)
        return out * (1 + 2**-20) if q.shape[2] > 1 else out

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", width_dependent)
    decision = ladder.decide(target, (2, 3))
    assert decision.verdict.kernel.endswith("+ one-row attention")
    assert decision.engaged is not None
    assert decision.engaged.block_limit == 0
    assert decision.verdict.widths == (2, 3)


def test_an_override_of_an_exact_verdict_changes_nothing(target: Target) -> None:
    decision = ladder.decide(target, (2,))
    assert ladder.allow_inexact(decision, target, (2,)) is decision


@pytest.mark.parametrize(
    ("architecture", "trusted"),
    [("applegpu_g13g", (2, 3)), ("applegpu_g14d", (2, 3)), ("applegpu_g15s", ()), ("applegpu_g17s", ())],
)
def test_routing_keeps_stock_from_being_engaged_by_luck(
    target: Target, architecture: str, trusted: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 16 bit qmv_wide can give the right bytes by luck (fp16 differed in 0 of 6,272 values): routing decides."""
    monkeypatch.setattr(target, "backend", replace(target.backend, architecture=architecture))
    monkeypatch.setattr(ladder, "linear_shapes", lambda _: {routing.Weights(5120, 17408), routing.Weights(17408, 5120)})
    widths, why = ladder.stock_by_routing(target, (2, 3))
    assert widths == trusted
    assert bool(why) == (trusted == ())
    decision = ladder.decide(target, (2, 3))  # here every kernel gives equal bytes
    assert (decision.verdict.kernel == "stock") == bool(trusted)
    assert decision.verdict.widths == (2, 3)


def test_an_unknown_mlx_version_is_not_trusted_on_a_mac(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "backend", replace(target.backend, architecture="applegpu_g13g"))
    widths, why = ladder.stock_by_routing(target, (2,), version="0.40.0")
    assert widths == ()
    assert "newer than the routing table" in why


def test_a_stock_kernel_that_cannot_run_does_not_stop_the_load(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails the probe; and nothing can be compared with its time."""
    right = mx.quantized_matmul

    def no_three_rows(x: mx.array, w: mx.array, *rest: mx.array, **kwargs: object) -> mx.array:
        if w.ndim == 2 and x.shape[-2] == 3:
            raise RuntimeError("no kernel for 3 rows")
        return right(x, w, *rest, **kwargs)

    monkeypatch.setattr(probe, "THRESHOLDS", ())
    monkeypatch.setattr(mx, "quantized_matmul", no_three_rows)
    verdict = ladder.decide(target, (2, 3)).verdict
    assert verdict.widths == (2, 3)
    assert not verdict.kernel.startswith("stock")
    assert "no kernel for 3 rows" in verdict.reason
    assert verdict.cost == 1.0


def test_a_gpu_that_the_table_cannot_read_is_not_trusted(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off Metal the probe alone decides; on Metal nothing shows then that a block has one row's kernel."""
    for device, trusted in ((Device.METAL, ()), (Device.CUDA, (2, 3))):
        monkeypatch.setattr(target, "backend", replace(target.backend, device=device, architecture="applegpu_x1"))
        assert ladder.stock_by_routing(target, (2, 3))[0] == trusted


@pytest.mark.parametrize("tied", [False, True])
def test_a_product_with_dense_weights_keeps_stock_from_being_trusted(
    target: Target, tied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row of it is a matrix-vector kernel on Metal, two are a matrix kernel: 16 bit can hide that, too."""
    monkeypatch.setattr(target, "backend", replace(target.backend, architecture="applegpu_g13g"))
    assert ladder.stock_by_routing(target, (2, 3)) == ((2, 3), "")
    attention = target.layers[3].self_attn
    if tied:
        monkeypatch.setattr(target.model.language_model.args, "tie_word_embeddings", True)
        monkeypatch.setitem(target.model.language_model.model, "embed_tokens", nn.Embedding(400, 64))
    else:
        monkeypatch.setitem(attention, "o_proj", nn.Linear(128, 64, bias=False))
    widths, why = ladder.stock_by_routing(target, (2, 3))
    assert widths == ()
    assert ("64 x 400" if tied else "128 x 64") in why


def test_scope_outside_a_verify_forward_everything_is_stock(
    pair: Pair, target: Target, tiny_folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one model verifies with forced qmv, a second model, prefill and steps take stock calls."""
    from engine.arrays import token_array
    from tests.support.rig import load_tiny

    other = load_tiny(*tiny_folders).target
    ladder.engage(target, ladder.Engaged("forced_qmv", 32, 2**31))
    seen: list[int] = []
    real = mx.quantized_matmul

    def watching(x, w, *rest, **kwargs):
        seen.append(w.ndim)
        return real(x, w, *rest, **kwargs)

    monkeypatch.setattr(mx, "quantized_matmul", watching)
    right = target.scope.for_rows
    during: list[set[int]] = []

    def second_model_in_the_middle(rows: int):
        if target.scope.active and not during:
            mark = len(seen)
            mx.eval(other.hidden(token_array([1, 2, 3]), other.new_state()))
            during.append(set(seen[mark:]))
        return right(rows)

    monkeypatch.setattr(target.scope, "for_rows", second_model_in_the_middle)
    state = target.new_state()
    target.hidden(token_array([1, 2, 3, 4]), state)
    target.step(token_array([5]), state)
    assert set(seen) == {2}
    seen.clear()
    target.verify(token_array([6, 7, 8]), state)
    assert 4 in seen
    assert during in ([set()], [{2}])
    seen.clear()
    target.rollback(state, 3, 3)
    target.step(token_array([5]), state)
    assert set(seen) == {2}


def test_beyond_the_probed_length_rows_attend_one_at_a_time(target: Target) -> None:
    from engine.arrays import token_array

    ladder.engage(target, ladder.Engaged("stock", 64, 10))
    state = target.new_state()
    target.hidden(token_array(range(7)), state)
    target.verify(token_array([1, 2, 3]), state)
    assert target.scope.attention is Attention.BLOCK
    target.rollback(state, 3, 3)
    target.verify(token_array([1, 2, 3]), state)
    assert target.scope.attention is Attention.ONE_ROW


@pytest.mark.parametrize("first", ["at 1024", "above 1024"])
def test_a_block_across_a_threshold_of_attention_gives_the_bytes_of_steps(
    target: Target, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Max splits 1,024 keys otherwise than 1,023, and 1,025 otherwise than 1,024, for a block as for a row.

    So the probe passes on both sides, but a block across has one kernel for all its rows, its first ones as well.
    """
    right = mx.fast.scaled_dot_product_attention
    limit = 1024 if first == "at 1024" else 1025

    def splits(q: mx.array, k: mx.array, v: mx.array, **kwargs: object) -> mx.array:
        out = right(q, k, v, **kwargs)
        return out * (1 + 2**-12) if k.shape[2] >= limit else out

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", splits)
    decision = ladder.decide(target, (2, 4))
    assert decision.verdict.kernel == "stock", "otherwise rows attend one at a time everywhere"
    for length in range(1018, 1028):
        start = probe._synthetic(target, length, seed=3)
        context = probe.Context(start, tuple(range(1, 9)), real=False)
        chain = probe.run_chain(target, context, 8)
        for width in (2, 4):
            assert probe.compare(target, context, chain, width, kept=1) == "", (length, width)


def test_a_chunk_is_tuned_on_the_device(target: Target) -> None:
    assert ladder.tuned_chunk(target) % 8 == 0
    with pytest.raises(ValueError, match="multiple of 8"):
        ForcedQmv(12)


def test_verdicts_are_kept_and_any_change_probes_again(pair: Pair, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACENOTE_CACHE_DIR", str(tmp_path))
    backend, dtype = pair.target.backend, mx.float32
    key = cache.verdict_key("abc", backend, dtype, (2, 3))
    assert cache.recall(key) is None
    decision = ladder.Decision(pair.info.verdict, ladder.Engaged("forced_qmv", 32, 140))
    assert cache.remember(key, decision)
    kept = cache.recall(key)
    assert kept is not None
    assert kept.verdict == replace(pair.info.verdict, cached=True)
    assert kept.engaged == decision.engaged
    others = {
        cache.verdict_key("abd", backend, dtype, (2, 3)),
        cache.verdict_key("abc", replace(backend, architecture="applegpu_g16s"), dtype, (2, 3)),
        cache.verdict_key("abc", backend, mx.bfloat16, (2, 3)),
        cache.verdict_key("abc", backend, dtype, (2, 3, 4)),
        key,
    }
    assert len(others) == 5
    monkeypatch.setattr(metadata, "version", lambda name: "9.9.9" if name == "mlx-lm" else "0.32.4")
    assert cache.verdict_key("abc", backend, dtype, (2, 3)) not in others, "another mlx-lm may compute otherwise"


@pytest.mark.parametrize("name", ["MLX_SDPA_BLOCKS", "MLX_ENABLE_TF32", "LD_PRELOAD", "OPENBLAS_NUM_THREADS"])
def test_settings_that_choose_kernels_probe_again(pair: Pair, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name, raising=False)
    before = cache.verdict_key("abc", pair.target.backend, mx.float32, (2,))
    monkeypatch.setenv(name, "3")
    assert cache.verdict_key("abc", pair.target.backend, mx.float32, (2,)) != before


def test_a_damaged_verdict_only_costs_the_probe(pair: Pair, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it still is JSON with every field: widths and kernels that nobody probed must not come back."""
    monkeypatch.setenv("PACENOTE_CACHE_DIR", str(tmp_path))
    decision = ladder.Decision(pair.info.verdict, ladder.Engaged("forced_qmv", 32, 140))
    assert cache.remember("key", decision)
    file = tmp_path / "verdicts" / "key.json"
    whole = file.read_text()
    assert cache.recall("key") is not None
    edits = (('"widths": [2,', '"widths": [8,'), ('"forced_qmv", "chunk"', '"stock", "chunk"'), ("140", "9140"))
    assert all(old in whole for old, _ in edits)
    bad = [whole.replace(old, new) for old, new in edits]
    for text in (*bad, whole[:-20], "", "[]", "3", "null", "{}", '{"verdict": {}}', "[" * 100_000, "\0" * 40):
        file.write_text(text)
        assert cache.recall("key") is None, text[:40]
    file.write_bytes(b"\xff\xfe")
    assert cache.recall("key") is None
    file.write_text(whole)
    assert cache.recall("key") is not None
    file.rename(tmp_path / "verdicts" / "other.json")
    assert cache.recall("other") is None, "a verdict of another situation"


def test_a_kept_qmv_rows_comes_back_with_the_shapes_it_serves(
    pair: Pair, target: Target, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is checked on the device before it is used again; a kernel that cannot run has not passed."""
    monkeypatch.setenv("PACENOTE_CACHE_DIR", str(tmp_path))
    served = qmv_rows.Served(1024, 16, 4, 64, True)
    assert cache.remember("key", ladder.Decision(pair.info.verdict, ladder.Engaged("qmv_rows", 32, 140, (served,))))
    kept = cache.recall("key")
    assert kept is not None
    assert kept.engaged is not None
    assert kept.engaged.served == (served,)
    ladder.engage(target, kept.engaged)
    assert target.scope.kernel.name == "qmv_rows"
    assert not ladder.holds(target, kept, (2, 3))
    assert ladder.holds(target, ladder.Decision(pair.info.verdict, ladder.Engaged("forced_qmv", 32, 140)), (2, 3))
    assert ladder.holds(target, ladder.Decision(pair.info.verdict, None), (2, 3))


def test_a_cache_that_cannot_be_written_costs_only_the_probe(pair: Pair, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PACENOTE_CACHE_DIR", str(tmp_path / "file"))
    assert not cache.remember("k", ladder.Decision(pair.info.verdict, None))


def test_a_second_load_skips_the_probe(tiny_folders, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.rig import load_tiny

    first = load_tiny(*tiny_folders)
    monkeypatch.setattr(ladder, "decide", lambda *_: pytest.fail("probed again"))
    second = load_tiny(*tiny_folders)
    assert second.info.verdict.cached
    assert second.info.verdict.widths == first.info.verdict.widths


def test_stock_trusted_at_some_widths_only_does_not_end_the_climb(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An M1 at a width that reaches the tile kernel: another rung serves all widths."""
    monkeypatch.setattr(ladder, "stock_by_routing", lambda *_: ((2,), "MLX runs 3 rows through qmm."))
    decision = ladder.decide(target, (2, 3))
    assert decision.verdict.widths == (2, 3)
    assert not decision.verdict.kernel.startswith("stock")
    assert "qmm" in decision.verdict.reason


@pytest.mark.parametrize("fastest", ["forced_qmv", "one_row"])
def test_of_the_exact_candidates_the_fastest_is_engaged(
    target: Target, monkeypatch: pytest.MonkeyPatch, fastest: str
) -> None:
    """And all are timed together, with stock to compare. Bug: one after the other, and the first met a cold device."""
    timed: list[list[str]] = []

    def probed(tried: Target, widths: tuple[int, ...], *_: object, **__: object) -> probe.ProbeResult:
        failures = ((2, "row 1"),) if isinstance(tried.scope.kernel, Stock) else ()
        return probe.ProbeResult(() if failures else tuple(widths), failures, 1, 100, 0.0)

    def milliseconds(_: Target, candidates: list[ladder.Candidate]) -> list[float]:
        timed.append([candidate.name for candidate in candidates])
        return [6.0 if name == fastest else 4.0 if name == "stock" else 9.0 for name in timed[-1]]

    monkeypatch.setattr(ladder, "probe", probed)
    monkeypatch.setattr(ladder, "verify_ms", milliseconds)
    decision = ladder.decide(target, (2, 3))
    assert decision.verdict.kernel == target.scope.kernel.name == fastest
    assert decision.verdict.cost == 1.5
    assert len(timed) == 1
    assert timed[0][-1] == "stock"
