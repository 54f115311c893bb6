"""The benchmark on a loaded tiny pair: its arms, the record it writes, the command."""

from __future__ import annotations

import argparse
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from engine.bench import FORCED_QMV, PRESETS, SETS, check_plan, presets
from engine.bench import cli as bench_cli
from engine.bench import environment as machine
from engine.bench.arms import Arm, Task, block_arm, classic_arm, random_widths_arm
from engine.bench.mlx_lm_arms import mlx_lm_arm, mlx_lm_prefill_arm
from engine.bench.page import _behind
from engine.bench.prefill_arm import HEAD_ROWS, prefill_arm
from engine.bench.prompts import BENCH, CHECK, Prompt, of_length, read_prompts, read_sets
from engine.bench.rig import DENSE, QUANTIZED, Rig, load_rig
from engine.bench.sample import Sample
from engine.bench.shortlist_preset import ShortlistDrafter
from engine.bench.tally import drafts, forwards, peer_forwards
from engine.cli.main import main
from engine.decode.prefill import Interrupted
from engine.errors import KnownError
from engine.loading import Pair
from engine.request import LoadOptions, Sampler
from engine.telemetry.environment import Conditions, environment
from engine.telemetry.stats import identity_holds

TASK = Task(tokens=14, sampler=Sampler(), seed=3)
NEVER = threading.Event()


@pytest.fixture(scope="module")
def rig(tiny_folders: tuple[Path, Path]) -> Iterator[Rig]:
    """Both heads on one target, loaded as the command loads them."""
    target, head = map(str, tiny_folders)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACENOTE_COMPUTE", "float32")
        rig = load_rig(LoadOptions(target, head), lambda _: None, NEVER, both_heads=True)
    yield rig
    rig.close()


@pytest.fixture(scope="module")
def prompt(rig: Rig) -> Prompt:
    return read_prompts(CHECK, rig.pair.tokenizer)[4]


@pytest.fixture
def command(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pacenote bench` without loading again, on a machine that counts as quiet."""
    monkeypatch.setattr(bench_cli, "load_rig", lambda *_, **__: rig)
    monkeypatch.setattr(bench_cli, "STAGE_RUNS", 1)
    quiet = replace(machine.look(), busy=0.0)
    monkeypatch.setattr(machine, "look", lambda: quiet)
    monkeypatch.setattr(machine, "SPREAD_LIMIT", float("inf"))  # two or three pairs of a tiny pair are never steady
    monkeypatch.setattr(machine, "FEWEST_PAIRS", 1)


# -- arms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_all_arms_write_the_same_tokens(rig: Rig, prompt: Prompt, temperature: float) -> None:
    """Every width, both heads, and widths that change each round: the ids of classic decode, and as many as asked."""
    task = replace(TASK, sampler=Sampler(temperature))
    reference = classic_arm(rig, task).run(prompt, NEVER)
    assert len(reference.tokens) == task.tokens
    arms = [block_arm(rig, task, head, width) for head in (QUANTIZED, DENSE) for width in (2, 5)]
    for arm in (*arms, random_widths_arm(rig, task, DENSE, (2, 3, 4, 5))):
        sample = arm.run(prompt, NEVER)
        assert sample.tokens == reference.tokens, arm.name
        assert sample.stats is not None
        assert identity_holds(sample.stats)
        assert sample.stats.tokens == task.tokens
        assert arm.moves <= sample.counts.keys(), arm.name
        assert drafts(DENSE if "dense" in arm.name else QUANTIZED) in sample.counts


def test_counters_tell_the_arms_apart(rig: Rig, prompt: Prompt) -> None:
    """A classic run has one-row forwards only, a block run blocks and its own head's drafts only."""
    assert classic_arm(rig, TASK).run(prompt, NEVER).counts == {forwards(1): TASK.tokens}  # one looks ahead
    block = block_arm(rig, TASK, DENSE, 4).run(prompt, NEVER)
    assert block.stats is not None
    assert block.counts == {forwards(4): block.stats.rounds, drafts(DENSE): 3 * block.stats.rounds}


def test_the_peer_starts_at_the_same_boundary(rig: Rig, prompt: Prompt) -> None:
    """mlx-lm's own loop, from our boundary: the same greedy tokens, none of our forwards, as many of its own."""
    sample = mlx_lm_arm(rig, TASK).run(prompt, NEVER)
    assert sample.tokens == classic_arm(rig, TASK).run(prompt, NEVER).tokens
    assert sample.counts == {peer_forwards(1): TASK.tokens}


def test_a_boundary_serves_many_runs(rig: Rig, prompt: Prompt) -> None:
    """Runs do not write into what they were restored from."""
    arm = block_arm(rig, TASK, QUANTIZED, 3)
    assert arm.run(prompt, NEVER).tokens == arm.run(prompt, NEVER).tokens


def test_prefill_arms_read_the_prompt_in_their_chunks(rig: Rig, prompt: Prompt) -> None:
    """Ours with and without a head, and mlx-lm's in two chunk sizes: one first token, and the forwards they claim."""
    long = of_length([prompt], 100)
    assert len(long.tokens) == 100
    ours = prefill_arm(rig, head=True).run(long, NEVER)
    assert ours.counts == {forwards(64): 1, forwards(35): 1, forwards(1): 1, HEAD_ROWS: 99}
    assert HEAD_ROWS not in prefill_arm(rig, head=False).run(long, NEVER).counts
    for chunk, moved in ((2048, {99: 1, 1: 1}), (33, {33: 3, 1: 1})):
        arm = mlx_lm_prefill_arm(rig, chunk, 100)
        sample = arm.run(long, NEVER)
        assert sample.counts == {peer_forwards(rows): n for rows, n in moved.items()}
        assert arm.moves == sample.counts.keys()
        assert sample.tokens == ours.tokens


def test_stop_gives_no_half_sample(rig: Rig, prompt: Prompt) -> None:
    stop = threading.Event()
    stop.set()
    for arm in (classic_arm(rig, TASK), block_arm(rig, TASK, DENSE, 3), mlx_lm_arm(rig, TASK)):
        with pytest.raises(Interrupted):
            arm.run(prompt, stop)


def test_counting_ends_with_the_rig(pair: Pair, prompt: Prompt) -> None:
    """The wrapped methods are the instance's own again: a benchmark leaves no trace in a pair."""
    assert pair.drafter is not None
    rig = Rig(pair, {QUANTIZED: pair.drafter}, 5)
    assert "hidden" in vars(pair.target)
    rig.close()
    assert "hidden" not in vars(pair.target)
    assert "draft_block" not in vars(pair.drafter)


def test_presets_by_name() -> None:
    """The command lists them without importing them."""
    assert {*presets.PRESETS, FORCED_QMV} == set(PRESETS)


# -- prompts and machine ----------------------------------------------------------------------------------


def test_bundled_prompts(rig: Rig) -> None:
    """24 short prompts for the check, each name once, and a set for speed."""
    prompts = read_prompts(CHECK, rig.pair.tokenizer)
    assert len(prompts) == len({p.name for p in prompts}) == len({p.tokens for p in prompts}) == 24
    assert all(len(p.text) < 120 for p in prompts)
    assert len(read_prompts(BENCH, rig.pair.tokenizer)) >= 6


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '[{"name": "x"}]', "[3]", '["a", {"name": "prompt 1", "text": "b"}]']
)
def test_prompts_that_are_none(rig: Rig, tmp_path: Path, content: str) -> None:
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(KnownError):
        read_prompts(tmp_path / "p.json", rig.pair.tokenizer)


def test_a_busy_machine_is_refused_unless_told() -> None:
    """Half of each core taken by others: no benchmark, or one that says so."""
    busy = machine.Machine(replace(environment(), cpus=4), Conditions((2.0, 1.0, 1.0), "mains"), "unknown", 0.5)
    with pytest.raises(KnownError, match=r"0\.50 per core"):
        machine.admit(busy, anyway=False)
    assert "Measured anyway" in machine.admit(busy, anyway=True)
    assert machine.admit(replace(busy, busy=0.1), anyway=False) == ""
    assert machine.admit(replace(busy, busy=None), anyway=False) == "", "a system without the figure is not refused"


# -- the command ------------------------------------------------------------------------------------------


def bench(tmp_path: Path, *arguments: str) -> int:
    (tmp_path / "p.json").write_text(json.dumps(["Hello!", {"name": "egg", "text": "An egg?"}]))
    return main(["bench", "--tokens", "6", "--prompts", str(tmp_path / "p.json"), *arguments])


@pytest.mark.usefixtures("command")
def test_record_holds_the_numbers(rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every figure of the Markdown record follows from the raw samples beside it, and it says what it must."""
    assert bench(tmp_path, "--pairs", "3", "--out", str(tmp_path / "out")) == 0
    (page,), (raw,) = (list((tmp_path / "out").glob(f"mtp-*{suffix}")) for suffix in (".md", ".jsonl"))
    assert f"written: {page}" in capsys.readouterr().out
    text, rows = page.read_text(), [json.loads(line) for line in raw.read_text().splitlines()]
    assert rows[-1] == {"kind": "end", "samples": len(rows) - 3}
    (run,) = (row for row in rows if row["kind"] == "experiment")
    samples = [row for row in rows if row["kind"] == "sample"]
    arms = [arm["name"] for arm in run["arms"]]
    assert len(samples) == 3 * len(arms)
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for sample in sorted(samples, key=lambda s: s["block"]):
        seconds[sample["arm"]].append(sample["sample"]["seconds"])
    for name in arms:
        row = cells(text, name)
        median, low, high = sorted(seconds[name])[1], min(seconds[name]), max(seconds[name])
        assert row[1:5] == [f"{median:.4f}", f"{low:.4f} - {high:.4f}", "3", f"{5 / median:.1f}"]
        stats = [s["sample"]["stats"] for s in samples if s["arm"] == name]
        tried, taken = (
            [sum(column) for column in zip_longest(*(s[key] for s in stats), fillvalue=0)]
            for key in ("drafted_at", "accepted_at")
        )
        assert row[5] == (f"{sum(taken) / sum(tried):.3f}" if tried else "")
        assert row[7] == " / ".join(f"{a / d:.2f}" for a, d in zip(taken, tried, strict=True))
    for arm in (QUANTIZED, DENSE):
        ratios = sorted(a / b for a, b in zip(seconds["classic"], seconds[f"block 3, {arm} head"], strict=True))
        assert cells(text, f"block 3, {arm} head / classic")[1] == f"{ratios[1]:.4f}"
    for must in (
        "## Not measured", "## Thrown away", "A/A", "accept-hook time of the first round", "## Repeat",
        f"bench --tokens 6 --prompts {tmp_path}/p.json --pairs 3", rig.pair.info.weights_hash,
        "drafts of the dense head", "Acceptance over 120 and 300 tokens: --tokens 120 300 measures it.",
    ):  # fmt: skip
        assert must in text, must
    assert "DIFFERENT" not in text


def cells(text: str, first: str) -> list[str]:
    """The cells of the first table row that starts with `first`."""
    line = next(line for line in text.splitlines() if re.match(rf"\| {re.escape(first)} +\|", line))
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.usefixtures("command")
def test_the_pace_is_measured_on_every_prompt_and_context(tmp_path: Path) -> None:
    """Its tokens are classic's; lengths that do not fit are left out and said, not cut."""
    asked = ("--preset", "pace", "--pairs", "2", "--out", str(tmp_path), "--context", "50", "90", "4000")
    bench(tmp_path, *asked)  # two pairs of a tiny pair may well fall short: the exit status is not asked
    (page,) = tmp_path.glob("pace-contexts-*.md")
    text = page.read_text()
    assert "## Fixed widths and the pace, all prompts" in text
    for length in (50, 90):
        assert f"{length} tokens ({length} tokens)" in text
    assert "Context 4000: this model has room for" in text
    assert "NOT PROVEN" not in text
    assert "DIFFERENT" not in text


@pytest.mark.parametrize("block", [2, 7])
@pytest.mark.usefixtures("command")
def test_blocks_as_wide_as_asked_are_measured(
    tiny_folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """The default is 5 rows, as in a chat. Another number makes another record, with costs of all of its rows."""
    target, head = map(str, tiny_folders)
    made: list[Rig] = []

    def load(options: LoadOptions, *rest: Any, **how: Any) -> Rig:
        made.append(load_rig(replace(options, target=target, head=head), *rest, **how))
        return made[0]

    monkeypatch.setattr(bench_cli, "load_rig", load)
    monkeypatch.setenv("PACENOTE_COMPUTE", "float32")
    bench(tmp_path, "--preset", "pace", "--pairs", "1", "--out", str(tmp_path), "--block", str(block))
    (page,) = tmp_path.glob(f"pace-block-{block}-*.md")
    text = page.read_text()
    for width in range(2, 9):
        assert (f"block {width}, quantized head" in text) is (width <= block)
    costs = text.partition("### What it believed")[2]
    assert all(len(cells(costs, str(width))) == 8 for width in range(2, block + 1))
    made[0].close()


@pytest.mark.usefixtures("command")
def test_a_context_that_does_not_fit_at_all_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--preset", "pace", "--context", "100000", "--out", str(tmp_path)) == 1
    assert "No context fits." in capsys.readouterr().err


@pytest.mark.usefixtures("command")
def test_preset_against_mlx_lm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both halves run and both are in the record; an earlier record of the day is not overwritten."""
    assert presets.PREFILL_TOKENS == 500
    monkeypatch.setattr(presets, "PREFILL_TOKENS", 70)
    for _ in range(2):
        bench(tmp_path, "--preset", "classic-vs-mlx-lm", "--pairs", "1", "--out", str(tmp_path))
    pages = sorted(tmp_path.glob("classic-vs-mlx-lm-*.md"))
    assert len(pages) == 2
    text = pages[0].read_text()
    assert "## Decode against mlx_lm" in text
    assert "## Prefill of 70 tokens against mlx_lm" in text
    assert "mlx_lm forwards, 69 rows" in text


@pytest.mark.usefixtures("command")
def test_check_compares_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole command: equal, exit 0, a table; the second time nothing is run."""
    progress = tmp_path / "check.jsonl"
    assert bench(tmp_path, "--check", "--progress", str(progress)) == 0
    first = capsys.readouterr().out
    assert cells(first, "block 5, dense head")[1:4] == ["4", "24", "0"]
    assert "random widths, quantized head" in first
    lines = progress.read_text().splitlines()
    assert len(lines) == 2 * 2 * 11
    assert bench(tmp_path, "--check", "--progress", str(progress)) == 0
    assert progress.read_text().splitlines() == lines
    assert "0 differing token ids in 240 compared." in first


@pytest.mark.usefixtures("command")
def test_the_check_of_samplings_runs_every_sampling_with_both_heads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Penalties, cuts and a bias, each prompt with a seed of its own, widths fixed and drawn every round."""
    names = [f"prompt {n}" for n in range(6)]
    prompts = tmp_path / "six.json"
    prompts.write_text(json.dumps([{"name": name, "text": name} for name in names]))
    progress = tmp_path / "c.jsonl"
    assert bench(tmp_path, "--check", "--samplings", "--prompts", str(prompts), "--progress", str(progress)) == 0
    out = capsys.readouterr().out
    for name in check_plan.SAMPLINGS:
        assert cells(out, name)[1:4] == ["15", "90", "0"]  # 3 prompts x 5 arms x 6 tokens
    ran = [json.loads(line)["cell"] for line in progress.read_text().splitlines()]
    for head in ("dense", "quantized"):
        assert any(cell.endswith(f"random widths, {head} head") for cell in ran)
    assert {f"seed {n}" for n in range(6)} == {part for cell in ran for part in cell.split(", ") if "seed" in part}
    assert "0 differing token ids in 540 compared." in out


@pytest.mark.usefixtures("command")
def test_check_fails_on_a_wrong_arm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An arm that writes one other token: exit 1 and the place of the difference."""

    def wrong(rig: Rig, task: Task, drafter: str, width: int) -> Arm:
        arm = block_arm(rig, task, drafter, width)

        def run(prompt: Prompt, stop: threading.Event) -> Sample:
            sample = arm.run(prompt, stop)
            return replace(sample, tokens=(*sample.tokens[:-1], sample.tokens[-1] ^ 1))

        return replace(arm, run=run) if (width, drafter) == (4, DENSE) else arm

    monkeypatch.setattr(check_plan, "block_arm", wrong)
    arguments = ("--check", "--no-random-widths", "--progress", str(tmp_path / "c.jsonl"))
    assert bench(tmp_path, *arguments) == 1
    out = capsys.readouterr().out
    assert cells(out, "block 4, dense head")[3] == "4"
    assert "DIFFERS: egg" in out
    assert "token 6 is" in out


@pytest.mark.usefixtures("command")
def test_an_interrupted_check_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of a cell: exit 130, finished cells kept, and the next run ends it."""

    def interrupted(rig: Rig, task: Task) -> Arm:
        arm = classic_arm(rig, task)
        runs = 0

        def run(prompt: Prompt, stop: threading.Event) -> Sample:
            nonlocal runs
            runs += 1
            if runs == 2:
                stop.set()
            return arm.run(prompt, stop)

        return replace(arm, run=run)

    arguments = ("--check", "--no-random-widths", "--progress", str(tmp_path / "c.jsonl"))
    with monkeypatch.context() as patch:
        patch.setattr(check_plan, "classic_arm", interrupted)
        assert bench(tmp_path, *arguments) == 130
    assert "18 of 36 cells are finished" in capsys.readouterr().out
    assert bench(tmp_path, *arguments) == 0


@pytest.mark.parametrize("wrong", [["--tokens", "1"], ["--pairs", "0"], ["--temperature", "-1"], ["--preset", "none"]])
def test_wrong_usage(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["bench", *wrong])
    assert done.value.code == 2


@pytest.mark.usefixtures("command")
def test_prompts_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--check", "--tokens", "100000") == 1
    assert "does not fit in 2048" in capsys.readouterr().err


def test_a_pair_without_a_head_has_nothing_to_measure(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Said with the engine's reason, not as an empty table."""
    without = Rig(replace(pair, drafter=None, info=replace(pair.info, drafter_reason="It has no MTP head.")), {}, 5)
    monkeypatch.setattr(bench_cli, "load_rig", lambda *_, **__: without)
    arguments: dict[str, Any] = {
        "model": None,
        "head": None,
        "prompts": None,
        "set": None,
        "random_widths": True,
        "progress": None,
        "samplings": False,
        "block": 5,
    }
    with pytest.raises(KnownError, match=r"no MTP to measure here\. It has no MTP head"):
        bench_cli._check(argparse.Namespace(**arguments), TASK, NEVER)
    without.close()


@pytest.mark.usefixtures("command")
def test_every_kernel_is_an_arm_and_leaves_its_own_trace(rig: Rig, tmp_path: Path) -> None:
    """Only the engaged one must write classic's ids; afterwards the target runs as it did."""
    scope = rig.target.scope
    before = scope.kernel, scope.block_limit
    bench(tmp_path, "--preset", "kernels", "--pairs", "1", "--out", str(tmp_path))
    assert (scope.kernel, scope.block_limit) == before
    (page,) = tmp_path.glob("kernels-*.md")
    text = page.read_text()
    arms = ("stock", "stock + one-row attention", "forced_qmv", "gather", "one_row")
    for name in arms:
        assert f"| block 3, {name} " in text, name
        moved = cells(text, f"products by {name}")[1:]
        assert sum(cell != "" for cell in moved) == 1, "in its own arm and nowhere else"
    assert "Not proven" not in text
    assert "DIFFERENT" not in text


@pytest.mark.usefixtures("command")
def test_a_shortlist_changes_what_is_drafted_and_not_the_text(rig: Rig, tmp_path: Path) -> None:
    usual, kept = next(iter(rig.drafters)), dict(rig.drafters)
    try:
        bench(tmp_path, "--preset", "shortlist", "--pairs", "1", "--out", str(tmp_path), "--tokens", "12")
        short = rig.drafters[f"{usual}, {rig.target.vocab_size // 8} tokens"]
        assert isinstance(short, ShortlistDrafter)
        whole = mx.random.normal((1, rig.target.model.args.text_config["hidden_size"]))
        few, ids = short._few(whole), short._ids
        assert mx.allclose(few, rig.target.logits(whole)[0][ids], rtol=1e-4, atol=1e-4), "the same rows"
        assert set(rig.pair.tokenizer.eos_ids) <= set(ids.tolist()), "an end can always be drafted"
        assert ids.shape[0] < rig.target.vocab_size // 4
    finally:
        for name in set(rig.drafters) - set(kept):
            del rig.drafters[name]
    (page,) = tmp_path.glob("shortlist-*.md")
    text = page.read_text()
    assert "DIFFERENT" not in text
    assert f"| block 4, {usual}, {rig.target.vocab_size // 4} tokens head " in text


@pytest.mark.usefixtures("command")
def test_sets_lengths_and_rest_are_in_the_record(tmp_path: Path) -> None:
    """Each length is an experiment of its own, over the prompts of the chosen kinds."""
    asked = ("--set", "code", "maths", "--tokens", "4", "6", "--pairs", "1", "--cooldown", "0.001")
    assert main(["bench", *asked, "--out", str(tmp_path)]) == 0
    (page,) = tmp_path.glob("mtp-*.md")
    text = page.read_text()
    for length in (4, 6):
        assert f"## Classic decode and MTP, {length} tokens" in text
        assert f"{length - 1} tokens after the first" in text
    assert "code: fibonacci (" in text
    assert "which were not run: code: parser, code: query, maths: product" in text, "one block, one prompt"
    assert "maths: train" in text
    assert "0.001 s of rest before every run" in text
    assert "chat: " not in text


def test_bundled_sets(rig: Rig) -> None:
    """Three prompts of each kind, all different."""
    prompts = read_sets(SETS, rig.pair.tokenizer)
    assert len(prompts) == len({p.name for p in prompts}) == len({p.tokens for p in prompts}) == 12
    assert {p.name.split(":")[0] for p in prompts} == set(SETS)


@pytest.mark.usefixtures("command")
def test_figures_that_vary_too_much_are_no_record_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An arm that differs from itself says nothing of others. Nothing is lost: they are kept elsewhere."""
    monkeypatch.setattr(machine, "SPREAD_LIMIT", -1.0)
    out = tmp_path / "out"
    assert bench(tmp_path, "--pairs", "2", "--out", str(out)) == 1
    said = capsys.readouterr().err
    assert "differed from itself by up to" in said
    assert list(out.iterdir()) == []
    kept = Path(said.split("above and in ")[1].split(".md")[0] + ".md")
    assert "not quiet enough" in kept.read_text()
    assert bench(tmp_path, "--pairs", "2", "--out", str(out), "--anyway") == 0
    (page,) = out.glob("mtp-*.md")
    assert "Kept anyway, as asked." in page.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--tokens", "1"),
        ("--tokens", "9", "9"),
        ("--pairs", "0"),
        ("--cooldown", "-1"),
        ("--cooldown", "nan"),
        ("--cooldown", "inf"),
        ("--context", "0"),
        ("--context", "-5"),
        ("--block", "1"),
        ("--block", "9"),
        ("--preset", FORCED_QMV, "--block", "4"),
        ("--seed", "-1"),
        ("--seed", "4294967296"),
        ("--check", "--tokens", "4", "5"),
        ("--check", "--temperature", "0.3"),
        ("--check", "--preset", "pace"),
        ("--samplings",),
        ("--progress", "x"),
        ("--preset", FORCED_QMV, "--set", "code"),
        ("--compare", "a", "b", "--pairs", "9"),
        ("--set", "x"),
    ],
)
def test_wrong_usage_of_the_benchmark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """Refused in words before anything is loaded. A context of 0 was once the whole set, -5 a cut of it; an option that
    does nothing here (`--check --temperature`) was once taken without a word."""
    monkeypatch.delattr(bench_cli, "load_rig")
    with pytest.raises(SystemExit) as done:
        main(["bench", *arguments])
    assert done.value.code == 2
    assert "pacenote bench: error: " in capsys.readouterr().err


@pytest.mark.parametrize("place", ["file/out", "file"])
@pytest.mark.parametrize("preset", ["mtp", FORCED_QMV])
def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str, preset: str
) -> None:
    """It was once found out when all was measured, and the record was lost."""
    monkeypatch.delattr(bench_cli, "load_rig")
    quiet = replace(machine.look(), busy=0.0)
    monkeypatch.setattr(machine, "look", lambda: quiet)
    (tmp_path / "file").write_text("")
    assert main(["bench", "--preset", preset, "--out", str(tmp_path / place)]) == 1
    said = capsys.readouterr().err
    assert "No record can be written to" in said
    assert "Nothing was measured." in said


@pytest.mark.usefixtures("command")
def test_too_few_blocks_are_no_record_and_have_no_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One pair once had the 95 % interval [x, x]: an A/A band near 0, and a record."""
    monkeypatch.setattr(machine, "FEWEST_PAIRS", 6)
    assert bench(tmp_path, "--pairs", "2", "--out", str(tmp_path / "out")) == 1
    said = capsys.readouterr()
    assert "Only 2 blocks: fewer than 6 have no 95 % interval" in said.err
    assert "none, too few pairs" in said.out
    assert machine.settled(0.01, 6, anyway=False) == ("", True)
    assert machine.settled(0.01, 5, anyway=True)[0].endswith("Kept anyway, as asked.")


@pytest.mark.usefixtures("command")
def test_the_page_says_what_its_figures_are_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which prompts ran and how often, how many replies there were, what lies behind their end, whose hook is where."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path.parents[1])  # the pair lies beside this test's folder
    assert bench(tmp_path, "--pairs", "1", "--out", str(tmp_path / "out")) == 0
    (page,), (raw,) = (list((tmp_path / "out").glob(f"*{suffix}")) for suffix in (".md", ".jsonl"))
    text, rows = page.read_text(), [json.loads(line) for line in raw.read_text().splitlines()]
    assert "1 block, prompts in turn: prompt 1 (" in text
    assert "Too few blocks for these prompts, which were not run: egg." in text
    assert "The reference arm wrote 1 different reply;" in text
    assert "run past an end of reply (EOS)" in text or "None of them runs past an end of reply (EOS)." in text
    assert str(tmp_path.parents[1]) not in json.dumps([rows[0]["model"], rows[0]["drafters"]])
    assert rows[0]["model"]["path"].startswith("~/")
    assert str(tmp_path.parents[1]) not in text.split("## Environment")[1].split("## How")[0]
    assert re.search(r"\| Pacenote +\| \S+, engine source [0-9a-f]{16} ", text)

    name = "block 2, quantized head"
    samples = [row["sample"] for row in rows if row["kind"] == "stage sample" and row["arm"] == name]
    rounds = sum(s["stats"]["rounds"] for s in samples)
    first = sum(s["first_hook_ms"] for s in samples)
    hook = (sum(s["stats"]["hook_ms"] for s in samples) - first) / (rounds - len(samples))
    stages = text.split("### Stages of a round, from extra runs with detailed timing (prompt 1)")[1].split("###")[0]
    shown = cells(stages, name)
    assert shown[1:3] == [str(len(samples)), str(rounds)]
    assert shown[6].split(" ")[0] == f"{hook:.2f}"
    assert shown[8] == f"{first / len(samples):.2f}"
    shares = [int(cell.split("(")[1].rstrip("%)")) for cell in shown[3:8]]
    assert abs(sum(shares) - 100) <= 2
    classic = [row["sample"]["seconds"] for row in rows if row["kind"] == "stage sample" and row["arm"] == "classic"]
    assert len(classic) == len(samples), "the bound is a ratio of runs in the same blocks"
    ms = sum(s["stats"][stage] for s in samples for stage in ("verify_ms", "rollback_ms", "host_ms"))
    assert shown[9] == f"{(5 * len(samples) / ms * 1e3) / (5 * len(classic) / sum(classic)):.2f}"


def test_what_lies_behind_the_end_of_a_reply_is_counted() -> None:
    """An end as the very last token leaves nothing behind it."""
    told = _behind({("a", (1, 2, 9, 4, 5)), ("b", (1, 2, 3, 4, 9)), ("c", (1, 2, 3, 4, 5))}, frozenset({9}))
    assert told == "2 of them run past an end of reply (EOS); 13% of their tokens lie behind one."
    assert _behind({("a", (1, 2))}, frozenset({9})) == "None of them runs past an end of reply (EOS)."
