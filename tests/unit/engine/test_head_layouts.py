"""Every layout a head comes in loads; every way to break each is refused with the name of what is wrong."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.checkpoint.convert import quantize_drafter
from engine.checkpoint.folder import open_folder
from engine.checkpoint.head import HeadTensors, read_head
from engine.errors import CheckpointError
from engine.quantize import Plan, Scheme, quantize_weights
from tests.support import fp8_file
from tests.support.expert_layouts import as_original, fused, per_expert, stacked
from tests.support.tiny_pair import Shape, head_weights

DENSE, MOE = Shape(), Shape(experts=4)
MIXED = Plan(Scheme(64, 4), {"layers.0.self_attn.v_proj": Scheme(32, 8), "layers.0.mlp.down_proj": None})
UNTOUCHED = "language_model.model.layers.0.input_layernorm.weight"


@dataclass
class Lying:
    """A checkpoint about to be written. prefix: of the head's tensors. shards: how many files."""

    weights: dict[str, mx.array]
    config: dict[str, Any]
    prefix: str = ""
    shards: int = 1


def inside(shape: Shape, prefix: str, layout: Callable = stacked, shards: int = 1) -> Lying:
    weights = {**as_original(layout(head_weights(shape)), prefix), UNTOUCHED: mx.ones(8)}
    return Lying(weights, {"model_type": shape.model_type, "text_config": shape.text_config()}, prefix, shards)


def alone(shape: Shape, layout: Callable = stacked) -> Lying:
    return Lying(layout(head_weights(shape)), {"model_type": "qwen3_5_mtp", "text_config": shape.text_config()})


def packed(shape: Shape, plan: Plan, where: str) -> Lying:
    """Pre-converted. where: of the quantization block, both occur."""
    lying = alone(shape)
    lying.weights = quantize_weights(lying.weights, plan).weights
    block = plan.default.as_block() | {n: s.as_block() if s else False for n, s in plan.named.items()}
    (lying.config if where == "top" else lying.config["text_config"])["quantization"] = block
    return lying


def in_fp8(shape: Shape, layout: Callable) -> Lying:
    lying = inside(shape, "mtp.", layout)
    lying.weights, _ = fp8_file.in_fp8(lying.weights)
    lying.config |= fp8_file.CONFIG
    return lying


LAYOUTS: dict[str, tuple[Shape, Callable[[], Lying]]] = {
    "inside, mtp.": (DENSE, lambda: inside(DENSE, "mtp.")),
    "inside, language_model.mtp.": (DENSE, lambda: inside(DENSE, "language_model.mtp.")),
    "inside, model.mtp.": (DENSE, lambda: inside(DENSE, "model.mtp.")),
    "inside, over three shards": (DENSE, lambda: inside(DENSE, "mtp.", shards=3)),
    "alone": (DENSE, lambda: alone(DENSE)),
    "alone, packed": (DENSE, lambda: packed(DENSE, Plan(), "top")),
    "alone, packed, block inside text_config": (DENSE, lambda: packed(DENSE, Plan(Scheme(32, 8)), "inner")),
    "alone, packed, mixed": (DENSE, lambda: packed(DENSE, MIXED, "top")),
    "fp8 blocks": (DENSE, lambda: in_fp8(DENSE, stacked)),
    "experts, fused": (MOE, lambda: inside(MOE, "mtp.", fused)),
    "experts, one by one": (MOE, lambda: inside(MOE, "mtp.", per_expert, shards=2)),
    "experts, stacked": (MOE, lambda: alone(MOE)),
    "experts, packed": (MOE, lambda: packed(MOE, Plan(Scheme(32, 4)), "top")),
    "experts, one by one, fp8": (MOE, lambda: in_fp8(MOE, per_expert)),
    "experts, fused, fp8": (MOE, lambda: in_fp8(MOE, fused)),
}


def write(folder: Path, lying: Lying) -> Path:
    folder.mkdir()
    names = sorted(lying.weights)
    for n in range(lying.shards):
        name = "model.safetensors" if lying.shards == 1 else f"model-0000{n + 1}-of-0000{lying.shards}.safetensors"
        fp8_file.save(folder / name, {k: lying.weights[k] for k in names[n :: lying.shards]})
    (folder / "config.json").write_text(json.dumps(lying.config))
    return folder


def read(folder: Path, shape: Shape) -> HeadTensors:
    return read_head(open_folder(folder), shape.text_config())


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_loads(name: str, tmp_path: Path) -> None:
    """To the same names; where nothing was packed, to the same weights."""
    shape, make = LAYOUTS[name]
    head = read(write(tmp_path / "head", make()), shape)
    used = head_weights(shape)
    assert {n for n in head.weights if n.endswith(".weight")} == used.keys()
    for n, w in used.items():
        loaded = head.weights[n]
        if loaded.dtype != mx.bfloat16:
            assert f"{n.removesuffix('.weight')}.scales" in head.weights
        elif "fp8" in name and w.ndim > 1:
            assert mx.abs(loaded - w).max() <= 0.07 * mx.abs(w).max(), "E4M3 has 3 bits of mantissa"
        else:
            assert mx.array_equal(loaded, w), n


def change_norms(lying: Lying, by: float) -> None:
    for name, w in lying.weights.items():
        if name.startswith(lying.prefix) and name != UNTOUCHED and w.ndim == 1:
            lying.weights[name] = w + by


def first_matrix(lying: Lying) -> str:
    """One that every layout holds: o_proj."""
    return f"{lying.prefix}layers.0.self_attn.o_proj.weight"


def without_parts(lying: Lying, name: str) -> None:
    for tail in ("_scale_inv",):
        lying.weights.pop(name + tail, None)
    for tail in (".scales", ".biases"):
        lying.weights.pop(name.removesuffix(".weight") + tail, None)


def another_type(lying: Lying, name: str) -> None:
    without_parts(lying, name)
    lying.weights[name] = mx.zeros((64, 128), dtype=mx.int32)


def another_shape(lying: Lying, name: str) -> None:
    without_parts(lying, name)
    lying.weights[name] = mx.zeros((64, 96))


def put(lying: Lying, name: str, w: mx.array) -> None:
    lying.weights[lying.prefix + name] = w


def poison(lying: Lying) -> None:
    """One value that is no number, where this layout keeps o_proj: its scales, its fp8 bytes, or itself."""
    name = first_matrix(lying)
    scales = f"{name.removesuffix('.weight')}.scales"
    where = scales if scales in lying.weights else name
    held = lying.weights[where]
    flat = held.reshape(-1)
    flat[3] = 0x7F if held.dtype == mx.uint8 else float("nan")  # 0x7F: NaN in E4M3
    lying.weights[where] = flat.reshape(held.shape)


BROKEN: dict[str, tuple[Callable[[Lying], object], str]] = {
    "missing norm": (lambda c: c.weights.pop(f"{c.prefix}layers.0.self_attn.k_norm.weight"), r"k_norm\.weight"),
    "missing matrix": (lambda c: c.weights.pop(first_matrix(c)), r"o_proj\.weight"),
    "norms shifted twice": (lambda c: change_norms(c, 1.0), r"shifted twice.*median is 2\.00, of .*norm.*\.weight"),
    "norms not shifted": (lambda c: change_norms(c, -1.0), r"unshifted: .*norm.*\.weight has median 0\.00"),
    "extra tensor": (
        lambda c: put(c, "layers.0.mlp.surplus.weight", mx.ones((2, 2))),
        r"layers\.0\.mlp\.surplus\.weight",
    ),
    "a second layer": (lambda c: put(c, "layers.1.input_layernorm.weight", mx.ones(64)), r"layers\.1\.input_layernorm"),
    "wrong vocabulary": (lambda c: c.config["text_config"].update(vocab_size=999), "999 tokens.*vocab_size"),
    "wrong type of a matrix": (lambda c: another_type(c, first_matrix(c)), r"o_proj\.weight has type I32"),
    "wrong type of a norm": (
        lambda c: put(c, "norm.weight", mx.zeros(64, dtype=mx.int32)),
        r"norm\.weight has type I32",
    ),
    "wrong shape": (lambda c: another_shape(c, first_matrix(c)), r"o_proj\.weight has shape \[64, 96\]"),
    "a value that is no number": (poison, r"o_proj\.(weight|scales) holds values that are no numbers"),
    "unreadable scheme": (
        lambda c: c.config.update(quantization={"bits": "four", "group_size": 64}),
        "quantization in its config.json cannot be read",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_broken_variant_is_refused_by_name(name: str, fault: str, tmp_path: Path) -> None:
    shape, make = LAYOUTS[name]
    lying, (breaking, words) = make(), BROKEN[fault]
    breaking(lying)
    folder = write(tmp_path / "head", lying)
    with pytest.raises(CheckpointError, match=words) as caught:
        read(folder, shape)
    assert caught.value.kept
    assert caught.value.todo


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_truncated_file_is_refused_by_name(name: str, tmp_path: Path) -> None:
    shape, make = LAYOUTS[name]
    folder = write(tmp_path / "head", make())
    path = max(folder.glob("*.safetensors"))
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CheckpointError, match=f"{path.name} is damaged: the file ends before tensor"):
        read(folder, shape)


def test_what_only_some_layouts_can_get_wrong(tmp_path: Path) -> None:
    """Block scales, packing that is not what the configuration says, a lost expert: each by name."""

    def refused(name: str, breaking: Callable[[Lying], object], words: str) -> None:
        shape, make = LAYOUTS[name]
        lying = make()
        breaking(lying)
        with pytest.raises(CheckpointError, match=words):
            read(write(tmp_path / str(len(list(tmp_path.iterdir()))), lying), shape)

    o_proj = "layers.0.self_attn.o_proj"
    scale = f"mtp.{o_proj}.weight_scale_inv"
    refused(
        "fp8 blocks", lambda c: c.weights.pop(scale), rf"{o_proj}.weight has type F8_E4M3 and no {o_proj}.weight_sc"
    )
    refused("fp8 blocks", lambda c: c.weights.update({scale: mx.ones((9, 9))}), r"scale_inv has shape \[9, 9\]")
    refused(
        "fp8 blocks",
        lambda c: c.config.update(quantization_config={"quant_method": "fp8", "weight_block_size": 3}),
        "cannot be read",
    )
    refused("inside, mtp.", lambda c: c.weights.update({scale: mx.ones((1, 1))}), "has block scales and type BF16")
    refused("alone, packed", lambda c: c.weights.pop(f"{o_proj}.biases"), f"{o_proj}.weight is packed without biases")
    refused("alone, packed", lambda c: c.weights.pop(f"{o_proj}.scales"), f"{o_proj}.weight")
    refused(
        "alone, packed", lambda c: c.config["quantization"].update(bits=8), "4-bit group 64, its config.json says 8-bit"
    )
    refused("alone, packed", lambda c: c.config["quantization"].update(mode="mxfp4"), "mode mxfp4")
    refused(
        "experts, one by one", lambda c: c.weights.pop("mtp.layers.0.mlp.experts.2.up_proj.weight"), r"experts\.2\.up"
    )
    refused(
        "experts, one by one", lambda c: c.weights.pop("mtp.layers.0.mlp.experts.0.gate_proj.weight"), r"experts\.0\.g"
    )
    refused("experts, fused", lambda c: c.weights.pop("mtp.layers.0.mlp.experts.down_proj"), r"experts\.down_proj")
    refused("experts, fused", lambda c: c.weights.pop("mtp.layers.0.mlp.gate.weight"), r"mlp\.gate\.weight")
    refused(
        "experts, stacked",
        lambda c: put(c, "layers.0.mlp.shared_expert_gate.weight", mx.ones((2, 64))),
        r"gate.weight has shape \[2, 64\]",
    )


PART = "layers.0.mlp.experts."
ODD: dict[str, tuple[str, Callable[[Lying], object], str]] = {
    "packed and block-scaled": (
        "alone, packed",
        lambda c: put(c, "fc.weight_scale_inv", mx.ones((1, 1))),
        "fc.weight has block scales and type U32",
    ),
    "biases without scales": (
        "alone",
        lambda c: put(c, "fc.biases", mx.zeros((64, 2), dtype=mx.bfloat16)),
        r"fc\.biases is there without fc\.scales",
    ),
    "one expert packed": (
        "experts, one by one",
        lambda c: pack(c, f"{PART}1.up_proj.weight"),
        r"experts\.\*\.up_proj are not all packed alike",
    ),
    "experts packed at two widths": (
        "experts, one by one",
        lambda c: [pack(c, f"{PART}{e}.up_proj.weight", bits=8 if e == 1 else 4) for e in range(4)],
        r"experts\.\*\.up_proj are not all packed alike",
    ),
    "fused experts packed": (
        "experts, fused",
        lambda c: pack(c, f"{PART}gate_up_proj"),
        r"gate_up_proj is packed, and fused experts are read unpacked only",
    ),
    "a norm that is no number": ("alone", lambda c: put(c, "norm.weight", mx.full(64, float("nan"))), "no numbers"),
    "a scheme without end": ("alone", lambda c: c.config.update(quantization={"bits": float("inf")}), "cannot be read"),
    "blocks without end": (
        "fp8 blocks",
        lambda c: c.config["quantization_config"].update(weight_block_size=[float("inf"), 1]),
        "cannot be read",
    ),
}


def pack(lying: Lying, name: str, bits: int = 4) -> None:
    stem = lying.prefix + name.removesuffix(".weight")
    packed, scales, biases = mx.quantize(lying.weights[lying.prefix + name], group_size=64, bits=bits)
    lying.weights |= {lying.prefix + name: packed, f"{stem}.scales": scales, f"{stem}.biases": biases}


@pytest.mark.parametrize("fault", ODD)
def test_what_no_converter_should_write_is_refused_by_name(fault: str, tmp_path: Path) -> None:
    """Each of these crashed, or came out of the converter as a head that cannot be loaded or has wrong biases."""
    layout, breaking, words = ODD[fault]
    shape, make = LAYOUTS[layout]
    lying = make()
    lying.config = json.loads(json.dumps(lying.config))  # what layouts share is not to be changed
    breaking(lying)
    with pytest.raises(CheckpointError, match=words):
        read(write(tmp_path / "head", lying), shape)


def test_more_experts_than_tensors_are_refused_without_counting_them(tmp_path: Path) -> None:
    """Was: the names of 2^40 experts were made one by one."""
    head = write(tmp_path / "head", inside(MOE, "mtp.", per_expert))
    with pytest.raises(CheckpointError, match=r"too few for 1,099,511,627,776 experts"):
        read_head(open_folder(head), {**MOE.text_config(), "num_experts": 2**40})


def test_a_dense_head_for_a_mixture_and_the_other_way_round(tmp_path: Path) -> None:
    dense, moe = write(tmp_path / "dense", alone(DENSE)), write(tmp_path / "moe", alone(MOE))
    with pytest.raises(CheckpointError, match=r"mlp\.(experts|gate)"):
        read(dense, MOE)
    with pytest.raises(CheckpointError, match=r"mlp\.down_proj"):
        read(moe, DENSE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["bits", "group_size", "mode", "fc"]), inner)
    ),
    max_leaves=6,
)


@given(block=JSON, vocabulary=JSON, inner=st.booleans(), key=st.sampled_from(["quantization", "quantization_config"]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_configuration_crashes(
    block: Any, vocabulary: Any, inner: bool, key: str, head_folders: tuple[Path, Path]
) -> None:
    """Whatever stands there: the head is read, quantized, or refused in words."""
    for folder, shape in zip(head_folders, (DENSE, DENSE), strict=True):
        config: dict[str, Any] = {"model_type": "qwen3_5_mtp", "text_config": {"vocab_size": vocabulary}}
        (config["text_config"] if inner else config)[key] = block
        (folder / "config.json").write_text(json.dumps(config))
        with contextlib.suppress(CheckpointError):
            head = read_head(open_folder(folder), {**shape.text_config(), "vocab_size": 400})
            with contextlib.suppress(ValueError):  # a group or a number of bits that MLX does not have
                quantize_weights(head.weights, head.plan)


@pytest.fixture(scope="module")
def head_folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("heads")
    return write(folder / "dense", alone(DENSE)), write(folder / "packed", packed(DENSE, Plan(), "top"))


@pytest.mark.parametrize("key", ["hidden_size", "num_attention_heads", "intermediate_size"])
@pytest.mark.parametrize("value", [None, "wide", ...])
def test_a_target_that_does_not_say_its_sizes_is_refused_by_key(key: str, value: Any, tmp_path: Path) -> None:
    head, target = write(tmp_path / "head", alone(DENSE)), write(tmp_path / "target", alone(DENSE))
    config = json.loads((target / "config.json").read_text())
    config["quantization"] = {"bits": 4, "group_size": 64}
    config["text_config"].pop(key) if value is ... else config["text_config"].update({key: value})
    (target / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=f"does not say its {key}"):
        quantize_drafter(open_folder(head), open_folder(target), tmp_path / "out")


REAL = {"pre_fc_norm_embedding": 0.27, "pre_fc_norm_hidden": 0.49, "norm": 1.9, "layers.0.self_attn.q_norm": 1.6}
"""Medians as used of a real head (oMLX #3750 names the first two), the others around 1."""


def real_head() -> Lying:
    lying = alone(DENSE)
    for name, median in REAL.items():
        lying.weights[f"{name}.weight"] = lying.weights[f"{name}.weight"] * median
    return lying


@pytest.mark.parametrize("by", [1.0, -1.0])
def test_the_shift_of_real_heads_is_told_although_two_norms_damp(by: float, tmp_path: Path) -> None:
    """oMLX #3750: judged one by one, the two norms before fc look unshifted when they are not."""
    read(write(tmp_path / "right", real_head()), DENSE)
    lying = real_head()
    change_norms(lying, by)
    with pytest.raises(CheckpointError, match="shifted twice" if by > 0 else "unshifted"):
        read(write(tmp_path / "wrong", lying), DENSE)


@pytest.mark.parametrize("name", ["layers.0.input_layernorm", "layers.0.self_attn.k_norm"])
def test_a_head_in_two_conventions_is_refused_by_the_norm_that_is_wrong(name: str, tmp_path: Path) -> None:
    """oMLX #1507: a conversion that shifted `norm` and left the layer's norms raw had 0 % acceptance."""
    lying = real_head()
    lying.weights[f"{name}.weight"] = mx.full(lying.weights[f"{name}.weight"].shape, 0.05, dtype=mx.bfloat16)
    with pytest.raises(CheckpointError, match=rf"unshifted: {name}\.weight has median 0\.05"):
        read(write(tmp_path / "head", lying), DENSE)
