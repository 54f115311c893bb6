"""The commands that measure sessions, on a tiny pair: they run, say what they measured, and judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.bench import first_token, kept_memory
from engine.bench.first_token import KINDS, Sample, equal_texts, report
from engine.loading import Pair


def test_first_tokens_are_measured_on_turns_of_equal_length(
    tiny_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Early and late read the same number of tokens; regenerating reads none; cold reads everything."""
    target, head = map(str, tiny_folders)
    first_token.main(
        ["--model", target, "--head", head, "--turns", "3", "--pairs", "2", "--cold", "1", "--reply", "4", "--anyway",
         "--out", str(tmp_path)]
    )  # fmt: skip
    (raw,) = tmp_path.glob("first-token-*.json")
    samples = [Sample(**row) for row in json.loads(raw.read_text())]
    for kind in KINDS:
        assert sorted((s.turn, s.pair) for s in samples if s.kind == kind) == [(2, 0), (2, 1), (3, 0), (3, 1)]
    fresh = {kind: {s.fresh for s in samples if s.kind == kind} for kind in (*KINDS, "cold")}
    assert fresh["regenerate"] == {0}
    assert len(fresh["next turn"]) == 1
    assert fresh["next turn"] == fresh["turn after an edited message"] == fresh["turn after a regenerated reply"]
    (cold,) = [s for s in samples if s.kind == "cold"]
    assert cold.fresh == cold.prompt
    told = capsys.readouterr().out
    assert "| next turn " in told
    assert "Load before / after" in told
    assert raw.with_suffix(".md").read_text() == told


def test_the_bound_is_judged_and_regenerating_only_shown() -> None:
    def samples(ratio: float, regenerate: float) -> list[Sample]:
        return [
            Sample(kind, turn, pair, 1.0 if turn == 2 else regenerate if kind == "regenerate" else ratio, 9, 20)
            for kind in KINDS
            for turn in (2, 20)
            for pair in range(3)
        ]

    assert report(samples(1.29, 3.0), 20)[1]
    assert not report(samples(1.31, 1.0), 20)[1]
    lines = "\n".join(report(samples(1.31, 1.0), 20)[0])
    assert lines.count("falls short") == 4
    assert lines.count("shown only") == 1


def test_the_messages_have_one_length(pair: Pair) -> None:
    texts = equal_texts(pair.tokenizer)
    assert len({len(pair.tokenizer.encode(text)) for text in texts[:200]}) == 1
    assert len(set(texts)) == len(texts) > 500


def test_memory_is_the_model_and_what_is_accounted(
    tiny_folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    target, head = map(str, tiny_folders)
    assert kept_memory.main(["--model", target, "--head", head, "--rounds", "6"]) == 0
    assert "6 rounds in chats of 20 turns" in capsys.readouterr().out
