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
from demo_model.evaluate import OUT, dialogues, loops, summary  # noqa: E402
from demo_model.paths import EVALUATION  # noqa: E402

JUDGEMENTS = json.loads(Path(__file__).with_name("judgements.json").read_text())
ARMS = {
    "acceptance-dense": "dense head (bfloat16)",
    "acceptance-quantized": "4-bit head",
    "acceptance-dense-forget": "dense head, history cleared every round",
}


def main() -> None:
    found = {n: json.loads((OUT / f"{n}.json").read_text()) for n in ARMS}
    seen = json.loads((OUT / "seen.json").read_text())
    turns = iter(found["acceptance-dense"]["turns"])
    items = [(group, [next(turns) for _ in asked]) for group, asked in dialogues()]
    bad = [(g, ts) for g, ts in items if any(JUDGEMENTS.get(t["user"], "good").startswith("bad") for t in ts)]
    strict = [(g, ts) for g, ts in items if not any(normal(t["user"]) in seen for t in ts)]
    strict_bad = [x for x in strict if x in bad]
    replies = [t for _, ts in items for t in ts]
    looped = [t for t in replies if t["loops"] or "repeats" in JUDGEMENTS.get(t["user"], "")]
    ended = sum(t["end"] == "eos" for t in replies)
    same = all(
        [t["ids"] for t in found["acceptance-dense"]["turns"]] == [t["ids"] for t in f["turns"]] for f in found.values()
    )
    never_seen = {n: summary([t for t in f["turns"] if normal(t["user"]) not in seen]) for n, f in found.items()}

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
        f"60 single prompts and 10 chats of three turns, written before the training data was made. **{len(items) - len(bad)} of {len(items)} are good**: grammatical and on topic, a chat only",
        f"when all its turns are. {ended} of {len(replies)} replies ended by themselves. {len(looped)} of {len(replies)} replies loop or repeat themselves. All were read and judged by the recipe's author; the transcripts are below.",
        "",
        f"How far they are held out: prompts were compared without case, punctuation, articles and contractions, but a gap in the filter (closed since) let {sum(normal(t['user']) in seen for t in replies)} of the {len(replies)} turns through behind an",
        f'opening word ("Hi! what is a dream?", mostly one to six times in 867,000 chats; {", ".join(f"“{k}” {v} times" for k, v in seen.items() if v > 20)}). Without these items: **{len(strict) - len(strict_bad)} of {len(strict)} are good**.',
        "Subjects are not held out: the model has met eggs and volcanoes in other words. That is what it can do: known subjects in new words. Free small talk outside the",
        "rules' subjects often goes wrong (see the acceptance prompts' replies: \"I had pancakes for breakfast.\" gets nonsense).",
        "",
        "## Acceptance",
        "",
        "The 90 turns above and 120 further prompts (`acceptance_prompts.json`), which no training chat has as a user turn. Drafts are what the head proposes, two a round.",
        "",
        "| head | drafts | first draft | second draft (per round) | block-3 rate | mean acceptance length |",
        "|---|---|---|---|---|---|",
    ]
    for n, label in ARMS.items():
        f = found[n]
        lines.append(
            f"| {label} | {f['drafts']:,} | {f['per_position'][0]:.3f} | {f['per_position'][1]:.3f} | {f['block_3_rate']:.3f} | {f['mean_acceptance_length']:.2f} |"
        )
    lines += [
        "",
        "Only turns that were not let through as said above:",
        "",
        "| head | drafts | first draft | second draft | block-3 rate |",
        "|---|---|---|---|---|",
    ]
    for n, label in ARMS.items():
        f = never_seen[n]
        lines.append(
            f"| {label} | {f['drafts']:,} | {f['per_position'][0]:.3f} | {f['per_position'][1]:.3f} | {f['block_3_rate']:.3f} |"
        )
    drop = found["acceptance-dense"]["block_3_rate"] - found["acceptance-dense-forget"]["block_3_rate"]
    lines += [
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
    ]
    last = ""
    for group, ts in items:
        if group != last:
            lines += ["", f"### {group}", ""]
            last = group
        for i, t in enumerate(ts):
            mark = " *(loops)*" if loops(t["reply"]) else ""
            met = " *(met in training behind an opening word)*" if normal(t["user"]) in seen else ""
            reply = t["reply"].replace("\n", " / ")
            lines.append(
                f"{'- ' if i == 0 else '  '}**{t['user']}**{met} {reply}{mark} — {JUDGEMENTS.get(t['user'], 'good')}{'  ' if i < len(ts) - 1 else ''}"
            )
    lines += ["", "### Replies to the acceptance prompts (not judged, greedy)", ""]
    for t in found["acceptance-dense"]["turns"]:
        if t["group"] == "acceptance":
            lines.append(f"- **{t['user']}** " + t["reply"].replace("\n", " / "))
    # No two blank lines in a row.
    lines = [lines[0], *(b for a, b in pairwise(lines) if a or b)]
    EVALUATION.mkdir(parents=True, exist_ok=True)
    (EVALUATION / "evaluation.md").write_text("\n".join(lines) + "\n")
    print(
        f"{len(items) - len(bad)} of {len(items)} good; strict {len(strict) - len(strict_bad)} of {len(strict)}; ended {ended} of {len(replies)}; loops {len(looped)}; ids equal: {same}"
    )


if __name__ == "__main__":
    main()
