"""The records of the exactness candidates and of shared noise hold what was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import mlx.core as mx
import pytest

from engine.bench import candidates, noise
from engine.loading import Pair
from tests.support.doubles import qmv_wide
from tests.support.tiny_pair import write_head


@pytest.fixture
def target(pair: Pair):
    kernel, limit = pair.target.scope.kernel, pair.target.scope.block_limit
    yield pair.target
    pair.target.scope.kernel, pair.target.scope.block_limit = kernel, limit


def test_the_record_names_verdict_culprit_and_costs(target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx, "quantized_matmul", qmv_wide)
    path = candidates.measure(target, "tiny", "", 3, tmp_path, "the command", "a stamp", context_length=200)
    text = path.read_text()
    raw = json.loads(path.with_suffix(".json").read_text())["report"]
    probes = {name: widths for name, widths, *_ in raw["probes"]}
    assert probes["stock"] == []
    assert probes["forced_qmv"] == [2, 3, 4, 5]
    (name, width, where, operations), *_ = raw["differences"]
    assert (name, width, where) == ("stock", 2, "after 8 tokens")
    assert operations[0].startswith("in_proj_qkv of layer 1")
    assert f"- {operations[0]}" in text
    assert "exact with other kernels" in text
    assert "a stamp" in text
    assert "the command" in text
    assert "Not measured" in text
    for measured in raw["measured"]:
        assert measured["ms"]["n"] == 3
        assert measured["calls"] > 0
        assert re.search(rf"\| {measured['width']} +\| {re.escape(measured['name'])} ", text)


def test_a_candidate_that_cannot_run_is_named_and_not_timed(
    target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("grid too large")

    monkeypatch.setattr("engine.exactness.kernels.gather.QUAD_INPUTS", ())  # all that the tiny pair has
    monkeypatch.setattr(mx, "gather_qmm", broken)
    report = candidates.run(target, "tiny", 2, context_length=200)
    failures = {name: failure for name, _, failure, _ in report.probes}
    assert "grid too large" in failures["gather"]
    assert not any(m.name.startswith("gather") for m in report.measured)


def test_shared_noise_agrees_far_more_often_than_independent_draws(
    tiny_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """oMLX had 0 % acceptance with exact match and independent draws. What is emitted does not depend on the drafts."""
    head = write_head(tmp_path / "head", agree=0.3)
    asked = ["--model", str(tiny_folders[0]), "--head", str(head), "--tokens", "25", "--temperature", "1.5"]
    asked += ["--prompts", "10"]
    assert noise.main(asked) == 0
    out = capsys.readouterr().out
    shared, independent, overlap = (float(x) for x in re.search(r"\| 1 +\| (\S+) +\| (\S+) +\| (\S+)", out).groups())
    assert shared > 3 * independent
    assert 0.7 * overlap < shared <= 1.1 * overlap
    assert "equal in 10 of 10 replies" in out
