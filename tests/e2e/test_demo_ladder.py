"""The ladder on the bundled pair, held as packed 4-bit weights with float32 activations: the real kernels' way."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import pytest

from engine import Engine, ExactnessState, Finished, LoadOptions, Message, Request, Sampler, Speculation, load
from engine.exactness import probe
from tests.support.doubles import NeverTheSame, qmv_wide

pytestmark = pytest.mark.demo
OPTIONS = LoadOptions(max_block=2)


@pytest.fixture(autouse=True)
def packed_and_probed_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PACENOTE_COMPUTE", "float32")
    monkeypatch.setenv("PACENOTE_CACHE_DIR", str(tmp_path))
    # The long contexts are probed on tiny pairs; on this one they take minutes.
    monkeypatch.setattr(probe, "REAL_PREFIXES", (8,))
    monkeypatch.setattr(probe, "THRESHOLDS", ())


def reply(engine: Engine, request: Request) -> Finished:
    *_, done = engine.generate(request, threading.Event())
    assert isinstance(done, Finished)
    return done


def test_on_a_device_with_qmv_wide_stock_fails_and_forced_kernels_keep_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mx, "quantized_matmul", qmv_wide)
    with closing(load(OPTIONS)) as engine:
        verdict = engine.info.verdict
        assert verdict.state is ExactnessState.EXACT_FORCED, verdict.reason
        assert "stock: bytes differ" in verdict.reason
        assert "forced_qmv: bytes differ" not in verdict.reason
        for sampler in (Sampler(), Sampler(0.8)):
            request = Request(
                (Message("user", "What is a volcano?"),), sampler, seed=1, max_tokens=16, ignore_eos=True,
                speculation=Speculation.OFF,
            )  # fmt: skip
            classic = reply(engine, request)
            mtp = reply(engine, replace(request, speculation=Speculation.ALWAYS, block_size=2))
            assert mtp.tokens == classic.tokens
            assert mtp.stats.drafted > 0


def test_where_one_row_varies_too_it_declines_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx, "quantized_matmul", NeverTheSame())
    monkeypatch.setattr(mx, "gather_qmm", lambda *a, **k: (_ for _ in ()).throw(RuntimeError("no kernel")))
    with closing(load(OPTIONS)) as engine:
        verdict = engine.info.verdict
        assert verdict.state is ExactnessState.DECLINED
        assert "one_row: bytes differ" in verdict.reason
        request = Request((Message("user", "Hello!"),), max_tokens=4, speculation=Speculation.ALWAYS, block_size=2)
        assert reply(engine, request).stats.drafted == 0
