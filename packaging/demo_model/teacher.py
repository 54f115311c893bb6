"""Let the teacher answer the jobs on every GPU there is, filter, ask follow-ups, and write the chats.

python -m demo_model.teacher --seconds 120      (on the GPU machine, in packaging/) -> .work/corpus/teacher.jsonl
"""

import argparse
import json
import os
import random
import time
from collections import Counter
from multiprocessing import Pool

import torch
import torch.multiprocessing as mp
from tokenizers import Tokenizer

from demo_model.clean import acceptable, cut, is_held_out
from demo_model.paths import CORPUS, TEACHER
from demo_model.teacher_model import Generator, Teacher, chat_text

FOLLOW_UPS = [
    "Tell me more.", "Can you give me an example?", "Why is that?", "Why?", "How does that work?", "Can you explain that?", "What else should I know?",
    "Is that important?", "Who uses it?", "Can you say that in simpler words?", "What do you mean?", "And what else?",
]  # fmt: skip
COLUMNS = 416


def answer(rank: int, jobs: list[dict], seconds: float, out: str, rows: int, device: str) -> None:
    torch.manual_seed(100 + rank + len(jobs))
    if device == "cuda":
        torch.cuda.set_device(rank)
    start = time.time()
    tok = Tokenizer.from_file(str(TEACHER / "tokenizer.json"))
    encoded = [
        e.ids
        for e in tok.encode_batch(
            [chat_text(j["system"], [*j.get("history", []), j["user"]], j["prefix"]) for j in jobs]
        )
    ]
    teacher = Teacher(TEACHER, device, torch.bfloat16 if device == "cuda" else torch.float32)
    gen = Generator(teacher, rows, COLUMNS, temperature=0.6, min_p=0.1)
    usable = [i for i in range(len(jobs)) if len(encoded[i]) + 138 <= COLUMNS]
    made = 0
    print(f"[{rank}] {len(usable)} jobs ready after {time.time() - start:.0f} s", flush=True)
    with open(out, "w") as f:
        block = rows * 6
        for at in range(0, len(usable), block):
            # Within a block rows of like length go together; blocks are a random sample, so that any stop leaves all kinds.
            chunk = sorted(usable[at : at + block], key=lambda i: (jobs[i]["new"] > 100, len(encoded[i])))
            for b in range(0, len(chunk), rows):
                if time.time() - start > seconds:
                    break
                batch = chunk[b : b + rows]
                replies = gen([encoded[i] for i in batch], max(jobs[i]["new"] for i in batch))
                made += sum(map(len, replies))
                for i, text in zip(batch, tok.decode_batch(replies), strict=True):
                    f.write(json.dumps([i, text]) + "\n")
            print(f"[{rank}] {made:,} tokens, {made / (time.time() - start):,.0f}/s", flush=True)


def judge(item: tuple[dict, str]) -> tuple[dict, str] | None:
    j, text = item
    text = (j["prefix"] + " " + text.lstrip() if j["prefix"] else text).strip()
    reply = cut(text, j["keep"])
    if not reply or not acceptable(j["user"], reply, j["topic"]):
        return None
    if j["prefix"] and len(reply) <= len(j["prefix"]) + 3:
        return None
    return j, reply


def ask_all(jobs: list[dict], seconds: float, rows: int, gpus: int) -> list[tuple[dict, str]]:
    shards = [jobs[r::gpus] for r in range(gpus)]
    files = [str(CORPUS / f"replies{r}.jsonl") for r in range(gpus)]
    if torch.cuda.is_available():
        procs = [
            mp.get_context("spawn").Process(target=answer, args=(r, shards[r], seconds, files[r], rows, "cuda"))
            for r in range(gpus)
        ]
        for p in procs:
            p.start()
        for p in procs:
            p.join()
        assert all(p.exitcode == 0 for p in procs), "a generator failed"
    else:
        answer(0, jobs, seconds, files[0], rows, "cpu")
    items = []
    for shard, name in zip(shards, files, strict=True):
        with open(name) as f:
            items += [(shard[i], text) for i, text in map(json.loads, f)]
    with Pool(os.cpu_count()) as pool:
        good = [x for x in pool.imap(judge, items, chunksize=2000) if x]
    print(f"{len(items):,} replies, {len(good):,} kept", dict(Counter(j["kind"] for j, _ in good)), flush=True)
    return good


def main() -> None:
    a = argparse.ArgumentParser()
    a.add_argument("--seconds", type=float, default=120)
    a.add_argument("--follow", type=float, default=40)
    a.add_argument("--rows", type=int, default=4096)
    a.add_argument("--limit", type=int)
    args = a.parse_args()
    gpus = max(1, torch.cuda.device_count())
    r = random.Random(3)
    with (CORPUS / "jobs.jsonl").open() as f:
        jobs = [json.loads(line) for line in f][: args.limit]
    first = ask_all(jobs, args.seconds, args.rows, gpus)
    again = []
    for j, reply in first:
        if j["kind"] in ("about", "what is", "encyclopedia", "people", "how-to") and r.random() < 0.3:
            user = r.choice(FOLLOW_UPS)
            if not is_held_out(user):
                again.append(
                    {
                        **j,
                        "user": user,
                        "history": [j["user"], reply],
                        "prefix": "",
                        "topic": False,
                        "keep": 2,
                        "new": 80,
                    }
                )
    second = ask_all(again, args.follow, args.rows, gpus) if again else []
    followed = {(j["history"][0], j["history"][1]): (j["user"], reply) for j, reply in second}
    seen: set[tuple[str, str]] = set()
    with (CORPUS / "teacher.jsonl").open("w") as f:
        for j, reply in first:
            if (j["user"], reply) in seen:
                continue
            seen.add((j["user"], reply))
            more = followed.get((j["user"], reply))
            f.write(
                json.dumps({"turns": [j["user"], reply, *(more or ())], "kind": j["kind"]}, ensure_ascii=False) + "\n"
            )
    print(f"{len(seen):,} chats", flush=True)


if __name__ == "__main__":
    main()
