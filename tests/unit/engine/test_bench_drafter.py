"""`pacenote bench --preset quantized-drafter`: the published table, from one target with three heads."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.bench import cli as bench_cli
from engine.bench import environment as machine
from engine.bench import presets
from engine.bench.rig import CONVERTED, DENSE, QUANTIZED, Rig, load_rig
from engine.cli.main import main
from engine.request import LoadOptions
from tests.support.tiny_pair import write_head, write_target


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The scheme of the target is the one a silent head gets, so that two of the heads are one."""
    folder = tmp_path_factory.mktemp("bench")
    return write_target(folder / "target", group=64), write_head(folder / "head", agree=0.8)


@pytest.fixture
def rig(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("PACENOTE_COMPUTE", "float32")
    rig = load_rig(LoadOptions(*map(str, folders), max_block=3), lambda _: None, threading.Event(), both_heads=True)
    monkeypatch.setattr(bench_cli, "load_rig", lambda *_, **__: rig)
    monkeypatch.setattr(bench_cli, "STAGE_RUNS", 1)
    quiet = replace(machine.look(), busy=0.0)
    monkeypatch.setattr(machine, "look", lambda: quiet)
    monkeypatch.setattr(machine, "SPREAD_LIMIT", float("inf"))  # a few pairs of a tiny pair are never steady
    monkeypatch.setattr(machine, "FEWEST_PAIRS", 1)
    yield rig
    rig.close()


def bench(folders: tuple[Path, Path], out: Path, *arguments: str) -> int:
    target, head = map(str, folders)
    options = ["--model", target, "--head", head, "--pairs", "2", "--out", str(out), *arguments]
    return main(["bench", "--preset", "quantized-drafter", *options])


def cells(text: str, first: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {first}"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_the_published_table_is_written(
    rig: Rig,
    folders: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A column a head, both lengths, in terminal and record; ids equal; a converted head drafts as the other."""
    preset = presets.PRESETS["quantized-drafter"]
    assert preset.lengths == (120, 300)
    monkeypatch.setitem(presets.PRESETS, "quantized-drafter", replace(preset, lengths=(12, 24)))
    assert bench(folders, tmp_path) == 0
    (path,) = tmp_path.glob("*.md")
    record, said = path.read_text(), capsys.readouterr().out
    assert path.name.startswith("quantized-drafter-")
    assert "Replies run on past EOS" in record
    for row in (
        "draft_block, ms per round",
        "accept hook, ms per round",
        "verify forward, ms per round",
        "acceptance, n = 12",
        "acceptance, n = 24",
        "tok/s, n = 12",
        "tok/s, n = 24",
        "ratio to classic, n = 12",
        "ratio if drafting were free, n = 24",
    ):
        values = [float(cell) for cell in cells(record, row)]
        assert len(values) == 3
        assert all(value > 0 for value in values), row
        assert cells(said, row) == cells(record, row)
    for length in (12, 24):
        dense, at_load, converted = cells(record, f"acceptance, n = {length}")
        assert at_load == converted
        assert float(dense) > 0
    dense, at_load, converted = map(int, cells(record, "bytes in memory"))
    assert at_load == converted < dense
    assert "unpacked at load" not in record, "said only where the heads cost the same"
    raw, *rows = map(json.loads, path.with_suffix(".jsonl").read_text().splitlines())
    experiments = [row for row in rows if row["kind"] == "experiment"]
    assert [e["title"] for e in experiments] == ["12 tokens, block 3", "24 tokens, block 3"]
    for experiment in experiments:
        assert {e["arm"] for e in experiment["equality"]} >= {
            f"block 3, {head} head" for head in (DENSE, QUANTIZED, CONVERTED)
        }
        assert not any(e["differing_runs"] for e in experiment["equality"])
        assert not experiment["problems"], "each head's own drafts were counted"
    assert raw["drafters"][CONVERTED]["decided_by"] == "checkpoint"
    assert raw["drafters"][CONVERTED]["source"].endswith("head, through quantize-drafter")
    assert raw["drafters"][QUANTIZED]["bytes"] == raw["drafters"][CONVERTED]["bytes"] < raw["drafters"][DENSE]["bytes"]


def test_a_length_of_ones_own(rig: Rig, folders: tuple[Path, Path], tmp_path: Path) -> None:
    assert bench(folders, tmp_path, "--tokens", "9") == 0
    (path,) = tmp_path.glob("*.md")
    assert "acceptance, n = 9" in path.read_text()
    assert "n = 120" not in path.read_text()


def test_a_head_that_is_quantized_already_is_refused_in_words(
    rig: Rig, folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, head = map(str, folders)
    packed = str(tmp_path / "packed")
    assert main(["quantize-drafter", head, "--target", target, packed]) == 0
    assert bench((folders[0], Path(packed)), tmp_path / "out") == 1
    assert "quantized already" in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


def test_a_record_says_when_others_took_the_cores_meanwhile() -> None:
    """The machine was quiet at the start; what came later is stamped too."""
    seen = machine.look()
    assert machine.crowded(replace(seen, busy=1.0)) == machine.crowded(replace(seen, busy=None)) == ""
    assert "5.25 per core" in machine.crowded(replace(seen, busy=5.25))
