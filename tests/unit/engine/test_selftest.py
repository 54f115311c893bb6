"""The self-test: nothing that a check does escapes it, and what it reports is what it saw."""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
import tests.support.texts  # noqa: F401 - loads the hypothesis profile
from engine.cli import selftest as cli
from engine.cli.main import main
from engine.errors import CheckpointError
from engine.exactness.kernels import ForcedQmv, Gather, MatmulKernel, OneRow, QmvRows, Stock
from engine.exactness.kernels.base import Scope
from engine.exactness.kernels.qmv_rows import Served
from engine.exactness.ladder import linear_shapes
from engine.exactness.modules import _wrapped
from engine.loading import Pair
from engine.request import LoadOptions
from engine.selftest import installation, launch, machine, metal, suite
from engine.selftest.check import Check, Failed, Finding, Outcome, Result, Skip, run
from engine.selftest.child import NoChild, run_apart
from engine.selftest.kernels import kernel_of
from engine.selftest.pair import PairChecks
from engine.selftest.report import WIDTH, Report, lines_of, without_home
from engine.target import Rows
from tests.support.doubles import NeverTheSame
from tests.support.selftest_child import ROOT, chosen, command
from tests.unit.repo.tree import tracked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="child processes share a pipe by its number")


def outcome(check: object) -> Result:
    return run(Check("it", check))  # type: ignore[arg-type]


# -- one check ---------------------------------------------------------------------------------------------


def test_whatever_a_check_raises_is_its_result() -> None:
    """A reason, an error in words and a bug each have an outcome; of a bug the traceback is kept."""

    def skips() -> Finding:
        raise Skip("not here")

    def knows() -> Finding:
        raise CheckpointError("It is broken.", kept="The rest works.", todo="Mend it.", detail="line 1\nline 2")

    def has_seen() -> Finding:
        raise Failed("Wrong.", todo="Mend it.", facts={"n": 3})

    def bug() -> Finding:
        return 1 / 0  # type: ignore[return-value]

    assert (outcome(skips).outcome, outcome(skips).text) == (Outcome.SKIPPED, "not here")
    known = outcome(knows)
    assert (known.outcome, known.text, known.todo) == (Outcome.FAILED, "It is broken. The rest works.", "Mend it.")
    assert known.lines == ("line 1", "line 2")
    assert outcome(has_seen).facts == {"n": 3}
    unknown = outcome(bug)
    assert unknown.outcome is Outcome.FAILED
    assert unknown.text == "ZeroDivisionError: division by zero"
    assert any("return 1 / 0" in line for line in unknown.lines)
    assert "Report" in unknown.todo


# -- processes ---------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_a_crash_costs_its_own_check_only() -> None:
    """An abort, an exit and an endless check fail with what happened; those behind them run in another process."""
    keys = ["fine", "crash", "skip", "leave", "chatter", "hang", "fine"]
    results = list(run_apart(chosen(keys), command))
    assert [result.key for result in results] == keys
    ok, failed, skipped = Outcome.OK, Outcome.FAILED, Outcome.SKIPPED
    assert [result.outcome for result in results] == [ok, failed, skipped, failed, ok, failed, ok]
    crashed, left, hung = results[1], results[3], results[5]
    assert signal.strsignal(signal.SIGABRT) in crashed.text
    assert "some library: assertion failed" in crashed.lines
    assert "exit status 3" in left.text
    assert "did not end within" in hung.text
    assert results[0].lines == ("a line",)
    pids = [result.facts["pid"] for result in results if result.outcome is ok]
    assert os.getpid() not in pids
    assert len(set(pids)) == 3, "a new process after each that was lost"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([sys.executable, "-c", "print('another program')"], "exit status 0, another program"),
        ([sys.executable, "-c", "import sys; sys.exit('no such option')"], "exit status 1, no such option"),
        (["/no/such/program"], "no second process could be started"),
    ],
)
def test_a_program_that_is_no_child_is_said(words: list[str], why: str) -> None:
    """A bundle whose launcher does something else: the caller learns it before the first result."""
    with pytest.raises(NoChild, match=re.escape(why)):
        list(run_apart(chosen(["fine"]), lambda *_: words))


def test_a_killed_self_test_leaves_no_process(tmp_path: Path) -> None:
    """The child ends with its parent, although nobody could tell it."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    words = [sys.executable, "-m", "tests.support.selftest_child", "parent", "tell"]
    parent = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "SELFTEST_FIFO": str(fifo)})
    with fifo.open(encoding="utf-8") as alive:
        assert alive.readline() == "here\n"
        parent.kill()
        parent.wait()
        assert alive.read() == "", "end of file: the process that held the other end is gone"


def test_the_program_starts_itself_again() -> None:
    """With this Python, or with a launcher that is none."""
    done = subprocess.run(launch.own_command(["--version"]), capture_output=True, text=True, cwd="/", check=False)
    assert done.stdout == f"pacenote {metadata.version('pacenote')}\n"


def test_a_bundles_launcher_takes_the_arguments_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/Applications/Pacenote.app/Contents/MacOS/Pacenote")
    assert launch.own_command(["--self-test"]) == [sys.executable, "--self-test"]


# -- installation ------------------------------------------------------------------------------------------


def test_versions_that_do_not_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other extras and other systems ask nothing of this machine."""
    assert metadata.version("mlx") in installation.versions().text
    needs = ["mlx>=99", "no-such-package", "psutil>=6", 'x; extra == "dev"', 'y; sys_platform == "win32"', "PySide6>99"]
    monkeypatch.setattr(metadata, "requires", lambda _: needs)
    with pytest.raises(Failed) as wrong:
        installation.versions()
    assert f"mlx is {metadata.version('mlx')}, >=99 is needed; no-such-package is absent." in wrong.value.what
    assert "psutil" not in wrong.value.what


def test_a_missing_demo_file_is_named(tmp_path: Path) -> None:
    """And so is nothing else: the list is what lies in resources/."""
    for name in installation.NEEDED:
        place = tmp_path / "resources" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    installation.resources(tmp_path)
    (tmp_path / "resources/demo/head/model.safetensors").unlink()
    with pytest.raises(Failed) as wrong:
        installation.resources(tmp_path)
    assert wrong.value.lines == ("resources/demo/head/model.safetensors is missing",)


def test_all_data_that_ships_is_looked_for() -> None:
    shipped = {str(path.relative_to("resources")) for path in tracked("resources") if path.suffix != ".py"}
    optional = {name for name in shipped if name.endswith("generation_config.json")}
    assert shipped - optional == set(installation.NEEDED)


def test_installed_files_are_compared_with_pips_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file as in the wheel, one changed, one gone; what is not ours is not judged."""
    info = tmp_path / "pacenote-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pacenote\nVersion: 1\n")
    for name in ("engine/a.py", "resources/b.json", "other/d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    empty = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    other = "sha256=Pn2_gL2lmfT3mMsb5iNpIJ1LjsqOTo4PK9eSBBT42Jw"
    rows = [f"engine/a.py,{empty},0", f"resources/b.json,{other},0", f"app/c.py,{empty},0", f"other/d.py,{other},0"]
    (info / "RECORD").write_text("\n".join([*rows, "engine/__pycache__/a.pyc,,"]))
    here = metadata.Distribution.at(info)
    monkeypatch.setattr(metadata, "files", lambda _: here.files)
    with pytest.raises(Failed) as wrong:
        installation.resources()
    assert wrong.value.lines == ("resources/b.json has other bytes than in the wheel", "app/c.py is missing")


# -- machine -----------------------------------------------------------------------------------------------


def test_the_library_that_is_loaded_is_found() -> None:
    """Read from the process itself, not guessed from where Python found the package."""
    (library,) = metal.loaded_mlx(metal.loaded_images())
    assert library.parent == Path(mx.__file__).resolve().parent / "lib"


@pytest.mark.parametrize("place", metal.PLACES)
def test_kernels_beside_the_library_are_found(tmp_path: Path, place: str) -> None:
    library = tmp_path / "libmlx.dylib"
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_bytes(b"1234")
    assert str(tmp_path / place) in machine.beside_libmlx([library]).text


def test_kernels_in_another_folder_do_not_count(tmp_path: Path) -> None:
    """What a packager that moves libraries makes of MLX: it imports, and fails at the first product."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "mlx.metallib").touch()
    with pytest.raises(Failed, match=r"no mlx\.metallib in .*/lib"):
        machine.beside_libmlx([tmp_path / "lib/libmlx.dylib"])
    with pytest.raises(Failed, match="2 MLX libraries"):
        machine.beside_libmlx([tmp_path / "a/libmlx.dylib", tmp_path / "b/libmlx.dylib"])


def test_a_mac_without_metal_is_no_mac_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    if mx.default_device() != mx.cpu:
        pytest.skip("this machine has a GPU")
    assert "computes on cpu" in machine.device().text
    for check in (machine.metallib, machine.gpu, machine.compiler):
        assert outcome(check).outcome is Outcome.SKIPPED
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(Failed, match="no Metal device"):
        machine.device()
    monkeypatch.setattr(machine, "_loaded_mlx", lambda: [Path("/nowhere/libmlx.dylib")])
    with pytest.raises(Failed, match=r"no mlx\.metallib"):
        machine.metallib()


def test_the_right_result_of_the_gpus_product_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tried on the CPU, which multiplies whole numbers as exactly; one that does not is found."""
    monkeypatch.setattr(machine, "_require_gpu", lambda: None)
    assert "right result" in machine.gpu().text
    real = mx.arange
    monkeypatch.setattr(mx, "arange", lambda *a, **k: real(*a, **k) * (1 + 2**-20))
    with pytest.raises(Failed, match="came out wrong"):
        machine.gpu()


def test_a_full_disk_fails_with_what_to_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_bytes(b"x" * 2048)
    places = {"verdicts": tmp_path / "kept", "models": tmp_path / "models"}
    found = machine.room_on(places, measured=("verdicts",))
    assert "holds 2.0 KiB" in found.lines[0]
    assert "not there yet" in found.lines[1]
    assert machine.bytes_in(tmp_path, seconds=-1) == (0, False)
    monkeypatch.setattr(machine, "free_bytes", lambda folder: 1000 if folder.name == "models" else 2**40)
    with pytest.raises(Failed, match="no room left for models") as wrong:
        machine.room_on(places, measured=())
    assert "Free some space" in wrong.value.todo


# -- the pair ----------------------------------------------------------------------------------------------


@pytest.fixture
def checks(pair: Pair) -> PairChecks:
    return PairChecks(LoadOptions(target="tiny"), tokens=40, load=lambda _: pair)


def test_a_pair_that_is_well(checks: PairChecks, pair: Pair) -> None:
    """It loads, its verdict holds, every product has its kernel, and MTP writes what classic decode writes."""
    assert pair.info.weights_hash in "".join(checks.load().lines)
    assert checks.exactness().facts["verdict"]["widths"] == (2, 3, 4, 5)
    table = checks.kernels()
    quantized = {f"{w.inputs} x {w.outputs}, {w.bits} bit" for w in linear_shapes(pair.target)}
    assert {row["inputs x outputs"] for row in table.facts["modules"]} >= quantized
    assert {row["kernel in a verify block"] for row in table.facts["modules"]} == {pair.info.verdict.kernel}
    compared = checks.tokens()
    assert compared.text == "40 of 40 tokens are equal"
    assert compared.facts["identical"]
    assert compared.facts["drafted"] > 0
    assert any("no benchmark" in line for line in compared.lines)


@pytest.mark.parametrize(
    "kernel",
    [None, Stock(), ForcedQmv(64), Gather(), OneRow(), QmvRows(64, ())],
    ids=lambda k: getattr(k, "name", "none"),
)
@pytest.mark.parametrize("outputs", [96, 100])
def test_the_kernel_in_the_table_is_the_one_that_runs(kernel: MatmulKernel | None, outputs: int) -> None:
    """A kernel leaves layers that it has no view of to single rows. Told by the calls that a layer gets."""
    made = [nn.Linear(512, outputs), nn.QuantizedLinear(512, outputs), nn.QuantizedLinear(128, outputs)]
    made.append(nn.QuantizedEmbedding(outputs, 512))
    for module in made:
        scope = Scope()
        scope.kernel, scope.active = kernel, True
        (wrapped,) = _wrapped([module], scope)
        single: list[int] = []
        stock = wrapped.stock
        object.__setattr__(
            wrapped, "stock", lambda x, stock=stock, single=single: single.append(x.shape[-2]) or stock(x)
        )
        inputs = module.weight.shape[1] * (32 // module.bits if "scales" in module else 1)
        x = mx.ones((1, 3, inputs))
        mx.eval(wrapped.as_linear(x) if isinstance(module, nn.QuantizedEmbedding) else wrapped(x))
        told = kernel_of(kernel, wrapped)
        assert (told == "one_row") == (single == [1, 1, 1]), (module, told, single)
        assert (told == "stock") == (single == [3])
    served = QmvRows(64, [Served(512, outputs, 4, 64, True)])
    assert [kernel_of(served, module) for module in made][1:] == [
        "qmv_rows",
        kernel_of(ForcedQmv(64), made[2]),
        "qmv_rows",
    ]


def test_text_that_differs_fails(checks: PairChecks, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verify forward that gives other logits than single steps: what the whole product promises not to happen."""
    real = pair.target.verify

    def shifted(*arguments: object) -> Rows:
        rows = real(*arguments)  # type: ignore[arg-type]
        return rows._replace(logits=mx.roll(rows.logits, 1, axis=-1))

    monkeypatch.setattr(pair.target, "verify", shifted)
    result = outcome(checks.tokens)
    assert result.outcome is Outcome.FAILED
    assert re.match(r"With MTP token \d+ is \d+ where the reference has \d+", result.text)
    assert "Switch MTP off" in result.todo
    assert result.facts["identical"] is False


def test_a_kept_verdict_that_no_longer_holds_fails(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was engaged stays engaged, so that the checks behind it see what a chat would."""
    kept = replace(pair, info=replace(pair.info, verdict=replace(pair.info.verdict, widths=(2,), cached=True)))
    checks = PairChecks(LoadOptions(target="tiny", max_block=2), load=lambda _: kept)
    engaged = pair.target.scope.kernel, pair.target.scope.block_limit
    assert "kept from an earlier run agrees" in checks.exactness().lines[0]
    monkeypatch.setattr(mx, "quantized_matmul", NeverTheSame())
    result = outcome(checks.exactness)
    assert result.outcome is Outcome.FAILED
    assert "widths 2 are exact" in result.text
    assert (pair.target.scope.kernel, pair.target.scope.block_limit) == engaged


def test_a_pair_that_does_not_load_fails_once() -> None:
    """The checks behind it say that they had nothing to look at."""

    def broken(_: LoadOptions) -> Pair:
        raise CheckpointError("config.json is missing.", todo="Download it again.")

    checks = PairChecks(LoadOptions(), load=broken)
    assert outcome(checks.load).text == "config.json is missing."
    for later in (checks.exactness, checks.kernels, checks.tokens):
        assert outcome(later).outcome is Outcome.SKIPPED


def test_a_lost_head_fails_with_the_demo_and_is_skipped_elsewhere(pair: Pair) -> None:
    """A model of the user's may have none; the bundled one has."""
    bare = replace(pair, drafter=None, info=replace(pair.info, drafter=None, drafter_reason="No mtp tensors."))
    demo, other = (PairChecks(LoadOptions(target), load=lambda _: bare) for target in (None, "x"))
    assert outcome(demo.load).outcome is Outcome.FAILED
    assert outcome(other.load).outcome is Outcome.OK
    assert outcome(other.tokens).text == "There is no MTP head: No mtp tensors."


# -- the report --------------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=300)
results = st.builds(
    Result, st.text("abcdefgh", min_size=1, max_size=12), st.sampled_from(Outcome), texts, texts,
    st.lists(texts, max_size=3).map(tuple),
)  # fmt: skip


@given(st.lists(results, min_size=1, max_size=5))
def test_a_report_says_every_word_in_its_column(found: list[Result]) -> None:
    """Nothing is lost by wrapping, and no text runs into the columns at the left of it."""
    keys = [result.key for result in found]
    margin = 8 + max(map(len, keys)) + 2
    for result in found:
        lines = lines_of(result, keys)
        assert lines[0].split()[:2] == ["FAILED" if result.outcome is Outcome.FAILED else result.outcome, result.key]
        assert all(line[:margin].strip() == "" for line in lines[1:])
        said = " ".join(line[margin:] for line in lines).split()
        assert set(without_home(" ".join((result.text, *result.lines, result.todo))).split()) <= set(said)
        assert all(len(line) <= WIDTH or " " not in line.strip() or line.strip() in result.lines for line in lines[1:])


def test_no_report_names_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Home folders are written ~ in texts, lines and facts; folders that only begin alike are not."""
    monkeypatch.setenv("HOME", "/home/ann")
    told = without_home({"a": ["/home/ann", "see /home/ann/x.json."], "b": "/home/anna/x /mnt/home/ann/x"})
    assert told == {"a": ["~", "see ~/x.json."], "b": "/home/anna/x /mnt/home/ann/x"}


# -- the command -------------------------------------------------------------------------------------------


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    """The command with checks of the test's own, in this process: a child would have the real ones."""
    mine = [Check("good", lambda: Finding("well")), Check("absent", skips)]
    monkeypatch.setattr(cli, "suite", lambda _: mine)
    monkeypatch.setattr(cli, "own_command", lambda _: ["/no/such/program"])
    return mine


def skips() -> Finding:
    raise Skip("not on this machine")


def test_the_exit_status_says_whether_something_failed(
    inside: list[Check], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """0 with skipped checks, 1 with a failed one; the JSON file has what the text says."""
    file = tmp_path / "report.json"
    assert main(["--self-test", "--out", str(file)]) == 0
    said = capsys.readouterr().out
    assert (
        "ok      good    well\nskipped absent  not on this machine\n2 checks in 0 s: 1 ok, 1 skipped, 0 FAILED" in said
    )
    assert "Not every check ran in a process of its own: no second process could be started" in said
    told = json.loads(file.read_text())
    assert engine.self_test_text(told) == said.strip(), "the file says all that the report says"
    assert (told["version"], told["passed"]) == (1, True)
    assert [check["outcome"] for check in told["checks"]] == ["ok", "skipped"]
    inside.append(Check("bad", lambda: Finding(str(1 / 0))))
    assert main(["doctor", "--self-test", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False


def test_a_report_that_cannot_be_written_is_still_printed(
    inside: list[Check], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["doctor", "--self-test", "--out", str(tmp_path / "no/such/folder.json")]) == 1
    said = capsys.readouterr()
    assert "2 checks" in said.out
    assert "cannot be written" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ["--out", "x.json"],
        ["--self-test", "--check-updates"],
        ["--self-test", "--gpu", "applegpu_g16s"],
        ["--self-test", "--nothing"],
    ],
)
def test_wrong_usage_is_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["doctor", *words])
    assert done.value.code == 2


def test_without_a_window_its_checks_are_skipped_and_a_broken_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine alone is a whole installation; a window that does not import is none."""
    monkeypatch.setattr(suite, "WINDOW", "no_such_app.selftest.checks")
    assert [outcome(c.run).outcome for c in suite.suite(LoadOptions()) if c.key == "window"] == [Outcome.SKIPPED]

    def broken(name: str) -> object:
        raise ImportError("libEGL.so.1: cannot open shared object file", name=name)

    monkeypatch.setattr(importlib, "import_module", broken)
    assert [outcome(c.run).outcome for c in suite.suite(LoadOptions()) if c.key == "window"] == [Outcome.FAILED]


def test_the_page_about_the_report_names_all_of_it() -> None:
    """docs/self_test.md describes every check and every field of the JSON."""
    page = (ROOT / "docs/self_test.md").read_text(encoding="utf-8")
    report = Report((outcome(skips),), datetime.now(UTC), 0.0).to_json()
    named = {*report, *report["checks"][0], *(check.key for check in suite.suite(LoadOptions()))}
    assert not {name for name in named if f"`{name}`" not in page}
    assert f"**version {report['version']}**" in page
