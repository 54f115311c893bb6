"""Every part of a bundle has its licence in it, and a part without one stops the build and this test."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from bundle import licences
from bundle.closure import environment, packages, pins
from bundle.licences import MissingLicence, Part
from bundle.wheels import PYTHON

from tests.unit.repo.tree import ROOT

HERE = (sys.platform, f"{sys.version_info.major}.{sys.version_info.minor}")
# What a Mac's bundle holds is installed on Linux too, or has its text in the repository; not so the other way round.
BUNDLES = sorted({HERE, ("darwin", PYTHON)})


@pytest.mark.parametrize(("platform", "python"), BUNDLES)
def test_every_pinned_package_of_a_bundle_has_a_licence(platform: str, python: str) -> None:
    """A new dependency without a licence file fails here, until its text is put into packaging/licences."""
    wanted = packages(platform, python)
    parts = [licences.ours(), *licences.of_packages(None, wanted)]
    text = licences.as_text(parts)
    assert {part.name for part in parts} >= set(wanted)
    assert len(wanted) > 40
    for name, version in wanted.items():
        assert f"\n* {name} {version}\n" in text
    assert "WordNet" in text, "the sources of the demo model, from NOTICE"
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text, "Qt's"
    assert "PocketFFT" in text, "compiled into MLX"


def wheel_without_licence(folder: Path, name: str) -> Path:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\nLicense-Expression: MIT\n")
    (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/licenses/LICENSE.md,,\n")
    return info


def test_a_package_without_a_licence_is_named(tmp_path: Path) -> None:
    """Naming a licence in its metadata is not enough: the text is what must travel along."""
    info = wheel_without_licence(tmp_path, "newcomer")
    with pytest.raises(MissingLicence, match=r"newcomer, absent\. Where .*extra\.toml"):
        licences.as_text(licences.of_packages(tmp_path, {"newcomer": "1.0", "absent": "2.0"}))
    (info / "licenses").mkdir()
    (info / "licenses/LICENSE.md").write_text("You may.")
    assert "You may." in licences.as_text(licences.of_packages(tmp_path, {"newcomer": "1.0"}))
    (info / "licenses/LICENSE.md").write_text(" \n")
    with pytest.raises(MissingLicence, match="newcomer"):
        licences.as_text(licences.of_packages(tmp_path, {"newcomer": "1.0"}))


def test_a_bill_of_materials_is_shown_and_is_no_licence(tmp_path: Path) -> None:
    """What a wheel says of libraries linked into it is listed; it does not stand in for the wheel's own licence."""
    info = wheel_without_licence(tmp_path, "newcomer")
    (info / "sboms").mkdir()
    listed = [
        {"name": "crate", "version": "3", "licenses": [{"expression": "MIT"}]},
        {"name": "library", "licenses": [{"license": {"id": "Zlib"}}]},
        {"name": "silent"},
    ]
    (info / "sboms/rust.json").write_text(json.dumps({"components": listed}))
    with (info / "RECORD").open("a") as record:
        record.write(f"{info.name}/sboms/rust.json,,\n")
    with pytest.raises(MissingLicence):
        licences.as_text(licences.of_packages(tmp_path, {"newcomer": "1.0"}))
    (info / "licenses").mkdir()
    (info / "licenses/LICENSE.md").write_text("You may.")
    text = licences.as_text(licences.of_packages(tmp_path, {"newcomer": "1.0"}))
    assert "crate 3 (MIT)\nlibrary  (Zlib)\nsilent" in text


def test_texts_that_wheels_lack_are_all_used_and_of_packages_that_are_pinned() -> None:
    """No text is left over from a package that is gone."""
    pinned = {name for platform in ("linux", "darwin") for name in pins(environment(platform, PYTHON))}
    entries = [*licences.EXTRA["inside"], *licences.EXTRA["python"]["darwin"]]
    named = {text for texts in licences.EXTRA["packages"].values() for text in texts}
    named |= {text for entry in entries for text in entry["texts"]}
    assert set(licences.EXTRA["packages"]) <= pinned
    assert {name for entry in licences.EXTRA["inside"] for name in entry["packages"]} <= pinned
    assert named == {path.name for path in licences.TEXTS.iterdir()} | {"LICENSE"}


def test_python_of_the_mac_bundle_brings_the_licences_of_its_libraries(tmp_path: Path) -> None:
    """On Linux these are libraries of the system. A Python without its licence file stops the build."""
    (tmp_path / "LICENSE.txt").write_text("PSF")
    mac = [part.name for part in licences.of_python("3.13", tmp_path / "LICENSE.txt", "darwin")]
    assert mac == ["Python", "OpenSSL, in Python", "libffi, in Python", "bzip2, in Python"]
    (linux,) = licences.of_python("3.13", tmp_path / "LICENSE.txt", "linux")
    assert linux == Part("Python", "3.13", ("PSF",))
    with pytest.raises(MissingLicence, match="Python"):
        licences.as_text(licences.of_python("3.13", tmp_path / "gone", "linux"))


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="no Debian: the Linux package is made on one")
def test_libraries_of_the_system_bring_their_copyright_files(tmp_path: Path) -> None:
    """And the common licences that those only name; a library of no package has no known licence."""
    owned = Path("/bin/ls").resolve()
    (part, *common) = licences.of_system_libraries([owned])
    assert part.name == "coreutils"
    assert part.version
    assert "Free Software Foundation" in part.texts[0]
    assert "Licence text GPL-3" in {one.name for one in common}
    assert all(one.texts for one in common)
    with pytest.raises(MissingLicence, match=r"stray\.so"):
        list(licences.of_system_libraries([tmp_path / "stray.so"]))


def test_the_bundles_text_is_where_the_window_looks() -> None:
    """Help > Licences reads resources/licences.txt; both build scripts write it there."""
    assert "resources/licences.txt" in (ROOT / "packaging/linux/build.sh").read_text()
    assert "resources/licences.txt" in (ROOT / "packaging/macos/build.sh").read_text()
    assert '"licences.txt"' in (ROOT / "app/licences.py").read_text()
