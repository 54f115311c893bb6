"""Write docs/demo_model/evaluation.md from what `evaluate.py` measured and from the judgements read by eye.

python packaging/demo_model/report.py        (repository root)
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO), str(REPO / "packaging")]

from demo_model.clean import normal  # noqa: E402
from demo_model.evaluate import OUT, dialogues, kept, loops, summary  # noqa: E402
from demo_model.paths import EVAL_PROMPTS, EVALUATION  # noqa: E402

JUDGEMENTS = json.loads(Path(__file__).with_name("judgements.json").read_text())
ARMS = {
    "acceptance-dense": "dense head (bfloat16)",
    "acceptance-quantized": "4-bit head",
    "acceptance-dense-forget": "dense head, history cleared every round",
}


def bad(item: list[dict]) -> bool:
    return any(JUDGEMENTS.get(t["user"], "good").startswith("bad") for t in item)


def good(items: list[tuple[str, list[dict]]]) -> str:
    return f"{sum(not bad(ts) for _, ts in items)} of {len(items)}"


def rates(label: str, f: dict) -> str:
    first, second = f["per_position"]
    return f"| {label} | {f['drafts']:,} | {first:.3f} | {second:.3f} | {f['block_3_rate']:.3f} | {f['mean_acceptance_length']:.2f} |"


def transcripts(items: list[tuple[str, list[dict]]], note: dict[str, str]) -> list[str]:
    lines, last = [], ""
    for group, ts in items:
        if group != last:
            lines += ["", f"### {group}", ""]
            last = group
        for i, t in enumerate(ts):
            mark = " *(loops)*" if loops(t["reply"]) else ""
            reply = t["reply"].replace("\n", " / ")
            lines.append(
                f"{'- ' if i == 0 else '  '}**{t['user']}**{note.get(normal(t['user']), '')} {reply}{mark} — {JUDGEMENTS.get(t['user'], 'good')}{'  ' if i < len(ts) - 1 else ''}"
            )
    return lines


def main() -> None:
    found = {n: json.loads((OUT / f"{n}.json").read_text()) for n in ARMS}
    seen = json.loads((OUT / "seen.json").read_text())
    dense = found["acceptance-dense"]["turns"]
    items = [(g, kept(dense, g, asked)) for g, asked in dialogues()]
    gone = [("retired: " + g, kept(dense, g, asked)) for g, asked in dialogues(retired=True)]
    assert all(ts for _, ts in items + gone)
    newer = set(json.loads(EVAL_PROMPTS.read_text())["newer"])
    new, first = ([x for x in items if (x[1][0]["user"] in newer) is w] for w in (True, False))
    replies = [t for _, ts in items for t in ts]
    met = {p for c in seen["met"].values() for p in c}
    unmet = [t for t in dense if not t["group"].startswith("retired")]
    assert not met & {normal(t["user"]) for t in unmet}
    looped = [t for t in replies if t["loops"] or "repeats" in JUDGEMENTS.get(t["user"], "")]
    ended = sum(t["end"] == "eos" for t in replies)
    same = all([t["ids"] for t in dense] == [t["ids"] for t in f["turns"]] for f in found.values())
    arms = {n: summary([t for t in f["turns"] if not t["group"].startswith("retired")]) for n, f in found.items()}
    reached = sum(not bad(ts) for _, ts in items) >= 0.8 * len(items)
    groups = list(dict.fromkeys(g for g, _ in items))

    lines = [
        "# Evaluation of the bundled demo pair",
        "",
        "Written by `packaging/demo_model/report.py` from these runs (through the engine, CPU, greedy, block size 3, never parked):",
        "",
        "```",
        "python packaging/demo_model/evaluate.py unseen",
        *(
            f"python packaging/demo_model/evaluate.py acceptance --head {a}"
            for a in ("dense", "quantized", "dense --forget")
        ),
        "python packaging/demo_model/report.py",
        "```",
        "",
        "## Replies",
        "",
        f"60 single prompts and 10 chats of three turns. **{good(items)} are good**: grammatical and on topic, a chat only when all its turns are. The aim was 8 of 10{'' if reached else ', which is **not reached**'}.",
        f"{ended} of {len(replies)} replies ended by themselves. {len(looped)} of {len(replies)} replies loop or repeat themselves. All were read and judged by eye, the newer ones by whoever worded them; the transcripts are below.",
        "",
        "| kind | good | worded before training | worded after it |",
        "|---|---|---|---|",
        *(
            f"| {g} | {good([x for x in items if x[0] == g])} | {good([x for x in first if x[0] == g])} | {good([x for x in new if x[0] == g])} |"
            for g in groups
        ),
        f"| all | {good(items)} | {good(first)} | {good(new)} |",
        "",
        "### How they are held out",
        "",
        f"No turn of the 70 is a user turn of the training chats ({seen['user turns']:,}) or a line of the running text ({seen['lines of text']:,}), nor the end of one. Compared without case,",
        "punctuation, articles, contractions and opening words (`evaluate.py unseen`).",
        "",
        f"The first set of 70 did not hold to that: 18 items had got into the training chats behind an opening word (“Hi! what is a dream?”), and {len(gone) - 18} more are the end of a longer",
        f"turn (“A very good morning.”) or a line of the running text (“Hello!”). These {len(gone)} were replaced by the {len(new)} items marked *(newer)*: same kind and subject, another wording.",
        "The newer ones were worded by someone who had read the first set's replies, were changed only where training had met the wording, and were committed before the",
        "model was asked; each was asked once. The earlier items stand at the end with their replies and do not count; "
        f"**{good(gone)}** of them were good. The gap between that and the newer",
        "items is what wording is worth to this model: it knows its subjects in the wordings it was taught and in near ones, and often fails in free ones.",
        "",
        "Subjects are not held out: the model has met eggs and volcanoes in other words. Free small talk outside the rules' subjects often goes wrong.",
        "",
        "## Acceptance",
        "",
        f"The {len(replies)} turns above and 120 further prompts (`acceptance_prompts.json`), none of them met in training by the same comparison. Drafts are what the head proposes, two a round.",
        "",
        "| head | drafts | first draft | second draft (per round) | block-3 rate | mean acceptance length |",
        "|---|---|---|---|---|---|",
        *(rates(label, arms[n]) for n, label in ARMS.items()),
    ]
    drop = arms["acceptance-dense"]["block_3_rate"] - arms["acceptance-dense-forget"]["block_3_rate"]
    newest = summary([t for _, ts in new for t in ts])
    lines += [
        "",
        f"On the {newest['replies']} newer turns alone: {newest['drafts']:,} drafts, first draft {newest['per_position'][0]:.3f}, block-3 rate {newest['block_3_rate']:.3f} (dense head).",
        "",
        f"Token ids of the three runs are {'equal' if same else 'NOT equal'}: the head changes speed, never words.",
        "",
        f"Clearing the head's history costs {drop:.3f} of the block-3 rate, in line with what others report for a large model (0.90 with history, 0.26 without).",
        "",
        "Rates are high because the replies are short and regular. They say nothing about what a real model's head reaches on real text.",
        "",
        "## Agreement of the implementations",
        "",
        "`python -m demo_model.check` in `packaging/` (CPU, float32, exported weights before quantization; max |a - b| / max |b| over the logits of two texts):",
        "",
        "```",
        (OUT / "check.log").read_text().strip(),
        "```",
        "",
        "## Transcripts",
        "",
        *transcripts(items, {normal(t["user"]): " *(newer)*" for _, ts in new for t in ts}),
        "",
        "### Replies to the acceptance prompts (not judged, greedy)",
        "",
    ]
    for t in dense:
        if t["group"] == "acceptance":
            lines.append(f"- **{t['user']}** " + t["reply"].replace("\n", " / "))
    lines += [
        "",
        "## Earlier items that training had met (not counted)",
        "",
        "Marked turns are those that training met: as a user turn of its chats, as the end of one, as a line of the running text or as the end of one.",
        "",
        *transcripts(gone, dict.fromkeys(met, " *(met)*")),
    ]
    # No two blank lines in a row.
    lines = [lines[0], *(b for a, b in pairwise(lines) if a or b)]
    EVALUATION.mkdir(parents=True, exist_ok=True)
    (EVALUATION / "evaluation.md").write_text("\n".join(lines) + "\n")
    print(
        f"{good(items)} good (before {good(first)}, newer {good(new)}, retired {good(gone)}); ended {ended} of {len(replies)}; loops {len(looped)}; ids equal: {same}"
    )


if __name__ == "__main__":
    main()
