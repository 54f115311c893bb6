"""Does everyone compute the same? Trainer, transformers, mlx-lm and a forward of the head written from its description.

    python -m demo_model.check        (in packaging/, with torch, transformers, mlx and mlx-lm; 1 min on one core)

Float32 on the CPU, on the exported HF-layout weights before quantization, then the shipped 4-bit weights against the trainer's
own picture of them. Max relative error = max |a - b| / max |b|.
"""

import json

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoTokenizer, Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

from demo_model.evaluate import dialogues
from demo_model.model import Pair, document_mask, fake_quantize
from demo_model.pack import chat_text
from demo_model.paths import HF_EXPORT, PAIR, TOKENIZER

TEXT = [
    chat_text(["Hello! Who are you?", "I am the Pacenote demo.", "What is a volcano?"])
    + "<|im_start|>assistant\nA volcano is",
    chat_text(["Tell me a story about a fox."])
    + "<|im_start|>assistant\nThere was once a young fox who lived near a river.",
]


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def head_from_description(w: dict[str, np.ndarray], c: dict, embedded: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """The head's output [T, D] by reference mtp.md 1.3 alone, in float64. `w`: the stand-alone tensors (norms as used)."""
    eps, d = c["rms_norm_eps"], c["head_dim"]
    heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
    w = {k: v.astype(np.float64) for k, v in w.items()}

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w[f"{name}.weight"]

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    def turn(x: np.ndarray) -> np.ndarray:  # [T, heads, d]
        n = int(d * c["rope_parameters"]["partial_rotary_factor"])
        frequency = c["rope_parameters"]["rope_theta"] ** (-np.arange(0, n, 2) / n)
        angle = np.arange(len(x))[:, None, None] * frequency
        a, b = x[..., : n // 2], x[..., n // 2 : n]
        return np.concatenate(
            [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle), x[..., n:]], -1
        )

    p = "layers.0."
    x = (
        np.concatenate([norm(embedded, "pre_fc_norm_embedding"), norm(hidden, "pre_fc_norm_hidden")], -1)
        @ w["fc.weight"].T
    )
    y = norm(x, p + "input_layernorm")
    both = (y @ w[p + "self_attn.q_proj.weight"].T).reshape(len(x), heads, 2 * d)
    query, gate = both[..., :d], both[..., d:]
    key = (y @ w[p + "self_attn.k_proj.weight"].T).reshape(len(x), kv, d)
    value = (y @ w[p + "self_attn.v_proj.weight"].T).reshape(len(x), kv, d)
    query, key = turn(norm(query, p + "self_attn.q_norm")), turn(norm(key, p + "self_attn.k_norm"))
    mixed = np.zeros_like(query)
    for h in range(heads):
        k, v = key[:, h * kv // heads], value[:, h * kv // heads]
        score = query[:, h] @ k.T / np.sqrt(d)
        score[np.triu_indices(len(x), 1)] = -np.inf
        weight = np.exp(score - score.max(-1, keepdims=True))
        mixed[:, h] = weight / weight.sum(-1, keepdims=True) @ v
    x = x + (mixed * sigmoid(gate)).reshape(len(x), -1) @ w[p + "self_attn.o_proj.weight"].T
    y = norm(x, p + "post_attention_layernorm")
    g = y @ w[p + "mlp.gate_proj.weight"].T
    x = x + (g * sigmoid(g) * (y @ w[p + "mlp.up_proj.weight"].T)) @ w[p + "mlp.down_proj.weight"].T
    return norm(x, "norm")


def main() -> None:
    torch.manual_seed(0)
    config = json.loads((HF_EXPORT / "config.json").read_text())
    text_config = config["text_config"]
    stored = {k: v.float() for k, v in load_file(str(HF_EXPORT / "model.safetensors")).items()}
    trunk = {k.replace("model.language_model.", "model."): v for k, v in stored.items()}
    pair = Pair().eval()
    pair.load_state_dict(trunk)
    theirs = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**text_config)).float().eval()
    missing, unexpected = theirs.load_state_dict(
        {k: v for k, v in trunk.items() if not k.startswith("mtp.")}, strict=False
    )
    assert set(missing) <= {"lm_head.weight"}, missing  # tied
    assert not unexpected, unexpected
    tok = Tokenizer.from_file(str(TOKENIZER / "tokenizer.json"))
    auto = AutoTokenizer.from_pretrained(PAIR / "target")
    mine, _ = load_model(HF_EXPORT)
    mine.set_dtype(mx.float32)
    shipped, _ = load_model(PAIR / "target")
    shipped.set_dtype(mx.float32)

    checks: dict[str, list[float]] = {}

    def note(name: str, a: np.ndarray, b: np.ndarray) -> None:
        checks.setdefault(name, []).append(relative(a, b))

    head_w = {k: np.array(v.astype(mx.float32)) for k, v in mx.load(str(PAIR / "head" / "model.safetensors")).items()}
    for text in TEXT:
        ids = tok.encode(text, add_special_tokens=False).ids
        assert auto(text, add_special_tokens=False).input_ids == ids, "AutoTokenizer gives other ids"
        t = torch.tensor([ids])
        where = torch.arange(len(ids))[None]
        # The chunked recurrence works in whole chunks of 64.
        pad = -len(ids) % 64
        padded = torch.nn.functional.pad(t, (0, pad))
        where = torch.arange(len(ids) + pad)[None]
        mask = document_mask(torch.ones_like(padded))
        with torch.no_grad():
            reference = theirs(t).logits[0].numpy()
            table = pair.model.table()
            hidden = pair.model(padded, where, mask, table)
            note("trainer vs transformers (target)", (hidden @ table.T)[0, : len(ids)].numpy(), reference)
            note("mlx-lm, exported HF folder vs transformers (target)", np.array(mine(mx.array([ids]))[0]), reference)
            ahead = torch.nn.functional.embedding(torch.roll(padded, -1, 1), table)
            n = len(ids) - 1
            ours = (pair.mtp([ahead], hidden, mask)[0] @ table.T)[0, :n].numpy()
            described = head_from_description(head_w, text_config, ahead[0, :n].numpy(), hidden[0, :n].numpy())
            note("trainer vs independent forward (head)", ours, described @ table.double().numpy().T)
            pair.qat.fill_(1.0)
            table = pair.model.table()
            seen = (pair.model(padded, where, mask, table) @ table.T)[0, : len(ids)].numpy()
            pair.qat.fill_(0.0)
            note("mlx-lm, shipped 4 bit vs trainer's 4-bit view (target)", np.array(shipped(mx.array([ids]))[0]), seen)
    packed = mx.load(str(PAIR / "target" / "model.safetensors"))
    worst = 0.0
    for name, w in trunk.items():
        key = f"language_model.{name}".removesuffix(".weight")
        if f"{key}.scales" in packed:
            back = mx.dequantize(
                packed[f"{key}.weight"], *(packed[f"{key}.{p}"].astype(mx.float32) for p in ("scales", "biases")), 64, 4
            )
            worst = max(worst, float(np.abs(np.array(back) - fake_quantize(w).numpy()).max()))
    for name, values in checks.items():
        print(f"{name}: max relative error {max(values):.2e}")
    print(f"shipped 4-bit weights vs the trainer's 4-bit view: max difference {worst:.1e}")
    assert all(max(v) < 1e-3 for v in checks.values())
    prompts = [t for _, ts in dialogues() for t in ts]
    assert all(auto(p).input_ids == tok.encode(p, add_special_tokens=False).ids for p in prompts)
    print(f"AutoTokenizer gives the same ids on {len(prompts)} prompts")


if __name__ == "__main__":
    main()
