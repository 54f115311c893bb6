"""Train trunk and head together: next-token loss, and the head's losses for one and two tokens further ahead.

    torchrun --nproc-per-node 2 -m demo_model.train --seconds 300        (on the GPU machine, in packaging/)

The schedule follows the clock, since device time is what is scarce: every rate is a function of progress = seconds used / seconds
given. A run can stop and go on (--resume) with the same --total. Muon (orthogonalized momentum) for the matrices of the layers,
AdamW for embeddings, norms, convolutions and gates. In the last part of the run the weights are seen as 4-bit groups of 64.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor

from demo_model.model import Layer, Pair, Shape, document_mask, shift
from demo_model.pack import ROW, SAY, START, TOKEN_MASK
from demo_model.paths import CORPUS, WORK

OTHER_WEIGHT = 0.1  # loss weight of what users say
STEP_WEIGHTS = (0.3, 0.2)  # of the head's first and second step beside the trunk's own loss


class Rows:
    """Packed rows of one source, drawn without replacement, pass after pass; ranks take different rows."""

    def __init__(self, path: Path, rank: int, world: int) -> None:
        self.rows = np.load(path, mmap_mode="r")[rank::world]
        self.rng = np.random.default_rng(rank)
        self.order: list[int] = []
        self.passes = 0.0

    def take(self, n: int) -> np.ndarray:
        while len(self.order) < n:
            self.order += self.rng.permutation(len(self.rows)).tolist()
        chosen, self.order = self.order[:n], self.order[n:]
        self.passes += n / len(self.rows)
        return np.asarray(self.rows[sorted(chosen)])


class Batch:
    """ids, position in document, document number, attention mask and per-token loss weight, from packed rows."""

    def __init__(self, rows: np.ndarray, device: str) -> None:
        packed = torch.from_numpy(rows.astype(np.int32)).to(device, non_blocking=True)
        self.ids = (packed & TOKEN_MASK).long()
        start = (packed & START) != 0
        start[:, 0] = True
        self.seg = start.int().cumsum(1)
        where = torch.arange(ROW, device=device)
        first = torch.where(start, where, 0).cummax(1).values
        self.pos = where - first
        said = (packed & SAY) != 0
        padding = start & (self.ids == 0)
        self.weight = torch.where(said, 1.0, OTHER_WEIGHT) * ~padding
        self.mask = document_mask(self.seg)

    def target(self, ahead: int) -> tuple[Tensor, Tensor]:
        """The token `ahead` places on and the weight of predicting it: zero across a document's edge."""
        same = shift(self.seg, ahead) == self.seg
        return shift(self.ids, ahead), shift(self.weight, ahead) * same


def cross_entropy(h: Tensor, table: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    logits = F.linear(h, table).flatten(0, 1).float()
    return (F.cross_entropy(logits, target.flatten(), reduction="none") * weight.flatten()).sum()


def losses(pair: Pair, batch: Batch, dtype: torch.dtype) -> tuple[Tensor, list[Tensor]]:
    table = pair.model.table()
    low = table.to(dtype)
    hidden = pair.model(batch.ids, batch.pos, batch.mask, low)
    scale = 1.0 / batch.weight.sum().clamp_min(1.0)
    target, weight = batch.target(1)
    out = [cross_entropy(hidden, low, target, weight) * scale]
    ahead = [F.embedding(shift(batch.ids, 1 + s), low) for s in range(len(STEP_WEIGHTS))]
    for s, h in enumerate(pair.mtp(ahead, hidden, batch.mask)):
        target, weight = batch.target(2 + s)
        out.append(cross_entropy(h, low, target, weight) * scale)
    total = out[0] + sum(w * x for w, x in zip(STEP_WEIGHTS, out[1:], strict=True))
    return total, [x.detach() for x in out]


def orthogonalize(g: Tensor) -> Tensor:
    """Newton-Schulz iteration towards the nearest semi-orthogonal matrix (Jordan et al. 2024, quintic coefficients), batched."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if tall else x).float()


class Optimizer:
    def __init__(self, named: list[tuple[str, torch.nn.Parameter]], lr: float, decay: float = 0.1) -> None:
        matrices, rest = [], []
        for name, p in named:
            (
                matrices
                if p.ndim == 2 and "embed" not in name and "in_proj_a" not in name and "in_proj_b" not in name
                else rest
            ).append(p)
        shapes: dict[torch.Size, list[torch.nn.Parameter]] = {}
        for p in matrices:
            shapes.setdefault(p.shape, []).append(p)
        self.groups = list(shapes.values())
        self.momentum = [torch.zeros(len(ps), *ps[0].shape, device=ps[0].device) for ps in self.groups]
        self.lr, self.decay = lr, decay
        self.adam = torch.optim.AdamW(rest, lr=lr, betas=(0.9, 0.95), weight_decay=0.0, fused=rest[0].is_cuda)

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for group in self.adam.param_groups:
            group["lr"] = self.lr * rate
        self.adam.step()
        for ps, m in zip(self.groups, self.momentum, strict=True):
            g = torch.stack([p.grad for p in ps])
            m.lerp_(g, 0.05)
            update = orthogonalize(g.lerp(m, 0.95))
            # Scaled so that an update's size is that of AdamW's: one rate serves both.
            scale = 0.2 * math.sqrt(max(ps[0].shape)) * self.lr * rate
            for p, u in zip(ps, update.unbind(0), strict=True):
                p.mul_(1 - self.decay * self.lr * rate).sub_(u, alpha=scale)

    def state(self) -> dict:
        return {"adam": self.adam.state_dict(), "momentum": self.momentum}

    def load(self, state: dict) -> None:
        self.adam.load_state_dict(state["adam"])
        for m, s in zip(self.momentum, state["momentum"], strict=True):
            m.copy_(s)


def rate_at(progress: float) -> float:
    """Up at once, flat, and down to nothing over the last half."""
    if progress < 0.5:
        return 1.0
    return max(0.0, 1.0 - (progress - 0.5) / 0.5) * 0.98 + 0.02


def mix_at(progress: float) -> dict[str, float]:
    """Shares of the sources in a batch: some general English first, in the end only what it is to be good at."""
    if progress < 0.3:
        return {"natural": 0.14, "taught": 0.09, "rules": 0.77}
    if progress < 0.6:
        return {"natural": 0.06, "taught": 0.04, "rules": 0.90}
    return {"natural": 0.0, "taught": 0.0, "rules": 1.0}


def compile_layers(pair: Pair) -> None:
    """One compiled graph for each kind of layer, shared by all layers of that kind: compiling takes seconds, not minutes."""
    torch._dynamo.config.cache_size_limit = 64
    Layer.forward = torch.compile(Layer.forward, dynamic=False)
    globals()["cross_entropy"] = torch.compile(cross_entropy, dynamic=False)
    type(pair.mtp).forward = torch.compile(type(pair.mtp).forward, dynamic=False)


def all_reduce(params: list[torch.nn.Parameter], world: int) -> None:
    if world > 1:
        flat = torch.cat([p.grad.flatten() for p in params])
        dist.all_reduce(flat)
        flat /= world
        at = 0
        for p in params:
            p.grad.copy_(flat[at : at + p.numel()].view_as(p))
            at += p.numel()


def save(pair: Pair, folder: Path, name: str, half: bool) -> None:
    """bfloat16 for the trip home (A_log stays float32), float32 to go on from."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v.detach().cpu().contiguous() for k, v in pair.state_dict().items()}
    if not half:
        torch.save(state, folder / f"{name}.pt")
        return
    state = {k: v if k.endswith("A_log") else v.bfloat16() for k, v in state.items()}
    parts: list[dict[str, Tensor]] = [{}]
    size = 0
    for k, v in state.items():
        if size + v.nbytes > 15_000_000:
            parts.append({})
            size = 0
        parts[-1][k] = v
        size += v.nbytes
    for i, part in enumerate(parts):
        save_file(part, folder / f"{name}-{i}.safetensors")


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, required=True, help="for this call")
    p.add_argument("--total", type=float, required=True, help="of the whole schedule")
    p.add_argument("--resume", type=Path)
    p.add_argument("--init", type=Path, help="weights (safetensors) to begin with instead of random ones")
    p.add_argument("--begin", type=float, default=0.0, help="where in the schedule to begin, as a share of it")
    p.add_argument("--batch", type=int, default=128, help="rows of 512 on each GPU")
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--qat-from", type=float, default=0.75)
    p.add_argument("--eager", action="store_true")
    p.add_argument("--data", type=Path, default=CORPUS)
    p.add_argument("--out", type=Path, default=WORK / "ckpt")
    p.add_argument("--home", type=Path, help="where the bfloat16 parts go that travel back")
    p.add_argument("--small", action="store_true", help="a tiny shape, to try the program on a CPU")
    a = p.parse_args()
    rank, world = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    cuda = torch.cuda.is_available()
    device = f"cuda:{rank}" if cuda else "cpu"
    if cuda:
        torch.cuda.set_device(rank)
    if world > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    shape = Shape(hidden_size=128, num_hidden_layers=4, intermediate_size=128) if a.small else Shape()
    pair = Pair(shape).to_device(device)
    named = list(pair.named_parameters())
    optimizer = Optimizer(named, a.lr)
    used, step = a.begin * a.total, 0
    if a.init:
        pair.load_state_dict({k: v.float() for k, v in load_file(a.init, device=device).items()})
    if a.resume:
        state = torch.load(a.resume, map_location=device, weights_only=False)
        pair.load_state_dict(state["pair"])
        optimizer.load(state["optimizer"])
        used, step = state["used"], state["step"]
    sources = {k: Rows(a.data / f"{k}.npy", rank, world) for k in mix_at(0)}
    dtype = torch.bfloat16 if cuda else torch.float32
    if cuda and not a.eager:
        compile_layers(pair)
    params = [q for _, q in named]
    tokens, log_at, start = 0, 0, time.time()
    clock = torch.zeros(1, device=device)
    began = None  # the clock starts after the first steps, which compile
    local = 0
    while True:
        now = 0.0 if began is None else time.time() - began
        clock.fill_(now)
        if world > 1 and local % 10 == 0:
            dist.broadcast(clock, 0)
        if local % 10 == 0:
            now_all = float(clock)
        if now_all >= a.seconds or used + now_all >= a.total:
            break
        progress = (used + now_all) / a.total
        mix = mix_at(progress)
        counts = {k: round(a.batch * share) for k, share in mix.items()}
        counts["rules"] += a.batch - sum(counts.values())
        batch = Batch(np.concatenate([sources[k].take(n) for k, n in counts.items()]), device)
        pair.qat.fill_(1.0 if progress >= a.qat_from else 0.0)
        total, parts = losses(pair, batch, dtype)
        total.backward()
        all_reduce(params, world)
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step(rate_at(progress) * min(1.0, (step + 1) / 100))
        for q in params:
            q.grad = None
        step, local = step + 1, local + 1
        if local == 5:
            if cuda:
                torch.cuda.synchronize()
            began = time.time()
            print(f"[{rank}] first steps took {began - start:.0f} s", flush=True) if rank == 0 else None
            tokens = 0
        tokens += world * a.batch * ROW
        if rank == 0 and began and time.time() - log_at > 10:
            log_at = time.time()
            values = " ".join(f"{float(x):.3f}" for x in parts)
            print(
                f"step {step} progress {progress:.3f} losses {values} {tokens / max(1e-6, time.time() - began):,.0f} tok/s",
                flush=True,
            )
    if rank == 0:
        spent = time.time() - (began or start)
        a.out.mkdir(parents=True, exist_ok=True)
        torch.save(
            {"pair": pair.state_dict(), "optimizer": optimizer.state(), "used": used + spent, "step": step},
            a.out / "last.pt",
        )
        if a.home:
            save(pair, a.home, "pair", half=True)
        print(
            json.dumps(
                {
                    "steps": step,
                    "seconds": round(spent, 1),
                    "tokens": tokens,
                    "passes": {k: round(s.passes, 2) for k, s in sources.items()},
                }
            ),
            flush=True,
        )
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
