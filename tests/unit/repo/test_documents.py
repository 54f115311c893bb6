"""What README and the other documents promise is there: links, make targets, commands, options, folders."""

import re
from pathlib import Path

import pytest

from app.paths import resolve
from engine.cli.main import main
from tests.unit.repo.tree import ROOT, tracked

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_and_make_targets_exist() -> None:
    """Every relative link in the documents leads to a file, and every `make` target they name is in the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for path in tracked():
        if path.suffix != ".md":
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text):
            assert (ROOT / path.parent / link).exists(), f"{path}: {link}"
        for target in re.findall(r"(?:`|^)make ([a-z]+)", text, re.M):
            assert target in targets, f"{path}: make {target}"


def test_a_newcomer_types_two_commands() -> None:
    """`make run` and `make test` stand alone in their blocks: nothing else has to be typed."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)
    assert "make run\n" in blocks
    assert "make test\n" in blocks


def test_commands_and_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Each `pacenote COMMAND --option` in README is one that the program takes."""
    said = set(re.findall(r"pacenote ([a-z]+(?:-[a-z]+)*)(?: (--[a-z-]+))?", README))
    assert said
    for command, option in sorted(said):
        with pytest.raises(SystemExit) as done:
            main([command, "--help"])
        assert done.value.code == 0, command
        assert option in capsys.readouterr().out, f"{command} {option}"


def test_data_lives_where_readme_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folders in README are the ones that the window uses on this platform."""
    for name in ("PACENOTE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    paths = resolve()
    for folder in (paths.data, paths.config, paths.logs):
        assert f"`~/{folder.relative_to(tmp_path)}`" in README
