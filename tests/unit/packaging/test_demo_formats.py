"""The bundled pair is in the formats of real checkpoints; the exporter keeps their traps straight. No model is run."""

import json
from pathlib import Path

import mlx.core as mx
import pytest
from demo_model import export
from mlx_lm.utils import load_model
from tokenizers import Tokenizer
from transformers import AutoTokenizer

DEMO = Path(__file__).resolve().parents[3] / "resources" / "demo"
CONFIG = json.loads((DEMO / "target" / "config.json").read_text())


def test_target_is_a_converted_checkpoint_without_a_head() -> None:
    weights = mx.load(str(DEMO / "target" / "model.safetensors"))
    assert CONFIG["model_type"] == "qwen3_5"
    assert CONFIG["quantization"] == {"group_size": 64, "bits": 4, "mode": "affine"}
    assert all(k.startswith("language_model.model.") for k in weights)
    assert not [k for k in weights if "mtp." in k]
    for name, w in weights.items():
        if "conv1d" in name:
            assert w.shape[-1] == 1, "MLX layout: the norm shift hangs on it"
    # Left alone by quantization: convolutions, norms, gates' parameters.
    dense = {
        k.rsplit(".", 2)[-2]
        for k in weights
        if f"{k.removesuffix('.weight')}.scales" not in weights and k.endswith(".weight")
    }
    assert dense == {"conv1d", "norm", "q_norm", "k_norm", "input_layernorm", "post_attention_layernorm"}


def test_head_has_fifteen_bfloat16_tensors_with_norms_as_used() -> None:
    weights = mx.load(str(DEMO / "head" / "model.safetensors"))
    config = json.loads((DEMO / "head" / "config.json").read_text())
    assert config["model_type"] == "qwen3_5_mtp"
    assert config["text_config"]["hidden_size"] == CONFIG["text_config"]["hidden_size"]
    assert len(weights) == 15
    assert {w.dtype for w in weights.values()} == {mx.bfloat16}
    assert not [k for k in weights if k.startswith("mtp.")]
    norms = {k: w.astype(mx.float32).mean().item() for k, w in weights.items() if w.ndim == 1}
    assert len(norms) == 7
    # A norm stored as w - 1 would have its mean near 0.
    assert all(mean > 0.3 for mean in norms.values()), norms


def test_any_reader_of_the_tokenizer_gets_the_same_ids() -> None:
    """AutoTokenizer puts Qwen3.5's own pattern in place of the file's: they must be one and the same."""
    raw = Tokenizer.from_file(str(DEMO / "target" / "tokenizer.json"))
    auto = AutoTokenizer.from_pretrained(DEMO / "target")
    for text in (
        "Hello! Who are you?",
        "It's 12 + 345,\n\n  naïve café 東京 🙂",
        "<|im_start|>user\nHi<|im_end|>\n<think>\n",
    ):
        assert auto(text, add_special_tokens=False).input_ids == raw.encode(text, add_special_tokens=False).ids
        assert raw.decode(raw.encode(text).ids, skip_special_tokens=False) == text
    assert [raw.token_to_id(t) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert auto.eos_token_id == 2
    assert json.loads((DEMO / "target" / "generation_config.json").read_text())["eos_token_id"] == [2, 0]


def test_template_drops_earlier_reasoning_and_opens_it_only_when_asked() -> None:
    auto = AutoTokenizer.from_pretrained(DEMO / "target")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "<think>\nA greeting.\n</think>\n\nHello!"},
        {"role": "user", "content": "Bye"},
    ]
    text = auto.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
    )
    asked = auto.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=True)
    assert asked == text + "<think>\n"
    assert auto.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False) == text


def test_it_says_what_it_is_and_stays_small() -> None:
    about = json.loads((DEMO / "demo.json").read_text())
    assert about["name"] == "Pacenote demo"
    head = mx.load(str(DEMO / "head" / "model.safetensors"))
    assert about["parameters"]["head"] == sum(w.size for w in head.values())
    packed = mx.load(str(DEMO / "target" / "model.safetensors"))
    logical = sum(
        w.size * (8 if w.dtype == mx.uint32 else 1) for k, w in packed.items() if not k.endswith((".scales", ".biases"))
    )
    assert about["parameters"]["target"] == logical
    assert len(json.loads((DEMO / "prompts.json").read_text())) == 3
    assert sum(p.stat().st_size for p in DEMO.rglob("*") if p.is_file()) < 24_000_000


@pytest.fixture
def small() -> dict:
    c = json.loads(Path(export.__file__).with_name("text_config.json").read_text())
    return c | {
        "vocab_size": 128,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 4,
        "layer_types": c["layer_types"][:4],
    }


def test_exported_layouts_agree_on_the_norms(tmp_path: Path, small: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """HF layout holds w - 1 and `mtp.*`; the converted target and the head hold w, to the same value in bfloat16."""
    monkeypatch.setattr(export, "TOKENIZER", DEMO / "target")
    weights = export.random_weights(small)
    export.write_hf(weights, small, tmp_path / "hf")
    export.write_target(tmp_path / "hf", tmp_path / "target")
    export.write_head(weights, small, tmp_path / "head")
    hf = mx.load(str(tmp_path / "hf" / "model.safetensors"))
    target = mx.load(str(tmp_path / "target" / "model.safetensors"))
    head = mx.load(str(tmp_path / "head" / "model.safetensors"))
    assert len([k for k in hf if k.startswith("mtp.")]) == 15
    for k, w in hf.items():
        if k.startswith("mtp.") and w.ndim == 1:
            assert mx.array_equal(w.astype(mx.float32) + 1, head[k.removeprefix("mtp.")].astype(mx.float32)), k
    k = "layers.0.input_layernorm.weight"
    shifted = hf[f"model.language_model.{k}"].astype(mx.float32) + 1
    assert mx.array_equal(shifted, target[f"language_model.model.{k}"].astype(mx.float32))
    # The gated norm of the linear layers is not shifted.
    k = "layers.0.linear_attn.norm.weight"
    assert mx.array_equal(hf[f"model.language_model.{k}"], target[f"language_model.model.{k}"])
    model, config = load_model(tmp_path / "target")
    assert (
        "rope_type" in json.loads((tmp_path / "target" / "config.json").read_text())["text_config"]["rope_parameters"]
    )
    assert model(mx.array([[5, 6, 7]])).shape == (1, 3, 128)
    assert config["model_type"] == "qwen3_5"
