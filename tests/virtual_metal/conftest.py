"""Fixtures of the virtual Metal: built once per session, kept between sessions, skipped where it cannot be had."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import mlx.core as mx
import pytest

from engine import loading
from engine.events import ExactnessState, Verdict
from engine.loading import Pair
from tests.support.rig import load_tiny
from tests.support.tiny_pair import Shape, write_head, write_target
from tests.virtual_metal.machine import Machine
from tests.virtual_metal.products import Weights
from tests.virtual_metal.toolchain import Store, Unavailable

REQUIRED = "PACENOTE_VIRTUAL_METAL"
"""Environment variable; "required" makes a virtual Metal that cannot be had an error instead of a skip (.ci/run)."""
SHAPE = Shape(
    hidden_size=512,
    layers=2,
    mlp=512,
    extra={"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "full_attention_interval": 2},
)
"""A pair whose hidden and MLP sizes are multiples of 512, with one layer of each kind: qmv_fast's sizes."""


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Verdicts of this run only: a verdict of an earlier run must not decide a test."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACENOTE_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def store(request: pytest.FixtureRequest) -> Store:
    """What was fetched and built, in pytest's own cache folder: not in git, gone with `make clean`."""
    try:
        if platform.system() != "Linux":
            raise Unavailable("the virtual Metal runs on Linux; a Mac has the real one")
        store = Store(Path(request.config.cache.mkdir("virtual_metal")))
        assert store.wheel
        return store
    except Unavailable as e:
        if os.environ.get(REQUIRED) == "required":
            raise
        pytest.skip(f"no virtual Metal: {e}")


@pytest.fixture(scope="session")
def machine(store: Store) -> Machine:
    return Machine(store)


def make_weights(
    outputs: int, inputs: int, *, group: int = 64, bits: int = 4, dtype: mx.Dtype = mx.float32, seed: int = 0
) -> Weights:
    w = mx.random.normal((outputs, inputs), key=mx.random.key(seed)) * inputs**-0.5
    packed, scales, biases = mx.quantize(w, group_size=group, bits=bits)
    return Weights(packed, scales.astype(dtype), biases.astype(dtype), group, bits)


def make_rows(rows: int, inputs: int, *, dtype: mx.Dtype = mx.float32, seed: int = 1) -> mx.array:
    return mx.random.normal((rows, inputs), key=mx.random.key(seed)).astype(dtype)


def differing(a: mx.array, b: mx.array) -> int:
    """How many values have other bytes."""
    bits = mx.uint32 if a.dtype == mx.float32 else mx.uint16
    assert a.shape == b.shape
    return int(mx.sum(a.view(bits) != b.view(bits)).item())


def _load(tmp_path_factory: pytest.TempPathFactory, compute: str) -> Pair:
    folder = tmp_path_factory.mktemp("mac")
    target, head = write_target(folder / "target", SHAPE, group=64), write_head(folder / "head", SHAPE)
    if compute == "stored":
        file = str(target / "model.safetensors")
        weights = mx.load(file)
        stay = {name for name, a in weights.items() if "A_log" in name or a.dtype != mx.float32}
        weights = {name: a if name in stay else a.astype(mx.bfloat16) for name, a in weights.items()}
        mx.eval(weights)
        mx.save_safetensors(file, weights, metadata={"format": "mlx"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACENOTE_COMPUTE", compute)
        # The host's own verdict and speed are of no interest, and its 16-bit products are slow.
        unasked = Verdict(ExactnessState.NOT_RUN, "", "The tests ask the ladder themselves.")
        patch.setattr(loading, "_decide", lambda *_: unasked)
        return load_tiny(target, head)


@pytest.fixture(scope="session")
def float_pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """4-bit weights, float32 activations: where a wrong order of additions shows."""
    return _load(tmp_path_factory, "float32")


@pytest.fixture(scope="session")
def bfloat_pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """4-bit weights, bfloat16 activations: what a Mac runs."""
    return _load(tmp_path_factory, "stored")


@pytest.fixture
def restored() -> Iterator[Callable[[Pair], Pair]]:
    """Hands a pair out and puts its scope and backend back after the test."""
    kept = []

    def lend(pair: Pair) -> Pair:
        scope = pair.target.scope
        kept.append((pair.target, pair.target.backend, scope.kernel, scope.block_limit))
        return pair

    yield lend
    for target, backend, kernel, limit in reversed(kept):
        target.backend, target.scope.kernel, target.scope.block_limit = backend, kernel, limit
