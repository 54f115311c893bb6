"""Which of the teacher's chats are trained on: `python -m demo_model.keep` (in packaging/; 5 s) -> .work/corpus/taught.jsonl

Its small talk does more harm than good, so "said" and "human" are left out; of the rest every third is enough for a taste of free
English, and nothing that is held out for evaluation.
"""

import json

from demo_model.clean import is_held_out
from demo_model.paths import CORPUS

EVERY = 3


def main() -> None:
    kept = seen = 0
    with (CORPUS / "teacher.jsonl").open() as teacher, (CORPUS / "taught.jsonl").open("w") as out:
        for line in teacher:
            chat = json.loads(line)
            if chat["kind"] in ("said", "human"):
                continue
            seen += 1
            if seen % EVERY == 0 and not any(is_held_out(t) for t in chat["turns"][::2]):
                out.write(line)
                kept += 1
    print(f"{kept} chats of the teacher's kept")


if __name__ == "__main__":
    main()
