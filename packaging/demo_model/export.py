"""Checkpoint of the trainer -> HF layout (target and `mtp.*` in one folder) -> the shipped pair.

    python -m demo_model.export CHECKPOINT.safetensors          (in packaging/, the project's .venv; 5 s)
    python -m demo_model.export --random                        (random weights, to try the formats)

* .work/hf           what upstream repositories look like: `model.language_model.*`, `mtp.*`, norms stored as w - 1, bfloat16
* resources/demo/target   the same target converted by mlx-lm: 4-bit groups of 64, norms as used, no head inside
* resources/demo/head     the head alone: model_type qwen3_5_mtp, 15 bfloat16 tensors, norms as used
"""

import argparse
import json
import shutil
from pathlib import Path

import mlx.core as mx
from mlx_lm.utils import load_model, quantize_model, save_config, save_model

from demo_model.paths import HF_EXPORT, PAIR, TOKENIZER

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
QUANTIZATION = {"group_size": 64, "bits": 4, "mode": "affine"}
GENERATION = {"do_sample": True, "temperature": 0.7, "top_p": 0.95, "eos_token_id": [2, 0], "pad_token_id": 0}


def write_hf(weights: dict[str, mx.array], text_config: dict, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    out = {}
    for name, w in weights.items():
        if (name.endswith("norm.weight") and "linear_attn" not in name) or "pre_fc_norm" in name:
            # Stored as w - 1 here and as w after conversion, both in bfloat16: take a value that survives both.
            w = (w + 1.0).astype(mx.bfloat16).astype(mx.float32) - 1.0
        # Real checkpoints keep A_log in float32 beside bfloat16 weights.
        w = w if name.endswith("A_log") else w.astype(mx.bfloat16)
        out[name if name.startswith("mtp.") else name.replace("model.", "model.language_model.", 1)] = w
    # Without format "pt" a converter takes the norms as already shifted.
    mx.save_safetensors(str(folder / "model.safetensors"), out, metadata={"format": "pt"})
    config = {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": text_config,
        "tie_word_embeddings": True,
        "eos_token_id": GENERATION["eos_token_id"],
    }
    _json(folder / "config.json", config)
    _json(folder / "generation_config.json", GENERATION)
    for name in TOKENIZER_FILES:
        shutil.copy(TOKENIZER / name, folder / name)


def write_target(hf: Path, folder: Path) -> None:
    model, config = load_model(hf)
    model, config = quantize_model(model, config, **{k: QUANTIZATION[k] for k in ("group_size", "bits", "mode")})
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    save_model(folder, model, donate_model=True)
    # mlx-lm's loader edits the rope block in place (rope_type -> type), which transformers would then refuse: start from the file.
    config = json.loads((hf / "config.json").read_text()) | {
        k: config[k] for k in ("quantization", "quantization_config")
    }
    save_config(config, config_path=folder / "config.json")
    for name in (*TOKENIZER_FILES, "generation_config.json"):
        shutil.copy(hf / name, folder / name)
    # One shard needs no index.
    index = folder / "model.safetensors.index.json"
    if index.exists() and len(list(folder.glob("model*.safetensors"))) == 1:
        index.unlink()


def write_head(weights: dict[str, mx.array], text_config: dict, folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    out = {}
    for name, w in weights.items():
        if name.startswith("mtp."):
            # One-dimensional tensors of the head are its norms: stored as used here, as w - 1 in the checkpoint.
            out[name.removeprefix("mtp.")] = (w + 1.0 if w.ndim == 1 else w).astype(mx.bfloat16)
    assert len(out) == 15, sorted(out)
    mx.save_safetensors(str(folder / "model.safetensors"), out, metadata={"format": "mlx"})
    _json(
        folder / "config.json",
        {
            "architectures": ["Qwen3_5MTP"],
            "model_type": "qwen3_5_mtp",
            "block_size": 3,
            "dtype": "bfloat16",
            "text_config": text_config,
            "tie_word_embeddings": True,
        },
    )


def _json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("checkpoint", nargs="?", type=Path)
    args.add_argument("--random", action="store_true")
    args.add_argument("--text-config", type=Path, default=Path(__file__).with_name("text_config.json"))
    a = args.parse_args()
    config = json.loads(a.text_config.read_text())
    weights = random_weights(config) if a.random else dict(mx.load(str(a.checkpoint)).items())
    weights = {k: v.astype(mx.float32) for k, v in weights.items()}
    write_hf(weights, config, HF_EXPORT)
    write_target(HF_EXPORT, PAIR / "target")
    write_head(weights, config, PAIR / "head")
    total = 0
    for path in sorted(PAIR.rglob("*")):
        if path.is_file():
            total += path.stat().st_size
            print(f"{path.stat().st_size:>12,}  {path.relative_to(PAIR)}")
    print(f"{total:>12,}  bytes in all")
    assert total < 24_000_000


def random_weights(c: dict) -> dict[str, mx.array]:
    """HF-layout weights of the right shapes, so that code for the formats can be written before a model exists."""
    mx.random.seed(0)
    d, inter, hd = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    q, kv = c["num_attention_heads"] * hd, c["num_key_value_heads"] * hd
    nk, nv = c["linear_num_key_heads"], c["linear_num_value_heads"]
    conv = 2 * nk * c["linear_key_head_dim"] + nv * c["linear_value_head_dim"]
    value = nv * c["linear_value_head_dim"]

    def attention(p: str) -> dict[str, tuple[int, ...]]:
        return {
            f"{p}self_attn.q_proj.weight": (2 * q, d),
            f"{p}self_attn.k_proj.weight": (kv, d),
            f"{p}self_attn.v_proj.weight": (kv, d),
            f"{p}self_attn.o_proj.weight": (d, q),
            f"{p}self_attn.q_norm.weight": (hd,),
            f"{p}self_attn.k_norm.weight": (hd,),
        }

    def rest(p: str) -> dict[str, tuple[int, ...]]:
        return {
            f"{p}mlp.gate_proj.weight": (inter, d),
            f"{p}mlp.up_proj.weight": (inter, d),
            f"{p}mlp.down_proj.weight": (d, inter),
            f"{p}input_layernorm.weight": (d,),
            f"{p}post_attention_layernorm.weight": (d,),
        }

    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (c["vocab_size"], d), "model.norm.weight": (d,)}
    for i, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{i}."
        shapes |= rest(p)
        if kind == "full_attention":
            shapes |= attention(p)
        else:
            shapes |= {
                f"{p}linear_attn.conv1d.weight": (conv, 1, c["linear_conv_kernel_dim"]),
                f"{p}linear_attn.dt_bias": (nv,),
                f"{p}linear_attn.A_log": (nv,),
                f"{p}linear_attn.norm.weight": (c["linear_value_head_dim"],),
                f"{p}linear_attn.in_proj_qkv.weight": (conv, d),
                f"{p}linear_attn.in_proj_z.weight": (value, d),
                f"{p}linear_attn.in_proj_b.weight": (nv, d),
                f"{p}linear_attn.in_proj_a.weight": (nv, d),
                f"{p}linear_attn.out_proj.weight": (d, value),
            }
    shapes |= attention("mtp.layers.0.") | rest("mtp.layers.0.")
    shapes |= {"mtp.fc.weight": (d, 2 * d)}
    shapes |= {f"mtp.{n}.weight": (d,) for n in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")}
    out = {}
    for name, shape in shapes.items():
        if name.endswith("linear_attn.norm.weight"):
            out[name] = mx.ones(shape)
        else:
            out[name] = mx.random.normal(shape) * 0.04
    return out


if __name__ == "__main__":
    main()
