"""The synthetic record: forced drafts are accepted as stated, ids stay classic's, and the published rows are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.bench import synthetic, synthetic_pair
from engine.bench.synthetic_pair import main

SMALL = {
    **synthetic._COMMON, "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 4, "head_dim": 64,
    "num_attention_heads": 2, "num_key_value_heads": 1, "linear_num_key_heads": 1, "linear_num_value_heads": 2,
    "linear_key_head_dim": 32, "linear_value_head_dim": 32, "vocab_size": 256, "tie_word_embeddings": False,
}  # fmt: skip


def test_the_published_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column a head, the bound of a free drafter, what proves the arms, what was thrown away, raw stages."""
    monkeypatch.setitem(synthetic.SHAPES, "small", SMALL)
    monkeypatch.setattr(synthetic_pair, "STAGE_RUNS", 1)
    asked = ["--shape", "small", "--acceptance", "1.0", "--tokens", "12", "--pairs", "1", "--out", str(tmp_path)]
    assert main(asked) == 0, "every arm writes classic decode's tokens"
    (page,) = tmp_path.glob("synthetic-pair-small-*.md")
    text = page.read_text()
    assert capsys.readouterr().out == text
    for row in (
        "draft_block, ms per round", "accept hook, ms per round", "verify forward, ms per round", "tok/s, n = 12",
        "classic tok/s, n = 12", "ratio to classic", "ratio if drafting were free",
    ):  # fmt: skip
        cells = next(line for line in text.splitlines() if line.startswith(f"| {row} ")).strip("| ").split("|")[1:]
        assert len(cells) == 2
        assert all(float(cell) > 0 for cell in cells), row
    row = next(line for line in text.splitlines() if line.startswith("| acceptance (forced), n = 12"))
    assert row.count("1.000") == 2, "every draft was made the target's own token"
    assert "Drafts per reply: classic 0, classic again 0, dense head 8" in text
    assert "2 blocks of 5 warm-up runs" in text
    assert "Of the paced tokens " in text
    assert "| quantized head, paced |" in text
    assert "Synthetic: random 4-bit weights" in text
    assert len(json.loads(page.with_suffix(".json").read_text())["stage_samples"]["quantized head"]) == 1
