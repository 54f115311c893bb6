"""What README and the other documents promise is there: links, make targets, commands, options, folders."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from app.menus import MENUS
from app.paths import resolve
from engine.cli.main import main
from tests.unit.repo.tree import ROOT, tracked

README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs/user_guide.md").read_text(encoding="utf-8")


def test_links_and_make_targets_exist() -> None:
    """Every relative link in the documents leads to a file, and every `make` target they name is in the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for path in tracked():
        if path.suffix != ".md":
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text):
            assert (ROOT / path.parent / link).exists(), f"{path}: {link}"
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", text, re.M):
            assert target in targets, f"{path}: make {target}"


def test_a_newcomer_types_two_commands() -> None:
    """`make run` and `make test` stand alone in their blocks: nothing else has to be typed."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)
    assert "make run\n" in blocks
    assert "make test\n" in blocks


def test_commands_and_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Each `pacenote COMMAND --option` in README and the user guide is one that the program takes."""
    said = set(re.findall(r"pacenote ([a-z]+(?:-[a-z]+)*)(?: [A-Z/]+)?(?: (--[a-z-]+))?", README + GUIDE))
    assert said
    for command, option in sorted(said):
        with pytest.raises(SystemExit) as done:
            main([command, "--help"])
        assert done.value.code == 0, command
        assert option in capsys.readouterr().out, f"{command} {option}"


def test_data_lives_where_readme_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folders in README and the user guide are the ones that the window uses on this platform."""
    for name in ("PACENOTE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    paths = resolve()
    for folder in (paths.data, paths.config, paths.logs):
        for document in (README, GUIDE):
            assert f"`~/{folder.relative_to(tmp_path)}`" in document


def test_the_guide_lists_every_shortcut() -> None:
    """The keys of the menus are the ones in the user guide, with the name that the menu has."""
    table = dict(re.findall(r"^\| (\S.*?) \| (.*?) \|$", GUIDE.split("## Keyboard")[1].split("\n## ")[0], re.M))
    for entry in (entry for _, entries in MENUS for entry in entries if entry is not None and entry.shortcuts):
        keys = " or ".join(shortcut.replace("+", "-") for shortcut in entry.shortcuts)
        assert table.get(keys) == entry.text.rstrip("…"), entry


# -- the drawing -------------------------------------------------------------------------------------------


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("draw_architecture")


def test_the_drawing_is_what_the_code_says(drawing: ModuleType) -> None:
    """When it fails: `python docs/draw_architecture.py` draws it anew."""
    assert drawing.draw(drawing.modules()) == drawing.PICTURE.read_text(encoding="utf-8")


def test_data_walks_from_the_checkpoint_to_the_window(drawing: ModuleType) -> None:
    """Arrows lead down: no room is drawn above one that it uses, and the engine never uses the window."""
    trees = drawing.modules()
    pairs = drawing.edges(trees)
    assert ("engine.target", "engine.drafter") in pairs
    assert not [(used, user) for used, user in pairs if used.startswith("app") and user.startswith("engine")]
    level = {room: cell.level for row in drawing.arrange(pairs) for cell in row for room in cell.rooms}
    knot = drawing.knots(pairs)
    assert not [(used, user) for used, user in pairs if level[used] >= level[user] and user not in knot[used]]
    order = ("checkpoint", "target", "drafter", "decode", "engine")
    assert sorted(order, key=lambda room: level[f"engine.{room}"]) == list(order)


def test_what_follows_from_other_arrows_is_not_drawn(drawing: ModuleType) -> None:
    """And rooms that use each other are found, also over a third."""
    assert drawing.reduced({("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}) == {("a", "b"), ("b", "c"), ("a", "d")}
    assert drawing.knots({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")})["b"] == ("a", "b", "c")
