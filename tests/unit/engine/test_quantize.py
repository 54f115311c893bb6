"""Drafter quantization: what is packed, what is skipped and why, and what it saves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mlx.core as mx
import pytest

from engine.checkpoint.head_shapes import linear_shapes, norm_shapes
from engine.loading import SWITCH, quantize_switch
from engine.quantize import Plan, Scheme, quantize_weights
from tests.support.rig import load_tiny

QWEN_27B = {
    "hidden_size": 5120,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 17408,
}
MIB = 2**20


def test_the_27b_head_shrinks_as_published() -> None:
    """810.0 MiB in bfloat16, 227.9 MiB at 4 bit group 64, ratio 0.281 (reference mtp.md 1.1), from shapes alone."""
    shapes = linear_shapes(QWEN_27B).values()
    assert len(shapes) == 8
    norms = sum(2 * size for (size,) in norm_shapes(QWEN_27B).values())
    dense = sum(2 * o * i for o, i in shapes) + norms
    scheme = Scheme()
    packed = sum(o * i * scheme.bits // 8 + 2 * o * (i // scheme.group_size) * 2 for o, i in shapes) + norms
    assert dense == 849_398_784
    assert round(dense / MIB, 1) == 810.0
    assert round(packed / MIB, 1) == 227.9
    assert round(packed / dense, 3) == 0.281


def test_two_dimensional_weights_are_packed_and_types_kept() -> None:
    weights = {"a.weight": mx.ones((8, 128), dtype=mx.bfloat16), "n.weight": mx.ones(8, dtype=mx.bfloat16)}
    out = quantize_weights(weights, Plan())
    assert set(out.weights) == {"a.weight", "a.scales", "a.biases", "n.weight"}
    assert out.weights["a.weight"].dtype == mx.uint32
    assert out.weights["a.scales"].dtype == mx.bfloat16, "quantization runs before any change of type"
    assert out.skipped == ()


def test_the_two_skips_say_why() -> None:
    weights = {
        "packed.weight": mx.ones((8, 16), dtype=mx.uint32),
        "packed.scales": mx.ones((8, 2)),
        "odd.weight": mx.ones((8, 100)),
    }
    out = quantize_weights(weights, Plan())
    assert out.weights["odd.weight"] is weights["odd.weight"]
    assert dict(out.skipped) == {
        "packed": "already quantized in the checkpoint",
        "odd": "its 100 inputs are no multiple of the group size 64",
    }


def test_other_modes_are_refused() -> None:
    with pytest.raises(ValueError, match="nvfp4"):
        quantize_weights({"a.weight": mx.ones((8, 64))}, Plan(Scheme(mode="nvfp4")))


def test_a_silent_config_means_affine_4_bit_group_64() -> None:
    assert Scheme.from_block(None) == Scheme(64, 4, "affine") == Scheme.from_block({})
    assert Scheme.from_block({"bits": 8, "group_size": 32}) == Scheme(32, 8)


@pytest.mark.parametrize(
    ("asked", "variable", "result"),
    [
        (None, None, (True, "default")),
        (None, "0", (False, f"environment ({SWITCH}=0)")),
        (None, "1", (True, f"environment ({SWITCH}=1)")),
        (True, "0", (True, "setting")),
        (False, None, (False, "setting")),
    ],
)
def test_who_decides(asked: bool | None, variable: str | None, result: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    if variable is not None:
        monkeypatch.setenv(SWITCH, variable)
    assert quantize_switch(asked) == result


def test_a_scheme_that_cannot_be_at_load_is_told_with_the_way_out(
    tiny_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """7 bit is none of MLX's. Dense the same head loads."""
    head = shutil.copytree(tiny_folders[1], tmp_path / "head")
    config = json.loads((head / "config.json").read_text())
    (head / "config.json").write_text(json.dumps({**config, "quantization": {"bits": 7, "group_size": 64}}))
    pair = load_tiny(tiny_folders[0], head)
    assert pair.drafter is None
    assert "cannot be quantized as its config.json says" in pair.info.drafter_reason
    assert "Switch quantization of the drafter off" in pair.info.drafter_reason
    assert load_tiny(tiny_folders[0], head, quantize_drafter=False).drafter is not None
