"""Train the head alone on the finished, frozen, 4-bit trunk, on the text that this trunk writes.

    torchrun --nproc-per-node 2 -m demo_model.head --seconds 90       (GPU machine) -> .work/ckpt/final.pt and parts to take home

Three chained steps, each seeing what a draft sees (`Head.forward`); soft targets from the trunk plus its first choice.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from demo_model import train
from demo_model.generate import load_pair
from demo_model.model import shift
from demo_model.paths import CORPUS, WORK
from demo_model.train import Batch, Optimizer, Rows

STEPS = 3
STEP_WEIGHTS = (1.0, 0.8, 0.4)


def match(h: Tensor, hidden: Tensor, table: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of weighted losses, and where head and trunk choose the same token. `hidden` is the trunk's at the drafted place."""
    with torch.no_grad():
        wanted = F.linear(hidden, table).flatten(0, 1).float()
        soft, best = wanted.softmax(-1), wanted.argmax(-1)
    logits = F.linear(h, table).flatten(0, 1).float()
    logs = logits.log_softmax(-1)
    soft_loss = -(soft * logs).sum(-1)
    hard_loss = -logs.gather(1, best[:, None])[:, 0]
    equal = logits.argmax(-1) == best
    return ((0.5 * soft_loss + 0.5 * hard_loss) * weight.flatten()).sum(), equal.view(weight.shape)


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, required=True)
    p.add_argument("--checkpoint", type=Path, default=WORK / "ckpt" / "last.pt")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--data", type=Path, default=CORPUS / "own.npy")
    p.add_argument("--out", type=Path, default=WORK / "ckpt")
    p.add_argument("--home", type=Path)
    p.add_argument("--eager", action="store_true")
    a = p.parse_args()
    rank, world = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    cuda = torch.cuda.is_available()
    device = f"cuda:{rank}" if cuda else "cpu"
    if cuda:
        torch.cuda.set_device(rank)
    if world > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    torch.set_float32_matmul_precision("high")
    pair = load_pair(a.checkpoint, device)
    pair.mtp.requires_grad_(True)
    named = list(pair.mtp.named_parameters())
    params = [q for _, q in named]
    optimizer = Optimizer(named, a.lr, decay=0.0)
    rows = Rows(a.data, rank, world)
    # The last rows are kept apart to measure on.
    held = np.asarray(rows.rows[-max(1, min(256, len(rows.rows) // 20)) :])
    rows.rows = rows.rows[: -len(held)]
    dtype = torch.bfloat16 if cuda else torch.float32
    loss_of = match
    if cuda and not a.eager:
        train.compile_layers(pair)
        loss_of = torch.compile(match, dynamic=False)
    low = pair.model.table().to(dtype)

    def run(batch: Batch) -> tuple[Tensor, list[Tensor]]:
        with torch.no_grad():
            hidden = pair.model(batch.ids, batch.pos, batch.mask, low)
        ahead = [F.embedding(shift(batch.ids, 1 + s), low) for s in range(STEPS)]
        total, hits = torch.zeros((), device=device), []
        reached = torch.ones_like(batch.ids, dtype=torch.bool)
        for s, h in enumerate(pair.mtp(ahead, hidden, batch.mask)):
            weight = (batch.target(2 + s)[1] == 1.0).float()
            loss, equal = loss_of(h, shift(hidden, 1 + s), low, weight)
            total = total + STEP_WEIGHTS[s] * loss / weight.sum().clamp_min(1.0)
            # A draft counts when it and those before it are what the trunk goes on to say (greedy rows: its first choice).
            reached = reached & equal
            hits.append((reached * weight).sum() / weight.sum().clamp_min(1.0))
        return total, hits

    def report(label: str) -> None:
        with torch.no_grad():
            sums = torch.zeros(STEPS, device=device)
            n = 0
            for at in range(0, len(held) - a.batch + 1, a.batch):
                sums += torch.stack(run(Batch(held[at : at + a.batch], device))[1])
                n += 1
        if n and rank == 0:
            print(label, "held-out hits at steps 1..3:", [round(float(x) / n, 3) for x in sums], flush=True)

    began, local, progress = None, 0, 0.0
    clock = torch.zeros(1, device=device)
    while True:
        if local % 10 == 0:
            clock.fill_(0.0 if began is None else time.time() - began)
            if world > 1:
                dist.broadcast(clock, 0)
            progress = float(clock) / a.seconds
        if progress >= 1:
            break
        total, hits = run(Batch(rows.take(a.batch), device))
        total.backward()
        train.all_reduce(params, world)
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step(min(1.0, (local + 1) / 50) * max(0.02, 1 - progress))
        for q in params:
            q.grad = None
        local += 1
        if local == 5:
            began = time.time()
        if local % 100 == 0 and rank == 0:
            print(
                f"head step {local} progress {progress:.2f} loss {float(total):.3f} hits {[round(float(x), 3) for x in hits]}",
                flush=True,
            )
    report("end:")
    if rank == 0:
        a.out.mkdir(parents=True, exist_ok=True)
        with torch.no_grad():
            for q in params:
                q.copy_(q.bfloat16().float())
        torch.save({"pair": pair.state_dict()}, a.out / "final.pt")
        if a.home:
            train.save(pair, a.home, "pair", half=True)
        print(f"{local} head steps, {rows.passes:.1f} passes", flush=True)
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
