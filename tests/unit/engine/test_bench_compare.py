"""`pacenote bench --compare A B`: a real loss is found, noise is not called one, and what differs besides is said."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.bench.compare import Change, compare, judge_change, read_raw
from engine.bench.statistics import QUIET_BAND, Ratio, change
from engine.cli.main import main

Rows = list[dict[str, Any]]


def raw(
    arms: Mapping[str, float], *, noise: float = 0.01, seed: int = 0, pairs: int = 30, band: float = 0.01, **model: Any
) -> Rows:
    """The raw file of a run in which arm x takes about arms[x] seconds; the first one is the reference."""
    draw = random.Random(seed)
    names = list(arms)
    samples: Rows = []
    for block in range(pairs):
        heat = 1 + block / pairs  # hits all arms of a block alike
        for place, name in enumerate(names):
            seconds = arms[name] * heat * draw.uniform(1 - noise, 1 + noise)
            sample = {"seconds": seconds, "tokens": [1, 2, 3]}
            at = {"experiment": 0, "block": block, "order": place, "arm": name, "prompt": "p"}
            samples.append({"kind": "sample", **at, "sample": sample})
    info = {"device": "M9", "weights_hash": "w", "policy": "p", "verdict": {"kernel": "stock"}, **model}
    here = {"environment": {"mlx": "1", "mlx_lm": "1", "cpus": 8}, "conditions": {"power": "mains"}}
    return [
        {"kind": "header", "record": "pacenote bench", "version": 2, "feature": "mtp", "day": "2026-01-01",
         "model": info, "machine": {"before": here}, "stamp": "", "task": {"tokens": 9, "seed": 0}},
        {"kind": "experiment", "experiment": 0, "title": "T", "tokens": 8, "equal_to": names[0], "band": band,
         "prompts": [{"name": "p", "tokens": [4]}], "arms": [{"name": name} for name in names]},
        *samples,
        {"kind": "end", "samples": len(samples)},
    ]  # fmt: skip


def store(rows: Rows, path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def both(tmp_path: Path) -> Callable[[Rows, Rows], int]:
    """Runs the command on two raw files."""

    def run(before: Rows, after: Rows) -> int:
        a, b = store(before, tmp_path / "a.jsonl"), store(after, tmp_path / "b.jsonl")
        return main(["bench", "--compare", str(a), str(b)])

    return run


PLAIN = {"classic": 1.0, "block 3": 0.6}


def test_a_loss_beyond_the_spread_fails(both: Callable[[Rows, Rows], int], capsys: pytest.CaptureFixture[str]) -> None:
    """One arm loses 15 % against classic of its own run: slower, exit 1; classic itself is not blamed."""
    assert both(raw(PLAIN), raw({**PLAIN, "block 3": 0.69}, seed=1)) == 1
    said = capsys.readouterr().out
    assert "1 of 2 arms are slower" in said
    row = next(line for line in said.splitlines() if "| block 3" in line)
    assert row.strip("| ").endswith("slower")
    assert "0.87" in row


def test_noise_is_no_loss(both: Callable[[Rows, Rows], int], capsys: pytest.CaptureFixture[str]) -> None:
    assert both(raw(PLAIN), raw(PLAIN, seed=1)) == 0
    said = capsys.readouterr().out
    assert "0 of 2 arms are slower" in said
    row = next(line for line in said.splitlines() if "| block 3" in line)
    assert row.strip("| ").endswith("no difference"), "heat hits both arms of a block, so the ratio is narrow"
    assert "Not alike" not in said


def test_a_loss_that_the_band_can_fake_is_undecided(both: Callable[[Rows, Rows], int]) -> None:
    """The same 15 % on a machine whose arms differ from themselves by 10 % in each run."""
    slow = {**PLAIN, "block 3": 0.69}
    assert both(raw(PLAIN, band=0.1), raw(slow, seed=1, band=0.1)) == 0


def test_a_gain_is_named(both: Callable[[Rows, Rows], int], capsys: pytest.CaptureFixture[str]) -> None:
    assert both(raw(PLAIN), raw({**PLAIN, "block 3": 0.5}, seed=1)) == 0
    assert "faster" in capsys.readouterr().out


def test_on_another_device_only_ratios_count(
    both: Callable[[Rows, Rows], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine of half the speed is no regression; a lost ratio is, and the difference is said."""
    half = {name: 2 * seconds for name, seconds in PLAIN.items()}
    assert both(raw(PLAIN), raw(half, device="M8", policy="q")) == 0
    said = capsys.readouterr().out
    assert "- device: M9 / M8" in said
    assert "- policy: p / q" in said
    assert both(raw(PLAIN), raw({**half, "block 3": 1.5}, device="M8")) == 1


def test_classic_that_got_slower_on_the_same_device_fails(both: Callable[[Rows, Rows], int]) -> None:
    """All ratios are as before: plain speed is what shows it."""
    assert both(raw(PLAIN), raw({name: 1.5 * seconds for name, seconds in PLAIN.items()}, seed=1)) == 1


def test_other_tokens_fail_whatever_the_speed(
    both: Callable[[Rows, Rows], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """For the same weights, prompts and sampler; with others they are expected."""
    after = raw(PLAIN)
    after[3]["sample"]["tokens"] = [1, 2, 4]
    assert both(raw(PLAIN), after) == 1
    assert "OTHER TOKEN IDS" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["weights", "prompts", "seed", "sampler"])
def test_records_of_other_work_are_not_compared(
    both: Callable[[Rows, Rows], int], capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """Longer prompts once made B "slower", and other weights "faster"."""
    slow = {name: 2 * seconds for name, seconds in PLAIN.items()}
    after = raw(slow, weights_hash="v") if what == "weights" else raw(slow)
    if what == "prompts":
        after[1]["prompts"][0]["tokens"] = [5]
    elif what in ("seed", "sampler"):
        after[0]["task"][what] = 7
    assert both(raw(PLAIN), after) == 1
    said = capsys.readouterr()
    assert "The two records are of different work: " in said.err
    assert what in said.err
    assert "slower" not in said.out


def test_few_pairs_decide_nothing(both: Callable[[Rows, Rows], int], capsys: pytest.CaptureFixture[str]) -> None:
    """The interval of one pair is a point, so that any difference was once a verdict."""
    assert both(raw(PLAIN, pairs=5), raw({**PLAIN, "block 3": 0.9}, pairs=5)) == 0
    assert "2 are undecided" in capsys.readouterr().out
    assert both(raw(PLAIN, pairs=6), raw({**PLAIN, "block 3": 0.9}, pairs=6)) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows[0].update(version=3), "version 3"),
        (lambda rows: rows[0].pop("version"), "version None"),
        (lambda rows: rows[0].update(model=None), "not subscriptable"),
        (lambda rows: rows[0].update(task=[]), "does not say what was measured"),
        (lambda rows: rows[2]["sample"].update(seconds=0), "a run of 0.0 seconds"),
        (lambda rows: rows[2]["sample"].update(seconds=1e999), "a run of inf seconds"),
        (lambda rows: rows[2].update(arm="x"), "no 'x'"),
    ],
)
def test_a_raw_file_that_says_impossible_things_is_refused_in_words(
    both: Callable[[Rows, Rows], int],
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Rows], object],
    told: str,
) -> None:
    """A run of no time, or a header without a model, once ended the program."""
    odd = raw(PLAIN)
    change(odd)
    assert both(odd, raw(PLAIN)) == 1
    said = capsys.readouterr().err
    assert "cannot be read as a benchmark's raw file" in said
    assert told in said


def test_a_record_of_the_first_version_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = store(raw(PLAIN), tmp_path / "b.jsonl")
    (tmp_path / "a.json").write_text("{}")
    assert main(["bench", "--compare", str(tmp_path / "a.md"), str(new)]) == 1
    assert "of an earlier version" in capsys.readouterr().err


def test_what_only_one_record_has_is_said(
    both: Callable[[Rows, Rows], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert both(raw({**PLAIN, "block 4": 0.7}), raw(PLAIN)) == 0
    assert "- T: block 4" in capsys.readouterr().out
    other = raw(PLAIN)
    other[1]["tokens"] = 300
    assert both(raw(PLAIN), other) == 1
    assert "no arm in common" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["cut", "torn", "foreign", "empty", "missing"])
def test_a_raw_file_that_is_not_whole_is_refused(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A figure from half a file would look like any other."""
    whole = store(raw(PLAIN), tmp_path / "a.jsonl")
    lines = whole.read_text().splitlines(keepends=True)
    text = {
        "cut": "".join(lines[:-1]),
        "torn": "".join(lines)[:-9],
        "foreign": '{"kind":"header","gen":"x"}\n',
        "empty": "",
        "missing": "".join(lines[:5] + lines[6:]),
    }[damage]
    broken = tmp_path / "b.jsonl"
    broken.write_text(text)
    assert main(["bench", "--compare", str(whole), str(broken)]) == 1
    assert "cannot be read as a benchmark's raw file" in capsys.readouterr().err
    assert main(["bench", "--compare", str(tmp_path / "none.md"), str(whole)]) == 1


def test_the_page_stands_for_the_raw_file_beside_it(tmp_path: Path) -> None:
    store(raw(PLAIN), tmp_path / "a.jsonl")
    assert read_raw(tmp_path / "a.md") == read_raw(tmp_path / "a.jsonl")


@settings(max_examples=40)
@given(median=st.floats(0.5, 1.5), width=st.floats(0, 0.2), band=st.floats(0, 0.2))
def test_verdicts_exclude_each_other(median: float, width: float, band: float) -> None:
    """Slower and faster need all of the interval beyond the band; the same needs it narrow, around 1."""
    ratio = Ratio(median, median - width, median + width, 30)
    verdict = judge_change(ratio, band)
    assert (verdict is Change.SLOWER) == (median + width < 1 - band)
    assert (verdict is Change.FASTER) == (median - width > 1 + band)
    if verdict is Change.SAME:
        assert abs(median - 1) + width <= QUIET_BAND + 1e-12
        assert band <= QUIET_BAND


def test_change_covers_the_truth() -> None:
    """Two runs of another length: the interval holds the true ratio, and grows with the spread."""
    draw = random.Random(3)
    before = [draw.gauss(10, 0.2) for _ in range(30)]
    after = [draw.gauss(9, 0.2) for _ in range(20)]
    found = change(before, after)
    assert found.low < 0.9 < found.high
    assert found == change(before, after), "deterministic"
    wide = change([draw.gauss(10, 2) for _ in range(30)], [draw.gauss(9, 2) for _ in range(20)])
    assert wide.high - wide.low > found.high - found.low
    with pytest.raises(ValueError, match="nothing to compare"):
        change([], after)


def test_a_record_compared_with_itself_shows_nothing(tmp_path: Path) -> None:
    one = read_raw(store(raw(PLAIN), tmp_path / "a.jsonl"))
    found = compare(one, one)
    assert not found.failed
    assert found.unlike == found.missing == found.other_tokens == ()
