"""Mixtures of experts: every layout loads to the same weights, and MTP gives classic decode's bytes with them too."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models import switch_layers

from engine.backend import detect
from engine.checkpoint.convert import quantize_drafter
from engine.checkpoint.folder import open_folder
from engine.checkpoint.head import read_head
from engine.events import ExactnessState
from engine.exactness import ladder
from engine.exactness.kernels import ForcedQmv, Gather, OneRow, Stock
from engine.exactness.probe import ProbeResult
from engine.exactness.routing import SORTED_PAIRS
from engine.loading import Pair
from engine.quantize import Scheme
from engine.request import Sampler
from engine.target import Target
from engine.target.load import load_target
from tests.support import fp8_file
from tests.support.expert_layouts import as_original, fused, per_expert, stacked
from tests.support.rig import Rig, load_tiny, state_bytes
from tests.support.tiny_pair import Shape, head_weights, target_weights, write_head, write_target

SHAPE = Shape(experts=32)
"""8 of 32 experts a token, so that blocks of 8 rows reach the 64 pairs from which mlx-lm sorts them."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("moe")
    return load_tiny(write_target(folder / "target", SHAPE), write_head(folder / "head", SHAPE), max_block=3)


def test_a_pair_of_mixtures_engages_and_says_its_policy(pair: Pair) -> None:
    assert pair.drafter is not None, pair.info.drafter_reason
    assert pair.info.verdict.state is ExactnessState.EXACT_STOCK
    assert pair.info.verdict.widths == (2, 3)
    assert "float32 activations, packed weights" in pair.info.policy, "MLX's CPU multiplies experts in float32 only"


@pytest.mark.parametrize("kernel", [Stock(), OneRow(), Gather(), ForcedQmv(32)], ids=lambda k: k.name)
@pytest.mark.parametrize("width", [2, 5, 8])
def test_mtp_gives_the_tokens_and_caches_of_classic_decode(
    kernel: object, width: int, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair.target.scope, "kernel", kernel)
    rig = Rig(pair.target, pair.drafter, Sampler(temperature=0.7), length=40)
    reference, reply = rig.classic([1, 2, 3, 4]), rig.speculative([1, 2, 3, 4], width)
    assert reply.tokens == reference.tokens
    assert state_bytes(reply.line.state) == state_bytes(reference.line.state)
    assert 0 < reply.accepted < reply.drafted


def test_sorted_experts_that_sum_otherwise_are_met_by_the_forced_kernels(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A double for Metal, where sorted pairs go through a matrix kernel: stock verify differs, the others do not."""
    real = mx.gather_qmm

    def sorted_differs(*args: mx.array, sorted_indices: bool = False, **kwargs: object) -> mx.array:
        out = real(*args, sorted_indices=sorted_indices, **kwargs)
        return out * (1 + 2**-20) if sorted_indices else out

    monkeypatch.setattr(switch_layers.mx, "gather_qmm", sorted_differs)
    for kernel, equal in ((Stock(), False), (OneRow(), True), (Gather(), True), (ForcedQmv(32), True)):
        monkeypatch.setattr(pair.target.scope, "kernel", kernel)
        chain, block = (logits(pair.target, verify=verify) for verify in (False, True))
        assert bool(mx.array_equal(chain, block)) is equal, kernel


def test_blocks_whose_experts_are_sorted_are_not_trusted_by_routing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 rows of 8 experts: in 16 bit another kernel could give the right bytes by luck."""
    monkeypatch.setattr(pair.target, "backend", replace(pair.target.backend, architecture="applegpu_g13g"))
    assert ladder.stock_by_routing(pair.target, (2, 7)) == ((2, 7), "")
    widths, why = ladder.stock_by_routing(pair.target, (2, 7, 8))
    assert widths == (2, 7)
    assert "64 experts of 8 rows" in why
    everything_passes = lambda _, tried, *__, **___: ProbeResult(tuple(tried), (), 1, 100, 0.0)  # noqa: E731
    monkeypatch.setattr(ladder, "probe", everything_passes)
    monkeypatch.setattr(ladder, "verify_ms", lambda _, candidates: [1.0] * len(candidates))
    for name in ("kernel", "block_limit"):
        monkeypatch.setattr(pair.target.scope, name, getattr(pair.target.scope, name))
    decision = ladder.decide(pair.target, (2, 8))
    assert decision.verdict.widths == (2, 8)
    assert not decision.verdict.kernel.startswith("stock")


def test_mlx_lm_sorts_from_as_many_pairs_as_routing_says(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fact that routing rests on."""
    seen: list[bool] = []
    real = mx.gather_qmm

    def watching(*args: mx.array, sorted_indices: bool = False, **kwargs: object) -> mx.array:
        seen.append(sorted_indices)
        return real(*args, sorted_indices=sorted_indices, **kwargs)

    monkeypatch.setattr(switch_layers.mx, "gather_qmm", watching)
    experts = pair.target.layers[0].mlp.switch_mlp
    for pairs in (1, SORTED_PAIRS - 1, SORTED_PAIRS):
        seen.clear()
        experts(mx.zeros((1, 1, SHAPE.hidden_size)), mx.zeros((1, 1, pairs), dtype=mx.uint32))
        assert set(seen) == {pairs >= SORTED_PAIRS}, pairs


def logits(target: Target, *, verify: bool) -> mx.array:
    state, ids = target.new_state(), mx.arange(8, dtype=mx.uint32)
    mx.eval(target.hidden(mx.array([9], dtype=mx.uint32), state))
    if verify:
        return target.verify(ids, state).logits
    return mx.concatenate([target.step(ids[n : n + 1], state).logits for n in range(8)])


def target_alone(folder: Path) -> Target:
    """Without probe and measurements, which cost seconds."""
    return load_target(open_folder(folder), detect(experts=True), lambda *_: None, threading.Event())


# -- layouts ----------------------------------------------------------------------------------------------


LAYOUTS: list[Callable[[dict[str, mx.array]], dict[str, mx.array]]] = [fused, per_expert, stacked]


def write_checkpoint(folder: Path, weights: dict[str, mx.array], **config: object) -> Path:
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    whole = {"model_type": SHAPE.model_type, "text_config": SHAPE.text_config(), **config}
    (folder / "config.json").write_text(json.dumps(whole))
    return folder


@pytest.mark.parametrize("prefix", ["mtp.", "language_model.mtp.", ""])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_a_head_of_any_layout_is_the_same_head(layout: Callable, prefix: str, tmp_path: Path) -> None:
    """The shift of the norms goes by prefix, the layout of the experts by the tensors' names."""
    weights = head_weights(SHAPE)
    stored = as_original(layout(weights), prefix) if prefix else layout(weights)
    head = read_head(open_folder(write_checkpoint(tmp_path / "head", stored)), SHAPE.text_config())
    assert head.weights.keys() == weights.keys()
    for name, w in weights.items():
        assert mx.array_equal(head.weights[name], w), name


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_a_target_of_any_layout_computes_the_same(layout: Callable, tmp_path: Path) -> None:
    """In Hugging Face names: `model.language_model.`, and a head inside that must not disturb."""
    folder = write_target(tmp_path / "target", SHAPE, bits=None)
    reference = logits(target_alone(folder), verify=False)
    names = {n.replace("language_model.model.", "model.language_model."): w for n, w in target_weights(SHAPE).items()}
    inside = as_original(layout(head_weights(SHAPE)))
    mx.save_safetensors(str(folder / "model.safetensors"), {**layout(names), **inside})
    assert mx.array_equal(logits(target_alone(folder), verify=False), reference)


# -- fp8 --------------------------------------------------------------------------------------------------

WIDE = Shape(experts=4, hidden_size=160, mlp=288)
"""Sizes that 128 does not divide, so that the last blocks are parts."""


@pytest.mark.parametrize("layout", [fused, per_expert], ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("shape", [WIDE, Shape(hidden_size=160, mlp=288)], ids=["experts", "dense"])
def test_a_head_in_fp8_blocks_is_what_it_stands_for(layout: Callable, shape: Shape, tmp_path: Path) -> None:
    stored, meant = fp8_file.in_fp8(as_original(layout(head_weights(shape))))
    folder = write_checkpoint(tmp_path / "model", {}, **fp8_file.CONFIG)
    fp8_file.save(folder / "model.safetensors", stored)
    head = read_head(open_folder(folder), shape.text_config())
    plain = write_checkpoint(tmp_path / "plain", meant)
    expected = read_head(open_folder(plain), shape.text_config())
    assert head.weights.keys() == expected.weights.keys()
    for name, w in expected.weights.items():
        assert w.dtype == head.weights[name].dtype == mx.bfloat16
        assert mx.array_equal(head.weights[name], w), name


def test_a_model_in_fp8_blocks_with_single_experts_loads(tmp_path: Path) -> None:
    """As Qwen publishes its fp8 mixtures; mlx-lm alone refuses them (mlx-lm #1224)."""
    folder = write_target(tmp_path / "target", WIDE, bits=None)
    names = {
        n.replace("language_model.model.", "model.language_model."): w.astype(mx.bfloat16)
        for n, w in target_weights(WIDE).items()
    }
    stored, meant = fp8_file.in_fp8({**per_expert(names), **as_original(per_expert(head_weights(WIDE)))})
    mx.save_safetensors(str(folder / "model.safetensors"), meant)
    reference = target_alone(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fp8_file.CONFIG}))
    fp8_file.save(folder / "model.safetensors", stored)
    pair = load_tiny(folder, None, max_block=2)
    assert pair.info.quantization == "fp8 in blocks, unpacked to bfloat16"
    assert pair.info.parameters == sum(w.size for w in target_weights(WIDE).values())
    assert mx.array_equal(logits(pair.target, verify=False), logits(reference, verify=False))
    assert pair.drafter is not None, pair.info.drafter_reason
    assert pair.drafter.info.representation == "4-bit group 64"


# -- precision --------------------------------------------------------------------------------------------


def test_router_and_shared_expert_keep_their_precision(pair: Pair) -> None:
    """Experts and attention are packed, what serves every token is not; each with its reason."""
    assert pair.drafter is not None
    parameters = dict(tree_flatten(pair.drafter.head.parameters()))
    packed = {name.removesuffix(".scales") for name in parameters if name.endswith(".scales")}
    mlp = "layers.0.mlp."
    assert {mlp + f"switch_mlp.{part}_proj" for part in ("gate", "up", "down")} <= packed
    assert not [name for name in packed if "shared_expert" in name or name.endswith("mlp.gate")]
    assert len(packed) == 8
    assert [s for s in pair.drafter.info.skipped if s.startswith(f"{mlp}gate: router")]


def test_a_converted_mixture_takes_the_routers_8_bit_and_loads(tmp_path: Path) -> None:
    """mlx-lm's conversions keep the router at 8 bit: a mixed scheme, which the converter follows by name."""
    target = write_target(tmp_path / "target", SHAPE, group=64)
    head = write_head(tmp_path / "head", SHAPE)
    done = quantize_drafter(open_folder(head), open_folder(target), tmp_path / "out")
    assert done.plan.named["layers.0.mlp.gate"] == Scheme(64, 8)
    assert {name for name, _ in done.skipped} == {
        f"layers.0.mlp.shared_expert.{p}_proj" for p in ("gate", "up", "down")
    }
    pair = load_tiny(target, tmp_path / "out", max_block=2)
    assert pair.drafter is not None, pair.info.drafter_reason
    assert pair.drafter.info.representation == "4-bit group 64, 8-bit group 64"
    stacks = mx.load(str(tmp_path / "out" / "model.safetensors"))
    experts = head_weights(SHAPE)["layers.0.mlp.switch_mlp.up_proj.weight"]
    alone = mx.quantize(experts[3], group_size=64, bits=4)[0]
    assert mx.array_equal(stacks["layers.0.mlp.switch_mlp.up_proj.weight"][3], alone), "a stack is its experts"
    single = shutil.copytree(tmp_path / "out", tmp_path / "single")
    mx.save_safetensors(str(single / "model.safetensors"), per_expert(stacks))
    again = read_head(open_folder(single), SHAPE.text_config())
    assert all(mx.array_equal(again.weights[name], w) for name, w in stacks.items())
