"""The `pacenote` command: exit codes, known errors, the window, doctor and probe."""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import engine
from engine.cli import chat, doctor, probe
from engine.cli.figures import drafter_line
from engine.cli.loading import ProgressLine
from engine.cli.main import main
from engine.events import DrafterInfo, LoadProgress
from engine.loading import Pair
from tests.support.rounds import INFO


def test_a_known_error_is_sentences_and_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "--prompt", "x", "--model", "/no/such/folder"]) == 1
    said = capsys.readouterr()
    assert "There is no folder /no/such/folder.\nGive the path" in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


@pytest.mark.parametrize("words", [["models"], ["chat", "--prompt", "x", "--model", "owner/name"]], ids=lambda w: w[0])
def test_an_endpoint_that_is_no_address_is_a_known_error(words: list[str]) -> None:
    """Was: a traceback, as `huggingface_hub` takes it apart when it is imported. Hence a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"HF_ENDPOINT": "http://[::1"},
    )
    assert done.returncode == 1
    assert "HF_ENDPOINT is no address of a hub" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the user's environment did is worded; everything else must reach us whole."""

    def broken(_: object) -> object:
        raise RuntimeError("a bug")

    monkeypatch.setattr(chat, "load_engine", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["chat", "--prompt", "x"])


def test_an_interrupted_load_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def cancelled(_: object) -> object:
        raise engine.LoadCancelled

    monkeypatch.setattr(chat, "load_engine", cancelled)
    assert main(["chat", "--prompt", "x"]) == 130


def test_python_m_works_and_help_names_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli", "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    for name in ("chat", "bench", "probe", "doctor"):
        assert f"\n  {name} " in done.stdout.replace("    ", "  ")


def test_the_command_starts_without_mlx() -> None:
    """A window should be up, and help printed, before MLX has been imported, which takes seconds."""
    code = "import sys; from engine.cli.main import parser; parser(); print('mlx.core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


# -- the window -------------------------------------------------------------------------------------------


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What an import by name finds instead of Qt and the app: a module, or an error to raise."""
    found: dict[str, object] = {"PySide6.QtWidgets": SimpleNamespace(), "app.main": SimpleNamespace(main=lambda: 7)}

    def look(name: str) -> object:
        if isinstance(found[name], BaseException):
            raise found[name]
        return found[name]

    monkeypatch.setattr(importlib, "import_module", look)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    return found


def test_without_a_command_the_window_opens(modules: dict[str, object]) -> None:
    """Its exit code is ours."""
    assert main([]) == 7


@pytest.mark.parametrize(
    ("module", "error", "words"),
    [
        ("PySide6.QtWidgets", ModuleNotFoundError("No module named 'PySide6'", name="PySide6"), "Qt cannot be loaded"),
        ("PySide6.QtWidgets", ImportError("libEGL.so.1: cannot open shared object file"), "libEGL.so.1"),
        ("app.main", ModuleNotFoundError("No module named 'app'", name="app"), "not part of this installation"),
    ],
)
def test_no_window_says_why_and_what_works(
    modules: dict[str, object], capsys: pytest.CaptureFixture[str], module: str, error: ImportError, words: str
) -> None:
    modules[module] = error
    assert main([]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "pacenote chat" in said


@pytest.mark.skipif(sys.platform != "linux", reason="macOS always has a display server")
def test_no_display_is_said_before_qt_would_abort(
    modules: dict[str, object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert main([]) == 2
    assert "no display" in capsys.readouterr().err


def test_a_broken_import_inside_the_app_is_a_bug(modules: dict[str, object]) -> None:
    modules["app.main"] = ModuleNotFoundError("No module named 'tomlkitt'", name="tomlkitt")
    with pytest.raises(ModuleNotFoundError, match="tomlkitt"):
        main([])


# -- doctor and probe -------------------------------------------------------------------------------------


@pytest.fixture
def loaded(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setattr(doctor, "load_bare_pair", lambda _: pair)
    monkeypatch.setattr(probe, "load_bare_pair", lambda _: pair)
    return pair


def test_doctor_as_text_and_as_json(loaded: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """The same facts for people and for programs."""
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["problem"] == ""
    assert report["model"]["weights_hash"] == loaded.info.weights_hash
    for fact in (
        loaded.info.weights_hash,
        loaded.info.device,
        report["environment"]["mlx"],
        loaded.info.verdict.reason,
    ):
        assert fact in text
    assert "no table for x86_64" in text or "routing of quantized products" in text
    assert main(["doctor", "--gpu", "applegpu_g16s"]) == 0
    assert "routing of quantized products on applegpu_g16s" in capsys.readouterr().out


def test_doctor_reports_a_pair_that_does_not_load(capsys: pytest.CaptureFixture[str]) -> None:
    """The patient may be ill; the doctor still says what is known. Exit 1."""
    assert main(["doctor", "--model", "/no/such/folder"]) == 1
    text = capsys.readouterr().out
    assert "cannot be loaded. There is no folder" in text
    assert "versions" in text


def test_probe_prints_the_verdict(loaded: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--explain"]) == 0
    said = capsys.readouterr().out
    assert loaded.info.verdict.reason in said
    for width in range(2, 6):
        assert f"width {width}  every operation gives the bytes of single rows" in said


def test_probe_measures_anew_when_asked(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kept verdict says so, and how to get another."""
    asked = []
    kept = replace(pair, info=replace(pair.info, verdict=replace(pair.info.verdict, cached=True)))
    monkeypatch.setattr(probe, "load_bare_pair", lambda options: (asked.append(options.probe_again), kept)[1])
    assert main(["probe"]) == 0
    assert "--again measures anew" in capsys.readouterr().out
    assert main(["probe", "--again"]) == 0
    assert asked == [False, True]


def test_probe_fails_where_the_engine_declined(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script can ask "is it exact here" by exit code."""
    declined = engine.Verdict(engine.ExactnessState.DECLINED, "", "At width 2 the bytes differ.")
    other = replace(pair, info=replace(pair.info, verdict=declined))
    monkeypatch.setattr(probe, "load_bare_pair", lambda _: other)
    assert main(["probe"]) == 1
    assert "At width 2 the bytes differ." in capsys.readouterr().out


def test_progress_is_one_line_on_a_terminal_and_a_log_elsewhere(tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    steps = [LoadProgress("Reading", 1, 4), LoadProgress("Reading", 4, 4), LoadProgress("Checking")]
    written = {}
    for out in (Terminal(), io.StringIO()):
        with ProgressLine(out) as line:
            for step in steps:
                line.show(step)
        written[out.isatty()] = out.getvalue()
    assert written[False] == "Reading\nChecking\n"
    assert written[True].endswith("Checking\r\x1b[K"), "the line is wiped for what comes next"
    assert "Reading 25 %" in written[True]


def test_the_drafter_is_told_with_who_decided_and_the_bytes_of_each_form() -> None:
    """The switch's effect can be read in `pacenote doctor` and `/status`: which, from where, how much."""
    drafter = DrafterInfo("here", "dense bfloat16", "setting", 4 << 20, 4 << 20, packed_bytes=1 << 20)
    told = drafter_line(replace(INFO, drafter=drafter))
    assert told == "dense bfloat16, by setting; in memory 4.0 MiB, quantized 1.0 MiB, 16-bit 4.0 MiB"
    assert drafter_line(replace(INFO, drafter=None, drafter_reason="No head.")) == "none: No head."
