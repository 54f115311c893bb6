"""One table drives file, dialog and defaults."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.settings import Applies, Settings, SettingsFile, Spec, specs
from app.settings.dialog import SettingsDialog
from engine import KnownError, LoadOptions, Sampler, Speculation


def values(spec: Spec) -> st.SearchStrategy[Any]:
    if spec.choices:
        return st.sampled_from([stored for stored, _ in spec.choices])
    if spec.kind is bool:
        return st.booleans()
    if spec.kind is int:
        return st.integers(int(spec.low or 0), int(spec.high if spec.high is not None else 10**6))
    if spec.kind is float:
        return (
            st.floats(spec.low or 0.0, spec.high or 1.0)
            .map(lambda value: round(value, spec.decimals))
            .filter(lambda value: (spec.low or 0.0) <= value <= (spec.high or 1.0))
        )
    return st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


any_settings = st.fixed_dictionaries({spec.key: values(spec) for spec in specs()}).map(
    lambda chosen: Settings(**chosen)
)


@given(any_settings)
@hypothesis_settings(max_examples=60, deadline=None)
def test_the_file_gives_back_what_was_saved(tmp_path_factory: pytest.TempPathFactory, chosen: Settings) -> None:
    file = SettingsFile(tmp_path_factory.mktemp("s") / "settings.toml")
    file.save(chosen)
    assert file.load() == chosen
    assert file.problems == []


def test_a_missing_file_is_the_defaults(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "none.toml")
    assert file.load() == Settings()
    assert file.problems == []


def test_comments_and_foreign_keys_stay(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('# mine\n[sampling]\ntemperature = 0.3  # cool\nforeign = "kept"\n\n[other]\nx = 1\n')
    file = SettingsFile(path)
    loaded = file.load()
    assert loaded.temperature == 0.3
    file.save(dataclasses.replace(loaded, top_k=5))
    text = path.read_text()
    for part in ("# mine", "# cool", 'foreign = "kept"', "[other]", "top_k = 5"):
        assert part in text
    file.save(Settings())
    assert "temperature" not in path.read_text(), "a default is not written"


@pytest.mark.parametrize(
    ("section", "line", "word"),
    [
        ("sampling", "temperature = 'hot'", "number"),
        ("sampling", "temperature = 99.0", "at most"),
        ("sampling", "temperature = nan", "at least"),
        ("speculation", "block_size = 1", "at least"),
        ("speculation", "block_size = true", "whole number"),
        ("speculation", "speculation = 'maybe'", "one of"),
        ("speculation", "allow_inexact = 1", "true or false"),
    ],
)
def test_a_bad_value_is_told_and_the_default_used(tmp_path: Path, section: str, line: str, word: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f"[{section}]\n{line}\n")
    file = SettingsFile(path)
    assert file.load() == Settings()
    assert len(file.problems) == 1
    assert word in file.problems[0]


def test_a_broken_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("this is [not toml")
    file = SettingsFile(path)
    assert file.load() == Settings()
    assert "s.toml.broken" in file.problems[0]
    assert (tmp_path / "s.toml.broken").read_text() == "this is [not toml"


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = SettingsFile(tmp_path / "s.toml")
    file.save(dataclasses.replace(Settings(), top_k=3))
    before = file.path.read_text()
    monkeypatch.setattr("app.atomic.os.fsync", full)
    with pytest.raises(KnownError, match="could not be saved"):
        file.save(Settings())
    assert file.path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["s.toml"], "no leftovers"


def test_every_default_passes_its_own_check() -> None:
    for spec in specs():
        assert spec.check(spec.default) == spec.default
        assert spec.label


def test_settings_become_the_engines_values() -> None:
    chosen = Settings(speculation="always", drafter="dense", temperature=0.0, target="", allow_inexact=True)
    assert chosen.how_to_speculate() is Speculation.ALWAYS
    assert chosen.load_options() == LoadOptions(quantize_drafter=False, allow_inexact=True)
    assert chosen.sampler() == Sampler(temperature=0.0, top_k=20, top_p=0.95)
    for spec in specs():
        for stored, _ in spec.choices:
            changed = dataclasses.replace(Settings(), **{spec.key: stored})
            changed.load_options(), changed.how_to_speculate(), changed.sampler()


@given(any_settings)
@hypothesis_settings(max_examples=15, deadline=None)
def test_the_dialog_shows_and_gives_back_every_value(qapp: object, chosen: Settings) -> None:
    dialog = SettingsDialog(chosen)
    assert set(dialog.fields) == {spec.key for spec in specs()}
    for key, field in dialog.fields.items():
        value = getattr(chosen, key)
        shown = field.value()
        assert shown == (value.strip() if isinstance(value, str) and not field.spec.lines else value)
        assert field.editor.accessibleName()
    dialog.deleteLater()


def test_a_change_in_the_dialog_is_told_at_once(qtbot: QtBot) -> None:
    dialog = SettingsDialog(Settings())
    qtbot.addWidget(dialog)
    told: list[Settings] = []
    dialog.changed.connect(told.append)
    dialog.fields["block_size"].editor.setValue(5)
    dialog.fields["block_size"].flush()
    dialog.fields["allow_inexact"].editor.setChecked(True)
    assert told[-1] == Settings(block_size=5, allow_inexact=True)
    dialog.fields["seed"].editor.setValue(2**32 - 1)
    dialog.done(0)
    assert told[-1].seed == 2**32 - 1, "a change that waits for the typing to end is not lost by closing"
    dialog._on_reset()
    assert told[-1] == Settings()


def test_what_waits_for_a_reload_says_so(qtbot: QtBot) -> None:
    dialog = SettingsDialog(Settings(), pending=True)
    qtbot.addWidget(dialog)
    assert not dialog._pending.isHidden()
    waiting = {spec.key for spec in specs() if spec.applies is Applies.RELOAD}
    assert waiting == {"drafter", "allow_inexact", "kept_memory", "target", "head"}
