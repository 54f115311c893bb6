"""The trained pair writes replies of its own: the text that the head will have to foresee.

    python -m demo_model.generate --checkpoint .work/ckpt/last.pt --prompts 40000     (GPU machine) -> .work/corpus/own.npy

Half greedy, half at temperature 0.8, from the user turns of the training chats. Weights as 4-bit quantization leaves them.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import Tensor

from demo_model.model import Pair, Shape, rope
from demo_model.pack import IM_END, chat_text, load_tokenizer, pack
from demo_model.paths import CORPUS, WORK


class Decoder:
    """One token a step for all rows at once, prompts forced token by token; one captured CUDA graph per span of the cache."""

    def __init__(self, pair: Pair, rows: int, columns: int, dtype: torch.dtype) -> None:
        self.pair, self.s, self.dtype = pair, pair.s, dtype
        s = pair.s
        dev = next(pair.parameters()).device
        self.weights = {k: v.to(dtype) for k, v in self._effective().items()}
        self.table = pair.model.table().detach().to(dtype)
        self.token = torch.zeros(rows, dtype=torch.long, device=dev)
        self.column = torch.zeros(1, dtype=torch.long, device=dev)
        self.prompt = torch.zeros(columns, rows, dtype=torch.long, device=dev)
        self.length = torch.zeros(rows, dtype=torch.long, device=dev)
        self.temperature = torch.zeros(rows, 1, device=dev)
        self.done = torch.zeros(rows, dtype=torch.bool, device=dev)
        self.out = torch.zeros(columns, rows, dtype=torch.long, device=dev)
        n = s.num_hidden_layers
        conv = 2 * s.linear_num_key_heads * s.linear_key_head_dim + s.linear_num_value_heads * s.linear_value_head_dim
        self.conv = [torch.zeros(rows, s.linear_conv_kernel_dim - 1, conv, device=dev, dtype=dtype) for _ in range(n)]
        self.state = [
            torch.zeros(rows, s.linear_num_value_heads, s.linear_key_head_dim, s.linear_value_head_dim, device=dev)
            for _ in range(n)
        ]
        kv = (rows, s.num_key_value_heads, columns, s.head_dim)
        full = [layer.full for layer in pair.model.layers]
        self.k = [torch.zeros(*kv, device=dev, dtype=dtype) if f else None for f in full]
        self.v = [torch.zeros(*kv, device=dev, dtype=dtype) if f else None for f in full]
        self.columns = columns
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def _effective(self) -> dict[str, Tensor]:
        from demo_model.model import Linear, fake_quantize

        return {
            name: (fake_quantize(m.weight) if float(self.pair.qat) else m.weight).detach()
            for name, m in self.pair.model.named_modules()
            if isinstance(m, Linear)
        }

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.weights[name])

    def _delta(self, i: int, x: Tensor) -> Tensor:
        net = self.pair.model.layers[i].linear_attn
        p = f"layers.{i}.linear_attn."
        qkv = self._linear(p + "in_proj_qkv", x)
        window = torch.cat([self.conv[i], qkv[:, None]], 1)
        self.conv[i].copy_(window[:, 1:])
        mixed = F.silu((window * net.conv1d.weight[:, 0].T.to(x.dtype)).sum(1))
        q, k, v = net.split(mixed)
        beta = self._linear(p + "in_proj_b", x).float().sigmoid()
        g = -net.A_log.exp() * F.softplus(self._linear(p + "in_proj_a", x).float() + net.dt_bias)
        state = self.state[i]
        state.mul_(g.exp()[..., None, None])
        memory = (k[..., None, :] @ state)[..., 0, :]
        state.add_(k[..., None] * ((v.float() - memory) * beta[..., None])[..., None, :])
        o = (q[..., None, :] @ state)[..., 0, :].to(x.dtype)
        z = self._linear(p + "in_proj_z", x).unflatten(-1, (self.s.linear_num_value_heads, -1))
        return self._linear(p + "out_proj", net.norm(o, z).flatten(-2))

    def _attention(self, i: int, x: Tensor, span: int) -> Tensor:
        attn, s = self.pair.model.layers[i].self_attn, self.s
        p = f"layers.{i}.self_attn."
        q, gate = self._linear(p + "q_proj", x).unflatten(-1, (s.num_attention_heads, 2 * s.head_dim)).chunk(2, -1)
        k = self._linear(p + "k_proj", x).unflatten(-1, (s.num_key_value_heads, s.head_dim))
        v = self._linear(p + "v_proj", x).unflatten(-1, (s.num_key_value_heads, s.head_dim))
        q = rope(attn.q_norm(q)[:, None], self.column, s)[:, 0]
        k = rope(attn.k_norm(k)[:, None], self.column, s)[:, 0]
        self.k[i].index_copy_(2, self.column, k[:, :, None])
        self.v[i].index_copy_(2, self.column, v[:, :, None])
        grouped = q.unflatten(1, (s.num_key_value_heads, -1))
        score = (grouped @ self.k[i][:, :, :span].mT).float() * s.head_dim**-0.5
        later = torch.arange(span, device=x.device) > self.column
        prob = score.masked_fill(later, -torch.inf).softmax(-1).to(x.dtype)
        out = (prob @ self.v[i][:, :, :span]).flatten(1)
        return self._linear(p + "o_proj", out * torch.sigmoid(gate.flatten(-2)))

    def _step(self, span: int) -> None:
        x = F.embedding(self.token, self.table)
        for i, layer in enumerate(self.pair.model.layers):
            y = layer.input_layernorm(x)
            x = x + (self._attention(i, y, span) if layer.full else self._delta(i, y))
            y = layer.post_attention_layernorm(x)
            p = f"layers.{i}.mlp."
            x = x + self._linear(
                p + "down_proj", F.silu(self._linear(p + "gate_proj", y)) * self._linear(p + "up_proj", y)
            )
        logits = F.linear(self.pair.model.norm(x), self.table).float()
        noise = -torch.empty_like(logits).exponential_().log()
        choice = (logits + noise * self.temperature).argmax(-1)
        self.column += 1
        forced = self.column < self.length
        given = self.prompt.index_select(0, self.column)[0]
        token = torch.where(forced, given, torch.where(self.done, IM_END, choice))
        self.done.logical_or_(~forced & (token == IM_END))
        self.token.copy_(token)
        self.out.index_copy_(0, self.column, token[None])

    def _state(self) -> list[Tensor]:
        kept = [self.token, self.column, self.done, self.out, *self.conv, *self.state]
        return kept + [x for x in (*self.k, *self.v) if x is not None]

    def run(self, prompts: list[list[int]], temperatures: list[float], new: int) -> list[list[int]]:
        """The new tokens of each row, through <|im_end|> where it came."""
        rows = self.token.shape[0]
        longest = max(map(len, prompts))
        assert len(prompts) <= rows
        assert longest + new < self.columns
        table = np.zeros((self.columns, rows), np.int64)
        for i, ids in enumerate(prompts):
            table[: len(ids), i] = ids
        self.prompt.copy_(torch.from_numpy(table))
        for x in self._state():
            x.zero_()
        self.length.fill_(1)
        self.length[: len(prompts)] = torch.tensor([len(q) for q in prompts])
        self.temperature.zero_()
        self.temperature[: len(prompts), 0] = torch.tensor(temperatures)
        self.done[len(prompts) :] = True
        self.token.copy_(self.prompt[0])
        for step in range(longest + new - 1):
            span = min(self.columns, (step // 64 + 1) * 64)
            if step % 8 == 7 and int((~self.done).sum()) <= rows // 100:
                break
            if not self.token.is_cuda:
                self._step(span)
                continue
            if span not in self.graphs:
                saved = [x.clone() for x in self._state()]
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    self._step(span)
                torch.cuda.current_stream().wait_stream(side)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    self._step(span)
                for x, y in zip(self._state(), saved, strict=True):
                    x.copy_(y)
                self.graphs[span] = graph
            self.graphs[span].replay()
        last = int(self.column)
        out = self.out[: last + 1].T.cpu().numpy()
        result = []
        for i, ids in enumerate(prompts):
            said = out[i, len(ids) :].tolist()
            result.append(said[: said.index(IM_END) + 1] if IM_END in said else said)
        return result


def load_pair(path: Path, device: str) -> Pair:
    """A checkpoint with its weights rounded to bfloat16, as they will ship, and seen through 4 bits."""
    state = torch.load(path, map_location="cpu", weights_only=False)["pair"]
    shape = (
        Shape()
        if state["model.embed_tokens.weight"].shape[1] == 384
        else Shape(hidden_size=128, num_hidden_layers=4, intermediate_size=128)
    )
    pair = Pair(shape)
    pair.load_state_dict({k: v if k.endswith("A_log") else v.bfloat16().float() for k, v in state.items()})
    pair = pair.to_device(device)
    pair.qat.fill_(1.0)
    return pair.eval().requires_grad_(False)


def contexts(count: int, seed: int) -> list[list[int]]:
    """Encoded prompts (history up to a user turn), from the chats by rule and by the teacher alike."""
    r = random.Random(seed)
    tok = load_tokenizer()
    lines: list[str] = []
    for pattern, share in (("rules*.jsonl", 0.92), ("taught.jsonl", 0.08)):
        pool = [ln for p in sorted(CORPUS.glob(pattern)) for ln in p.open()]
        lines += r.sample(pool, min(round(count * share), len(pool)))
    texts = []
    for line in lines:
        c = json.loads(line)
        k = r.randrange(0, len(c["turns"]), 2)
        open_thought = "<think>\n" if c.get("thought") and k == len(c["turns"]) - 2 else ""
        texts.append(chat_text(c["turns"][: k + 1], c.get("system")) + "<|im_start|>assistant\n" + open_thought)
    ids = [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)]
    return sorted((i for i in ids if len(i) <= 150), key=len)


def work(rank: int, path: Path, prompts: list[list[int]], rows: int, new: int, device: str) -> None:
    if device == "cuda":
        torch.cuda.set_device(rank)
    torch.manual_seed(rank)
    torch.set_float32_matmul_precision("high")
    start = time.time()
    with torch.no_grad():
        pair = load_pair(path, f"cuda:{rank}" if device == "cuda" else device)
        decoder = Decoder(pair, rows, 264, torch.bfloat16 if device == "cuda" else torch.float32)
        docs, lengths, said = [], [], []
        # Lengths in order, so that a batch wastes little; temperatures alternate.
        for at in range(0, len(prompts), rows):
            batch = prompts[at : at + rows]
            warm = [0.8 if i % 2 else 0.0 for i in range(len(batch))]
            for ids, reply in zip(batch, decoder.run(batch, warm, new), strict=True):
                docs.append(np.array(ids + reply, np.uint16))
                lengths.append(len(ids) + len(reply))
                said.append(np.arange(lengths[-1]) >= len(ids))
            print(f"[{rank}] {at + len(batch)} of {len(prompts)}, {time.time() - start:.0f} s", flush=True)
    np.save(CORPUS / f"own{rank}.npy", pack(np.concatenate(docs), np.concatenate(said), np.array(lengths), rank))
    tok = load_tokenizer()
    for d in random.Random(1).sample(docs, 12):
        print(f"[{rank}]", repr(tok.decode(d.tolist(), skip_special_tokens=False)), flush=True)


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--checkpoint", type=Path, default=WORK / "ckpt" / "last.pt")
    p.add_argument("--prompts", type=int, default=60_000)
    p.add_argument("--rows", type=int, default=4096)
    p.add_argument("--new", type=int, default=110)
    a = p.parse_args()
    gpus = torch.cuda.device_count()
    prompts = contexts(a.prompts, 5)
    if gpus:
        procs = [
            mp.get_context("spawn").Process(
                target=work, args=(r, a.checkpoint, prompts[r::gpus], a.rows, a.new, "cuda")
            )
            for r in range(gpus)
        ]
        for q in procs:
            q.start()
        for q in procs:
            q.join()
        assert all(q.exitcode == 0 for q in procs)
    else:
        work(0, a.checkpoint, prompts, a.rows, a.new, "cpu")
    rows = np.concatenate([np.load(f) for f in sorted(CORPUS.glob("own[0-9].npy"))])
    np.save(CORPUS / "own.npy", rows)
    print(f"own: {len(rows):,} rows", flush=True)


if __name__ == "__main__":
    main()
