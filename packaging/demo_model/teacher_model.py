"""The teacher: SmolLM2-135M-Instruct, read from its GGUF, run in plain PyTorch with a static cache and CUDA graphs.

    python -m demo_model.teacher_model pack     (in packaging/: GGUF -> parts of 12 MB each that travel to the GPU)

Plain `generate` of transformers gave 32,000 tokens/s on one H200. Decoding 2,048 rows in one captured graph is bound by the
memory that holds the cache.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from safetensors.torch import load_file
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor

from demo_model.paths import TEACHER

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, VOCAB = 30, 576, 9, 3, 64, 49152
THETA, EPS = 100_000.0, 1e-5
IM_START, IM_END = 1, 2


def pack() -> None:
    from gguf import GGUFReader  # only here: the GPU machine has no gguf

    reader = GGUFReader(next(TEACHER.glob("*.gguf")))
    tensors = {t.name: t for t in reader.tensors}
    parts: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, t in tensors.items():
        raw = np.array(t.data)
        # Raw blocks, with the kind in the name: Q8_0 and Q4_1 are unpacked on the GPU.
        key = f"{name}|{t.tensor_type.name}|{'x'.join(str(int(n)) for n in reversed(t.shape))}"
        if size + raw.nbytes > 12_000_000:
            parts.append({})
            size = 0
        parts[-1][key] = raw if raw.dtype == np.float32 else raw.view(np.uint8)
        size += raw.nbytes
    for i, part in enumerate(parts):
        save_file(part, TEACHER / f"part{i}.safetensors")
    fields = reader.fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    tok = Tokenizer(BPE({t: i for i, t in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, special=True) for t, k in zip(tokens, kinds, strict=True) if k == 3])
    tok.save(str(TEACHER / "tokenizer.json"))
    print([f"{p.name} {p.stat().st_size:,}" for p in sorted(TEACHER.glob("part*"))])


def _unpack(raw: Tensor, kind: str, shape: list[int]) -> Tensor:
    if kind == "F32":
        return raw.reshape(shape).float()
    if kind == "Q8_0":  # blocks of 32: float16 scale, 32 int8
        blocks = raw.reshape(-1, 34)
        d = blocks[:, :2].contiguous().view(torch.float16).float()
        return (blocks[:, 2:].contiguous().view(torch.int8).float() * d).reshape(shape)
    if kind == "Q4_1":  # blocks of 32: float16 scale and minimum, 16 bytes: low nibbles are values 0..15, high 16..31
        blocks = raw.reshape(-1, 20)
        d = blocks[:, :2].contiguous().view(torch.float16).float()
        m = blocks[:, 2:4].contiguous().view(torch.float16).float()
        q = blocks[:, 4:]
        return (torch.cat([q & 15, q >> 4], 1).float() * d + m).reshape(shape)
    raise ValueError(kind)


class Teacher:
    def __init__(self, folder: Path, device: str, dtype: torch.dtype = torch.bfloat16) -> None:
        self.device, self.dtype = device, dtype
        w: dict[str, Tensor] = {}
        for path in sorted(folder.glob("part*.safetensors")):
            for key, raw in load_file(str(path)).items():
                name, kind, shape = key.split("|")
                w[name] = _unpack(raw.to(device), kind, [int(n) for n in shape.split("x")]).to(dtype)
        self.embed, self.out_norm = w["token_embd.weight"], w["output_norm.weight"]
        self.layers = []
        for i in range(LAYERS):
            p = f"blk.{i}."
            self.layers.append(
                (
                    w[p + "attn_norm.weight"],
                    torch.cat([w[p + f"attn_{n}.weight"] for n in "qkv"]),
                    w[p + "attn_output.weight"],
                    w[p + "ffn_norm.weight"],
                    torch.cat([w[p + "ffn_gate.weight"], w[p + "ffn_up.weight"]]),
                    w[p + "ffn_down.weight"],
                )
            )
        self.inv = THETA ** (-torch.arange(0, HEAD_DIM, 2, device=device).float() / HEAD_DIM)

    def _rope(self, x: Tensor, position: Tensor) -> Tensor:
        """GGUF keeps Q and K rows in the order of interleaved pairs: x [B, H, T, d], position [B, T]."""
        angle = position.float()[:, None, :, None] * self.inv
        cos, sin = angle.cos(), angle.sin()
        a, b = x[..., 0::2].float(), x[..., 1::2].float()
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).to(x.dtype)

    def _block(self, layer: tuple[Tensor, ...], x: Tensor, position: Tensor, attend) -> Tensor:
        norm1, wqkv, wo, norm2, wgu, wd = layer
        b, t, _ = x.shape
        qkv = (
            F.linear(F.rms_norm(x, (HIDDEN,), norm1, EPS), wqkv)
            .view(b, t, HEADS + 2 * KV_HEADS, HEAD_DIM)
            .transpose(1, 2)
        )
        q, k, v = qkv[:, :HEADS], qkv[:, HEADS : HEADS + KV_HEADS], qkv[:, HEADS + KV_HEADS :]
        out = attend(self._rope(q, position), self._rope(k, position), v)
        x = x + F.linear(out.transpose(1, 2).reshape(b, t, HIDDEN), wo)
        gate, up = F.linear(F.rms_norm(x, (HIDDEN,), norm2, EPS), wgu).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, wd)

    def logits(self, x: Tensor) -> Tensor:
        return F.linear(F.rms_norm(x, (HIDDEN,), self.out_norm, EPS), self.embed)


class Generator:
    """Generates for up to `rows` prompts at once. Prompts are padded on the left, so all rows write the same cache column."""

    def __init__(self, teacher: Teacher, rows: int, columns: int, temperature: float, min_p: float) -> None:
        self.t, self.rows, self.columns = teacher, rows, columns
        self.temperature, self.min_p = temperature, min_p
        dev, dt = teacher.device, teacher.dtype
        self.k = torch.zeros(LAYERS, rows, KV_HEADS, columns, HEAD_DIM, device=dev, dtype=dt)
        self.v = torch.zeros_like(self.k)
        self.token = torch.zeros(rows, dtype=torch.long, device=dev)
        self.pad = torch.zeros(rows, dtype=torch.long, device=dev)
        self.column = torch.zeros(1, dtype=torch.long, device=dev)
        self.step_no = torch.zeros(1, dtype=torch.long, device=dev)
        self.done = torch.zeros(rows, dtype=torch.bool, device=dev)
        self.written = torch.zeros(columns, rows, dtype=torch.long, device=dev)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def _sample(self, logits: Tensor) -> Tensor:
        x = logits.float() / self.temperature
        x = x.masked_fill(x < x.amax(-1, keepdim=True) + float(np.log(self.min_p)), -torch.inf)
        noise = torch.empty_like(x).exponential_()
        return (x - noise.log()).argmax(-1)

    def _emit(self, logits: Tensor) -> None:
        token = self._sample(logits)
        self.token.copy_(torch.where(self.done, IM_END, token))
        self.done.logical_or_(self.token == IM_END)
        self.written.index_copy_(0, self.step_no, self.token[None])
        self.step_no += 1

    def _prefill(self, ids: Tensor) -> None:
        width = ids.shape[1]
        column = torch.arange(width, device=ids.device)
        position = (column[None] - self.pad[:, None]).clamp_min(0)
        seen = (column[None, None, :] >= self.pad[:, None, None]) & (column[None, :, None] >= column[None, None, :])
        # A padded row may look at itself, so that its softmax is defined.
        seen = (seen | torch.eye(width, dtype=torch.bool, device=ids.device))[:, None]
        x = F.embedding(ids, self.t.embed)
        for i, layer in enumerate(self.t.layers):

            def attend(q: Tensor, k: Tensor, v: Tensor, i: int = i) -> Tensor:
                self.k[i, :, :, :width], self.v[i, :, :, :width] = k, v
                k, v = (y.repeat_interleave(HEADS // KV_HEADS, 1) for y in (k, v))
                return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

            x = self.t._block(layer, x, position, attend)
        self._emit(self.t.logits(x[:, -1]))

    def _step(self, span: int) -> None:
        position = (self.column - self.pad)[:, None]
        column = torch.arange(span, device=self.pad.device)
        hidden = (column[None] < self.pad[:, None]) | (column[None] > self.column)
        hidden = hidden[:, None, None]
        x = F.embedding(self.token[:, None], self.t.embed)
        for i, layer in enumerate(self.t.layers):

            def attend(q: Tensor, k: Tensor, v: Tensor, i: int = i) -> Tensor:
                self.k[i].index_copy_(2, self.column, k)
                self.v[i].index_copy_(2, self.column, v)
                grouped = q.reshape(q.shape[0], KV_HEADS, HEADS // KV_HEADS, HEAD_DIM)
                score = (grouped @ self.k[i, :, :, :span].transpose(-1, -2)).float() * HEAD_DIM**-0.5
                p = score.masked_fill(hidden, -torch.inf).softmax(-1).to(q.dtype)
                return (p @ self.v[i, :, :, :span]).reshape(q.shape[0], HEADS, 1, HEAD_DIM)

            x = self.t._block(layer, x, position, attend)
        self._emit(self.t.logits(x[:, -1]))
        self.column += 1

    def _run_step(self, column: int) -> None:
        span = min(self.columns, (column // 32 + 1) * 32)
        if not self.pad.is_cuda:
            self._step(span)
            return
        if span not in self.graphs:
            saved = [x.clone() for x in (self.token, self.column, self.step_no, self.done, self.written)]
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._step(span)  # warm-up: libraries allocate here, not in the capture
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._step(span)
            for x, s in zip((self.token, self.column, self.step_no, self.done, self.written), saved, strict=True):
                x.copy_(s)
            self.graphs[span] = graph
        self.graphs[span].replay()

    @torch.inference_mode()
    def __call__(self, prompts: list[list[int]], max_new: int) -> list[list[int]]:
        count, width = len(prompts), max(len(p) for p in prompts)
        width = (width + 7) // 8 * 8
        assert count <= self.rows
        assert width + max_new <= self.columns, (width, max_new)
        ids = np.zeros((self.rows, width), np.int64)
        pad = np.full(self.rows, width - 1, np.int64)
        for i, p in enumerate(prompts):
            ids[i, width - len(p) :] = p
            pad[i] = width - len(p)
        self.pad.copy_(torch.from_numpy(pad))
        self.done.zero_()
        self.done[count:] = True
        self.step_no.zero_()
        self.written.fill_(IM_END)
        self._prefill(torch.from_numpy(ids).to(self.pad.device))
        self.column.fill_(width)
        for step in range(max_new - 1):
            # The last few rows of a batch are not worth a whole step: they are cut and fall to the filter.
            if step % 8 == 7 and int((~self.done).sum()) <= self.rows // 50:
                break
            self._run_step(width + step)
        out = self.written[: int(self.step_no)].T.cpu().numpy()
        result = []
        for row in out[:count]:
            end = np.flatnonzero(row == IM_END)
            result.append(row[: end[0]].tolist() if len(end) else row.tolist())
        return result


def chat_text(system: str, turns: list[str], prefix: str = "") -> str:
    parts = [f"<|im_start|>system\n{system}<|im_end|>\n"]
    for i, turn in enumerate(turns):
        parts.append(f"<|im_start|>{'assistant' if i % 2 else 'user'}\n{turn}<|im_end|>\n")
    return "".join(parts) + "<|im_start|>assistant\n" + prefix


if __name__ == "__main__":
    if sys.argv[1:] == ["pack"]:
        pack()
    else:  # try it on the CPU:  ... teacher_model SYSTEM PROMPT [PREFIX]
        torch.manual_seed(1)
        tokenizer = Tokenizer.from_file(str(TEACHER / "tokenizer.json"))
        lines = json.loads(sys.stdin.read())
        gen = Generator(Teacher(TEACHER, "cpu", torch.float32), len(lines), 512, 0.7, 0.1)
        got = gen([tokenizer.encode(chat_text(*ln)).ids for ln in lines], 90)
        for ln, ids_out in zip(lines, got, strict=True):
            print("##", ln[1:], "->", (ln[2] if len(ln) > 2 else "") + tokenizer.decode(ids_out), "\n")
