"""Measure the shipped pair through the engine: transcripts of the held-out prompts, and how many drafts are accepted.

    python packaging/demo_model/evaluate.py acceptance --head dense|quantized [--forget] [--keep]     (repository root, .venv; 5 min)
    python packaging/demo_model/evaluate.py unseen             (needs the corpus in .work/corpus; 20 s)

Greedy, block size 3, never parked. Results go to .work/evaluation/*.json; `report.py` makes the record of them.
"""

import argparse
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import replace
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO), str(REPO / "packaging")]

from demo_model.clean import normal  # noqa: E402
from demo_model.paths import ACCEPTANCE_PROMPTS, CORPUS, EVAL_PROMPTS, WORK  # noqa: E402

OUT = WORK / "evaluation"
TOKENS = 200


def dialogues() -> list[tuple[str, list[str]]]:
    """(group, user turns) of the quality set."""
    raw = json.loads(EVAL_PROMPTS.read_text())
    return [(g, [p]) for g, ps in raw["single"].items() for p in ps] + [("chat", c) for c in raw["chats"]]


def loops(text: str) -> bool:
    """The same four words twice in a row, or the same sentence twice."""
    words = re.findall(r"\w+", text.lower())
    for size in range(1, 9):
        for i in range(len(words) - 3 * size + 1):
            if words[i : i + size] == words[i + size : i + 2 * size] == words[i + 2 * size : i + 3 * size]:
                return True
    whole = [s.strip().lower() for s in re.split(r"[.!?]", text) if len(s.split()) > 2]
    return len(whole) != len(set(whole))


def talk(engine, turns: list[str], speculation) -> list[dict]:
    """One chat, greedy; the statistics of every reply beside its text."""
    from engine import Finished, Message, Request

    messages, out = [], []
    for user in turns:
        messages.append(Message("user", user))
        request = Request(
            messages=tuple(messages), max_tokens=TOKENS, speculation=speculation, block_size=3, thinking=False
        )
        end = next(e for e in engine.generate(request, threading.Event()) if isinstance(e, Finished))
        s = end.stats
        out.append(
            {
                "user": user,
                "reply": end.answer,
                "end": str(end.reason),
                "tokens": len(end.tokens),
                "ids": list(end.tokens),
                "loops": loops(end.answer),
                "rounds": s.rounds,
                "drafted_at": list(s.drafted_at),
                "accepted_at": list(s.accepted_at),
            }
        )
        messages.append(Message("assistant", end.answer, segments=end.segments, last_token=end.tokens[-1]))
    return out


def forgetful(engine) -> None:
    """Clear the head's history before every round: it keeps only the rows that the last round accepted."""
    from mlx_lm.models.cache import KVCache

    from engine.drafter import Drafter

    class Forgetful(Drafter):
        def accept_hook(self, state):
            if state.pending:
                end = state.end
                ids, hidden = state.take()
                keep = (
                    min(3, ids.shape[0]) if ids.shape[0] <= 3 else 1
                )  # a prompt counts as history: only its last row stays
                state.start = end - keep
                state.cache = KVCache()
                state.tell(ids[-keep:], hidden[-keep:])
            return super().accept_hook(state)

    old = engine._pair.drafter
    engine._pair = replace(engine._pair, drafter=Forgetful(old.head, engine._pair.target, old.info))


def save(name: str, value: dict) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps(value, indent=1, ensure_ascii=False))


def acceptance(a: argparse.Namespace) -> None:
    from engine import LoadOptions, Speculation, load

    engine = load(LoadOptions(quantize_drafter=a.head == "quantized"))
    info = engine.info
    print(info.drafter, info.verdict.state, info.verdict.widths, flush=True)
    if a.forget:
        forgetful(engine)
    start = time.time()
    name = f"acceptance-{a.head}{'-forget' if a.forget else ''}"
    before = json.loads((OUT / f"{name}.json").read_text())["turns"] if a.keep else []
    items = [*dialogues(), *(("acceptance", [p]) for p in json.loads(ACCEPTANCE_PROMPTS.read_text()))]
    turns, ran, checked = [], 0, False
    for g, asked in items:
        found = kept(before, g, asked)
        if not found or not checked:
            fresh = talk(engine, asked, Speculation.ALWAYS)
            if found and [t["ids"] for t in fresh] != [t["ids"] for t in found]:
                sys.exit("the earlier result is of another pair: run without --keep")
            checked = checked or bool(found)
            found, ran = fresh, ran + len(fresh)
        turns += [t | {"group": g} for t in found]
    print(f"{ran} replies generated, {len(turns) - ran} kept from before")
    total = summary(turns) | {
        "head": a.head,
        "forget": a.forget,
        "seconds": round(time.time() - start),
        "drafter": info.drafter.representation,
    }
    print(name, json.dumps(total))
    save(name, total | {"turns": turns})


def kept(before: list[dict], group: str, asked: list[str]) -> list[dict]:
    """What an earlier run answered to these turns in a row."""
    for i in range(len(before) - len(asked) + 1):
        turns = before[i : i + len(asked)]
        if [t["user"] for t in turns] == asked and all(t["group"] == group for t in turns):
            return turns
    return []


def summary(turns: list[dict]) -> dict:
    drafted = [sum(t["drafted_at"][i] for t in turns if len(t["drafted_at"]) > i) for i in range(2)]
    accepted = [sum(t["accepted_at"][i] for t in turns if len(t["accepted_at"]) > i) for i in range(2)]
    rounds = sum(t["rounds"] for t in turns)
    return {
        "replies": len(turns),
        "tokens": sum(t["tokens"] for t in turns),
        "rounds": rounds,
        "drafts": sum(drafted),
        "per_position": [round(x / y, 4) for x, y in zip(accepted, drafted, strict=True)],
        "block_3_rate": round(sum(accepted) / sum(drafted), 4),
        "mean_acceptance_length": round(1 + sum(accepted) / rounds, 3),
    }


def asked() -> dict[str, list[str]]:
    """The compared form of every prompt, by what it is for."""
    return {
        "counted": [normal(t) for _, ts in dialogues() for t in ts],
        "acceptance": [normal(p) for p in json.loads(ACCEPTANCE_PROMPTS.read_text())],
    }


def meetings(texts: Iterable[str], prompts: Set[str]) -> tuple[Counter, Counter]:
    """How often a text is one of the prompts (case, punctuation, articles, contractions and opening words apart), or ends with one."""
    equal, ends = Counter(), Counter()
    for text in texts:
        words = normal(text).split()
        if (whole := " ".join(words)) in prompts:
            equal[whole] += 1
        for i in range(1, len(words) - 1):
            if (end := " ".join(words[i:])) in prompts:
                ends[end] += 1
    return equal, ends


def unseen(_: argparse.Namespace) -> None:
    """No evaluation prompt may be a user turn of the training chats or a line of its running text, nor the end of one."""
    sets = asked()
    prompts = {p for ps in sets.values() for p in ps}
    paths = sorted([*CORPUS.glob("rules*.jsonl"), *CORPUS.glob("taught.jsonl")])
    turns = [t for path in paths for line in path.open() for t in json.loads(line)["turns"][::2]]
    lines = re.split("[\x1e\n]", (CORPUS / "natural.txt").read_text())
    # A prompt has at most 14 words: only the end of a long line can be one.
    found = {"user turns": meetings(turns, prompts), "lines of text": meetings((ln[-200:] for ln in lines), prompts)}
    record = {f"{where}{how}": c for where, both in found.items() for how, c in zip(("", ", end"), both, strict=True)}
    print(f"{len(turns):,} user turns, {len(lines):,} lines of running text")
    for name, ps in sets.items():
        met = {where: {p: c[p] for p in ps if c[p]} for where, c in record.items()}
        print(f"{name}: {len(ps)} prompts, met in training: {sum(any(c[p] for c in record.values()) for p in ps)}", met)
    save("seen", {"user turns": len(turns), "lines of text": len(lines), "met": record})


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    sub = p.add_subparsers(required=True)
    acc = sub.add_parser("acceptance")
    acc.add_argument("--head", choices=["dense", "quantized"], required=True)
    acc.add_argument("--forget", action="store_true", help="clear the head's history every round")
    acc.add_argument(
        "--keep", action="store_true", help="run only what the earlier result lacks (and one item, to compare)"
    )
    acc.set_defaults(run=acceptance)
    sub.add_parser("unseen").set_defaults(run=unseen)
    a = p.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
