"""The student in PyTorch: a small Qwen3.5-shaped hybrid trunk and its MTP head, written for fast training on one or two GPUs.

Parameter names are those of the HF layout (`model.language_model.*` less its prefix, `mtp.*`), RMSNorm weights are kept as w - 1
as that layout does, so a state dict is the export. Shapes: B rows, T tokens a row, D hidden.

Rows hold several packed documents. `seg` [B, T] numbers them and `pos` [B, T] counts inside them; attention, convolution and
recurrence all stop at a document's edge, so every document is computed exactly as if it stood alone, which is how it is served.
"""

import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CHUNK = 64
# log-decay written at a document's first token: e**-60 is nothing beside a float32 state, and sums of it stay finite.
RESET = -60.0


@dataclass(frozen=True)
class Shape:
    vocab_size: int = 8192
    hidden_size: int = 384
    num_hidden_layers: int = 8
    intermediate_size: int = 1152
    num_attention_heads: int = 8
    num_key_value_heads: int = 2
    head_dim: int = 64
    linear_num_key_heads: int = 4
    linear_num_value_heads: int = 8
    linear_key_head_dim: int = 64
    linear_value_head_dim: int = 64
    linear_conv_kernel_dim: int = 4
    full_attention_interval: int = 4
    rope_theta: float = 100_000.0
    partial_rotary_factor: float = 0.25
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 4096

    def text_config(self) -> dict:
        """The `text_config` block of an HF config.json."""
        c = asdict(self)
        theta, factor = c.pop("rope_theta"), c.pop("partial_rotary_factor")
        return c | {
            "attention_bias": False,
            "attention_dropout": 0.0,
            "dtype": "bfloat16",
            "eos_token_id": 2,
            "pad_token_id": 0,
            "hidden_act": "silu",
            "initializer_range": 0.02,
            "layer_types": [
                "full_attention" if (i + 1) % self.full_attention_interval == 0 else "linear_attention"
                for i in range(self.num_hidden_layers)
            ],
            "mlp_only_layers": [],
            "model_type": "qwen3_5_text",
            "mtp_num_hidden_layers": 1,
            "mtp_use_dedicated_embeddings": False,
            "rope_parameters": {
                "mrope_interleaved": True,
                # Rotary half-dimension is 64 * 0.25 / 2 = 8: the sections of the three position axes sum to it.
                "mrope_section": [3, 3, 2],
                "partial_rotary_factor": factor,
                "rope_theta": theta,
                "rope_type": "default",
            },
            "tie_word_embeddings": True,
            "use_cache": True,
        }


def fake_quantize(w: Tensor, group: int = 64, bits: int = 4) -> Tensor:
    """What MLX's affine quantization makes of `w` after a round trip (scale and bias then kept in bfloat16).

    Follows the definition in MLX's documentation and CPU kernel: the end of the range that is larger in magnitude is met
    exactly, and zero is made representable by rounding the scale to it.
    """
    levels = 2**bits - 1
    x = w.float().reshape(-1, group)
    low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    low_is_edge = low.abs() > high.abs()
    scale = ((high - low) / levels).clamp_min(1e-7)
    scale = torch.where(low_is_edge, scale, -scale)
    edge = torch.where(low_is_edge, low, high)
    zero = torch.round(edge / scale)
    scale = torch.where(zero != 0, edge / torch.where(zero != 0, zero, 1.0), scale)
    bias = torch.where(zero != 0, edge, 0.0)
    q = torch.round((x - bias) / scale).clamp(0, levels)
    return (q * scale.bfloat16().float() + bias.bfloat16().float()).reshape(w.shape)


class Linear(nn.Linear):
    """Linear without bias that can look at its weight through 4-bit glasses (`qat` 1.0) with a straight-through gradient."""

    def __init__(self, n_in: int, n_out: int, qat: Tensor) -> None:
        super().__init__(n_in, n_out, bias=False)
        self.qat = [qat]  # in a list: shared state, no buffer of each layer

    def effective(self) -> Tensor:
        return effective(self.weight, self.qat[0])

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.effective().to(x.dtype))


def effective(w: Tensor, qat: Tensor) -> Tensor:
    return w + ((fake_quantize(w) - w) * qat).detach()


def rms(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    y = x.float()
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y * (1.0 + weight)).to(x.dtype)


class Norm(nn.Module):
    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms(x, self.weight, self.eps)


class GatedNorm(nn.Module):
    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps) * self.weight
        return (y * F.silu(gate.float())).to(gate.dtype)


def _inverse_unit_lower(a: Tensor) -> Tensor:
    """(I + a)^-1 for strictly lower triangular `a` [..., C, C], C a power of two >= 8, by matrix products only.

    8x8 diagonal blocks by the finite Neumann product, then blocks are merged two by two. The plain Neumann product over the
    whole chunk would lose all digits to cancellation when keys repeat.
    """
    c = a.shape[-1]
    n = c // 8
    eye = torch.eye(8, device=a.device, dtype=a.dtype)
    blocks = a.reshape(*a.shape[:-2], n, 8, n, 8)
    m = -torch.stack([blocks[..., i, :, i, :] for i in range(n)], dim=-3)  # [..., n, 8, 8]
    m2 = m @ m
    m4 = m2 @ m2
    inv = (eye + m) @ (eye + m2)
    inv = inv + inv @ m4
    size = 8
    while size < c:
        pairs = c // (2 * size)
        grid = a.reshape(*a.shape[:-2], pairs, 2 * size, pairs, 2 * size)
        low = torch.stack([grid[..., i, size:, i, :size] for i in range(pairs)], dim=-3)
        top, bottom = inv[..., 0::2, :, :], inv[..., 1::2, :, :]
        corner = -(bottom @ low @ top)
        upper = torch.cat([top, torch.zeros_like(top)], -1)
        lower = torch.cat([corner, bottom], -1)
        inv = torch.cat([upper, lower], -2)
        size *= 2
    return inv.squeeze(-3)


class InverseUnitLower(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Tensor) -> Tensor:
        inv = _inverse_unit_lower(a)
        ctx.save_for_backward(inv)
        return inv

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (inv,) = ctx.saved_tensors
        t = inv.transpose(-1, -2)
        return -(t @ grad @ t)


def gated_delta(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, chunk: int = CHUNK) -> Tensor:
    """Gated delta rule over [B, T, H, d] (g, beta: [B, T, H]) from a zero state, in chunks. q, k normalized by the caller.

    The recurrence is S <- e^g S + k (beta (v - (e^g S)^T k))^T, o = S^T q. Within a chunk the updates are the solution of a unit
    lower triangular system (the WY form of the delta rule, arXiv 2406.06484, with the decay of arXiv 2412.06464).
    """
    b, t, h, dk = q.shape
    n = t // chunk
    q, k, v = (x.reshape(b, n, chunk, h, -1).permute(0, 3, 1, 2, 4).float() for x in (q, k, v))
    g, beta = (x.reshape(b, n, chunk, h).permute(0, 3, 1, 2).float() for x in (g, beta))
    cum = g.cumsum(-1)
    causal = torch.ones(chunk, chunk, dtype=torch.bool, device=q.device).tril()
    decay = (cum.unsqueeze(-1) - cum.unsqueeze(-2)).masked_fill(~causal, -torch.inf).exp()
    kb = k * beta.unsqueeze(-1)
    system = ((kb @ k.transpose(-1, -2)) * decay).tril(-1)
    inv = InverseUnitLower.apply(system)
    from_start = cum.exp().unsqueeze(-1)
    u = inv @ (v * beta.unsqueeze(-1))
    w = inv @ (kb * from_start)
    inside = (q @ k.transpose(-1, -2)) * decay
    q_in = q * from_start
    k_out = (k * (cum[..., -1:] - cum).exp().unsqueeze(-1)).transpose(-1, -2)
    carry = cum[..., -1].exp()[..., None, None]
    state = q.new_zeros(b, h, dk, v.shape[-1])
    out = []
    for i in range(n):
        fresh = u[:, :, i] - w[:, :, i] @ state
        out.append(q_in[:, :, i] @ state + inside[:, :, i] @ fresh)
        state = state * carry[:, :, i] + k_out[:, :, i] @ fresh
    return torch.stack(out, 2).permute(0, 2, 3, 1, 4).reshape(b, t, h, -1)


def l2(x: Tensor) -> Tensor:
    x = x.float()
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


class DeltaNet(nn.Module):
    def __init__(self, s: Shape, qat: Tensor) -> None:
        super().__init__()
        self.s = s
        self.key_dim = s.linear_num_key_heads * s.linear_key_head_dim
        self.value_dim = s.linear_num_value_heads * s.linear_value_head_dim
        self.conv_dim = 2 * self.key_dim + self.value_dim
        self.conv1d = nn.Conv1d(
            self.conv_dim, self.conv_dim, s.linear_conv_kernel_dim, groups=self.conv_dim, bias=False
        )
        self.dt_bias = nn.Parameter(torch.ones(s.linear_num_value_heads))
        self.A_log = nn.Parameter(torch.empty(s.linear_num_value_heads).uniform_(0.05, 8).log())
        self.norm = GatedNorm(s.linear_value_head_dim, s.rms_norm_eps)
        self.in_proj_qkv = Linear(s.hidden_size, self.conv_dim, qat)
        self.in_proj_z = Linear(s.hidden_size, self.value_dim, qat)
        self.in_proj_b = Linear(s.hidden_size, s.linear_num_value_heads, qat)
        self.in_proj_a = Linear(s.hidden_size, s.linear_num_value_heads, qat)
        self.out_proj = Linear(self.value_dim, s.hidden_size, qat)
        # Mamba's start of the time step: softplus(dt_bias) between 1e-3 and 0.1, so memories begin long.
        dt = torch.empty(s.linear_num_value_heads).uniform_(math.log(1e-3), math.log(0.1)).exp()
        with torch.no_grad():
            self.dt_bias.copy_(dt + torch.log(-torch.expm1(-dt)))

    def split(self, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """After convolution: q, k repeated to the value heads and normalized (q scaled), v. [..., H, d]."""
        s = self.s
        q, k, v = mixed.split([self.key_dim, self.key_dim, self.value_dim], -1)
        rep = s.linear_num_value_heads // s.linear_num_key_heads
        q = l2(q.unflatten(-1, (s.linear_num_key_heads, -1))) * s.linear_key_head_dim**-0.5
        k = l2(k.unflatten(-1, (s.linear_num_key_heads, -1)))
        v = v.unflatten(-1, (s.linear_num_value_heads, -1))
        return q.repeat_interleave(rep, -2), k.repeat_interleave(rep, -2), v

    def gates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        beta = self.in_proj_b(x).float().sigmoid()
        g = -self.A_log.exp() * F.softplus(self.in_proj_a(x).float() + self.dt_bias)
        return g, beta

    def forward(self, x: Tensor, pos: Tensor) -> Tensor:
        qkv = self.in_proj_qkv(x)
        taps = self.s.linear_conv_kernel_dim
        w = self.conv1d.weight[:, 0].to(x.dtype)
        mixed = qkv * w[:, -1]
        for back in range(1, taps):
            earlier = F.pad(qkv, (0, 0, back, 0))[:, : qkv.shape[1]]
            mixed = mixed + torch.where((pos >= back).unsqueeze(-1), earlier, 0) * w[:, taps - 1 - back]
        q, k, v = self.split(F.silu(mixed))
        g, beta = self.gates(x)
        g = torch.where((pos == 0).unsqueeze(-1), g + RESET, g)
        o = gated_delta(q, k, v, g, beta)
        z = self.in_proj_z(x).unflatten(-1, (self.s.linear_num_value_heads, -1))
        return self.out_proj(self.norm(o.to(x.dtype), z).flatten(-2))


def rope(x: Tensor, position: Tensor, s: Shape) -> Tensor:
    """Rotate the first quarter of [B, T, H, d] by position [B, T] or [T] (halves layout, as HF)."""
    dim = int(s.head_dim * s.partial_rotary_factor)
    inv = s.rope_theta ** (-torch.arange(0, dim, 2, device=x.device, dtype=torch.float32) / dim)
    angle = position.float()[..., None] * inv
    cos, sin = angle.cos()[..., None, :], angle.sin()[..., None, :]
    a, b, rest = x[..., : dim // 2].float(), x[..., dim // 2 : dim].float(), x[..., dim:]
    return torch.cat([(a * cos - b * sin).to(x.dtype), (b * cos + a * sin).to(x.dtype), rest], -1)


class Attention(nn.Module):
    def __init__(self, s: Shape, qat: Tensor) -> None:
        super().__init__()
        self.s = s
        self.q_proj = Linear(s.hidden_size, 2 * s.num_attention_heads * s.head_dim, qat)
        self.k_proj = Linear(s.hidden_size, s.num_key_value_heads * s.head_dim, qat)
        self.v_proj = Linear(s.hidden_size, s.num_key_value_heads * s.head_dim, qat)
        self.o_proj = Linear(s.num_attention_heads * s.head_dim, s.hidden_size, qat)
        self.q_norm = Norm(s.head_dim, s.rms_norm_eps)
        self.k_norm = Norm(s.head_dim, s.rms_norm_eps)

    def project(self, x: Tensor, position: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """q [B, T, Hq, d], k and v [B, T, Hkv, d], gate [B, T, Hq * d]."""
        s = self.s
        q, gate = self.q_proj(x).unflatten(-1, (s.num_attention_heads, 2 * s.head_dim)).chunk(2, -1)
        k = self.k_proj(x).unflatten(-1, (s.num_key_value_heads, s.head_dim))
        v = self.v_proj(x).unflatten(-1, (s.num_key_value_heads, s.head_dim))
        return rope(self.q_norm(q), position, s), rope(self.k_norm(k), position, s), v, gate.flatten(-2)

    def finish(self, out: Tensor, gate: Tensor) -> Tensor:
        return self.o_proj(out * torch.sigmoid(gate))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v, gate = self.project(x, torch.arange(x.shape[1], device=x.device))
        rep = self.s.num_attention_heads // self.s.num_key_value_heads
        k, v = (y.repeat_interleave(rep, 2).transpose(1, 2) for y in (k, v))
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=mask)
        return self.finish(out.transpose(1, 2).flatten(-2), gate)


class MLP(nn.Module):
    def __init__(self, s: Shape, qat: Tensor) -> None:
        super().__init__()
        self.gate_proj = Linear(s.hidden_size, s.intermediate_size, qat)
        self.up_proj = Linear(s.hidden_size, s.intermediate_size, qat)
        self.down_proj = Linear(s.intermediate_size, s.hidden_size, qat)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s: Shape, qat: Tensor, full: bool) -> None:
        super().__init__()
        self.full = full
        if full:
            self.self_attn = Attention(s, qat)
        else:
            self.linear_attn = DeltaNet(s, qat)
        self.mlp = MLP(s, qat)
        self.input_layernorm = Norm(s.hidden_size, s.rms_norm_eps)
        self.post_attention_layernorm = Norm(s.hidden_size, s.rms_norm_eps)

    def forward(self, x: Tensor, pos: Tensor, mask: Tensor) -> Tensor:
        y = self.input_layernorm(x)
        x = x + (self.self_attn(y, mask) if self.full else self.linear_attn(y, pos))
        return x + self.mlp(self.post_attention_layernorm(x))


class Trunk(nn.Module):
    def __init__(self, s: Shape, qat: Tensor) -> None:
        super().__init__()
        self.s = s
        self.qat = [qat]
        self.embed_tokens = nn.Embedding(s.vocab_size, s.hidden_size)
        self.layers = nn.ModuleList(
            Layer(s, qat, (i + 1) % s.full_attention_interval == 0) for i in range(s.num_hidden_layers)
        )
        self.norm = Norm(s.hidden_size, s.rms_norm_eps)

    def table(self) -> Tensor:
        """The tied embedding as the quantized model will see it."""
        return effective(self.embed_tokens.weight, self.qat[0])

    def forward(self, ids: Tensor, pos: Tensor, mask: Tensor, table: Tensor) -> Tensor:
        x = F.embedding(ids, table).to(table.dtype)
        for layer in self.layers:
            x = layer(x, pos, mask)
        return self.norm(x)


class Head(nn.Module):
    """The MTP head: fc over [norm(embedding of the next token) | norm(hidden)], one gated full-attention layer, a norm."""

    def __init__(self, s: Shape, qat: Tensor) -> None:
        super().__init__()
        self.s = s
        self.pre_fc_norm_embedding = Norm(s.hidden_size, s.rms_norm_eps)
        self.pre_fc_norm_hidden = Norm(s.hidden_size, s.rms_norm_eps)
        self.fc = Linear(2 * s.hidden_size, s.hidden_size, qat)
        self.layers = nn.ModuleList([Layer(s, qat, full=True)])
        self.norm = Norm(s.hidden_size, s.rms_norm_eps)

    def forward(self, embedded: list[Tensor], hidden: Tensor, mask: Tensor) -> list[Tensor]:
        """Outputs of as many chained steps as `embedded` has entries, each [B, T, D].

        Row i of step s is the entry i + s of the head's cache: it takes embedded[s][i] (the token i + s + 1) and, at step 0, the
        trunk's hidden i, later the head's own output of the step before. It sees the true entries up to i, and its own line of
        made-up entries, exactly what a draft sees at inference.
        """
        layer, s = self.layers[0], self.s
        attn = layer.self_attn
        rep = s.num_attention_heads // s.num_key_value_heads
        where = torch.arange(hidden.shape[1], device=hidden.device)
        outputs: list[Tensor] = []
        own: list[tuple[Tensor, Tensor]] = []
        keys = values = None
        for step, e in enumerate(embedded):
            x = self.fc(torch.cat([self.pre_fc_norm_embedding(e), self.pre_fc_norm_hidden(hidden)], -1))
            q, k, v, gate = attn.project(layer.input_layernorm(x), where + step)
            k, v = k.repeat_interleave(rep, 2), v.repeat_interleave(rep, 2)
            q = q.transpose(1, 2)
            if step == 0:
                keys, values = k.transpose(1, 2), v.transpose(1, 2)
                out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            else:
                own.append((k.transpose(1, 2), v.transpose(1, 2)))
                scale = s.head_dim**-0.5
                past = (q @ keys.transpose(-1, -2)).float() * scale
                past = past.masked_fill(~mask, -torch.inf)
                mine = [(q * kk).float().sum(-1, keepdim=True) * scale for kk, _ in own]
                p = torch.cat([past, *mine], -1).softmax(-1).to(q.dtype)
                out = p[..., : past.shape[-1]] @ values
                for i, (_, vv) in enumerate(own):
                    at = past.shape[-1] + i
                    out = out + p[..., at : at + 1] * vv
            x = x + attn.finish(out.transpose(1, 2).flatten(-2), gate)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
            hidden = self.norm(x)
            outputs.append(hidden)
        return outputs


class Pair(nn.Module):
    def __init__(self, s: Shape | None = None) -> None:
        super().__init__()
        self.s = s or Shape()
        # 0.0: weights as they are; 1.0: weights as 4-bit quantization leaves them. Not in the state dict.
        self.qat = torch.zeros((), requires_grad=False)
        self.head_qat = torch.zeros((), requires_grad=False)
        self.model = Trunk(self.s, self.qat)
        self.mtp = Head(self.s, self.head_qat)
        self.apply(self._init)
        for name, p in self.named_parameters():
            # Residual branches start small, so that depth does not raise the variance of the stream.
            if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * self.s.num_hidden_layers))

    @staticmethod
    def _init(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def to_device(self, device: str) -> "Pair":
        """As .to(), and moves the two shared switches, which are referred to by every layer."""
        self.to(device)
        self.qat, self.head_qat = self.qat.to(device), self.head_qat.to(device)
        self.model.qat[0] = self.qat
        for m in self.model.modules():
            if isinstance(m, Linear):
                m.qat[0] = self.qat
        for m in self.mtp.modules():
            if isinstance(m, Linear):
                m.qat[0] = self.head_qat
        return self


def document_mask(seg: Tensor) -> Tensor:
    """[B, 1, T, T] bool: may row i look at column j?"""
    t = seg.shape[1]
    causal = torch.ones(t, t, dtype=torch.bool, device=seg.device).tril()
    return ((seg[:, :, None] == seg[:, None, :]) & causal)[:, None]


def shift(x: Tensor, by: int) -> Tensor:
    """x[:, i + by] at row i, zeros past the end."""
    return F.pad(x[:, by:], (0, 0) * (x.dim() - 2) + (0, by))
