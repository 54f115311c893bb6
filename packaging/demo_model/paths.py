"""Where the recipe keeps what it fetches and makes. Nothing under WORK is committed."""

import os
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
# The GPU machine receives only this checkout, so intermediate files live inside it (git-ignored).
WORK = Path(os.environ.get("PACENOTE_DEMO_WORK", REPO / ".work"))
DOWNLOADS = WORK / "dl"
TEACHER = WORK / "teacher"
TOKENIZER = WORK / "tokenizer"
CORPUS = WORK / "corpus"
HF_EXPORT = WORK / "hf"
PAIR = Path(os.environ.get("PACENOTE_DEMO_PAIR", REPO / "resources" / "demo"))  # where the export goes
EVAL_PROMPTS = Path(__file__).with_name("eval_prompts.json")
ACCEPTANCE_PROMPTS = Path(__file__).with_name("acceptance_prompts.json")
EVALUATION = REPO / "docs" / "demo_model"
