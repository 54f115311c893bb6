"""The macOS bundle, as far as it can be known without a Mac: its files, its wheels, and what is done to it."""

from __future__ import annotations

import plistlib
import struct
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from zipfile import ZipFile

import pytest
from bundle import mac, wheels

from tests.unit.repo.tree import ROOT, tracked

MAC = ROOT / "packaging/macos"
PROJECT = tomllib.loads((MAC / "pyproject.toml").read_text())["tool"]["briefcase"]
APP = PROJECT["app"]["pacenote"]


def script(name: str) -> str:
    return (MAC / name).read_text()


def test_the_project_names_only_what_exists() -> None:
    """Briefcase's project file: every path is there, and versions agree with the package and with the wheels."""
    for name in (*APP["sources"], *PROJECT["license-files"], f"{APP['icon']}.icns"):
        assert (MAC / name).exists(), name
    assert PROJECT["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert APP["macOS"]["universal_build"] is False
    assert APP["macOS"]["min_os_version"] == f"{wheels.MINIMUM[0]}.{wheels.MINIMUM[1]}"
    index, links, folder = APP["requirement_installer_args"]
    assert (index, links) == ("--no-index", "--find-links")
    assert (MAC / folder).resolve() == ROOT / "build/macos/wheels", "where build.sh lets bundle.wheels put them"
    assert 'bundle.wheels "$work/wheels"' in script("build.sh")
    for name in ("build.sh", "lint.sh"):
        assert f"series={wheels.PYTHON}\n" in script(name)


def test_property_lists_parse_and_say_what_the_wheels_need() -> None:
    """The oldest macOS is the one that wheels are chosen for; no entitlement is asked for without a reason."""
    info = plistlib.loads((MAC / "Info.plist").read_bytes())
    assert info["LSMinimumSystemVersion"] == APP["macOS"]["min_os_version"]
    assert info["LSArchitecturePriority"] == ["arm64"]
    assert info["NSHighResolutionCapable"] is True
    assert info["NSRequiresAquaSystemAppearance"] is False, "dark mode"
    (document,) = info["CFBundleDocumentTypes"]
    assert document["LSItemContentTypes"] == ["public.json"], "what Export Chat writes"
    assert document["LSHandlerRank"] == "Alternate", "not every .json is ours"
    assert plistlib.loads((MAC / "Entitlements.plist").read_bytes()) == {}


def test_scripts_name_only_what_exists() -> None:
    """Every path below packaging/ in a script, the Makefile or a workflow is a file of the repository."""
    files = [*MAC.glob("*.sh"), *(ROOT / "packaging/linux").glob("*.sh"), ROOT / "Makefile"]
    files += (ROOT / ".github/workflows").glob("*.yml")
    named = set()
    for file in files:
        for word in file.read_text().replace('"', " ").replace("'", " ").replace("=", " ").split():
            if word.startswith("packaging/") and not set("*$") & set(word):
                named.add(word.rstrip(".,;:)"))
    assert len(named) > 12
    gone = {name for name in named if not (ROOT / name).exists() and not name.startswith("packaging/macos/build")}
    assert gone <= {"packaging/macos/logs"}


def test_the_icon_set_has_every_size_that_macos_asks_for() -> None:
    """Each entry of pacenote.icns is a PNG of the size that its family stands for."""
    sizes = {"icp4": 16, "icp5": 32, "ic07": 128, "ic08": 256, "ic09": 512, "ic10": 1024, "ic11": 32, "ic12": 64}
    sizes |= {"ic13": 256, "ic14": 512}
    data = (ROOT / "packaging/icons/pacenote.icns").read_bytes()
    magic, length = struct.unpack(">4sI", data[:8])
    assert (magic, length) == (b"icns", len(data))
    place, found = 8, {}
    while place < len(data):
        family, size = struct.unpack(">4sI", data[place : place + 8])
        image = data[place + 8 : place + size]
        assert image[:8] == b"\x89PNG\r\n\x1a\n"
        found[family.decode()] = struct.unpack(">II", image[16:24])
        place += size
    assert found == {family: (size, size) for family, size in sizes.items()}


def wheel(folder: Path, name: str, tags: str, *needs: str, version: str = "1.0") -> Path:
    path = folder / f"{name}-{version}-{tags}.whl"
    with ZipFile(path, "w") as archive:
        lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {need}" for need in needs]
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{name}/vendor/other-1.dist-info/METADATA", "Name: other\n")
    return path


def test_wheels_for_a_newer_macos_or_another_machine_are_found(tmp_path: Path) -> None:
    """On a Mac with macOS 26 pip would take MLX's wheel for 26, and the bundle would not start on 14 and 15."""
    fine = ["py3-none-any", "cp313-cp313-macosx_14_0_arm64", "cp38-abi3-macosx_11_0_arm64"]
    fine += ["cp310-abi3-macosx_13_0_universal2", "cp313-cp313-macosx_10_9_x86_64.macosx_11_0_arm64"]
    for number, tags in enumerate(fine):
        wheel(tmp_path, f"fine{number}", tags)
    assert list(wheels.problems(tmp_path.glob("*.whl"))) == []
    bad = ["py3-none-macosx_26_0_arm64", "py3-none-macosx_14_2_arm64", "cp313-cp313-macosx_14_0_x86_64"]
    bad += ["cp313-cp313-manylinux_2_28_aarch64"]
    for number, tags in enumerate(bad):
        found = wheel(tmp_path, f"bad{number}", tags)
        assert list(wheels.problems(tmp_path.glob("*.whl"))) == [f"{found.name} is not for macOS 14 on arm64"]
        found.unlink()


def test_a_set_of_wheels_that_does_not_fit_together_is_found(tmp_path: Path) -> None:
    """Requirements are those of a Mac, whatever machine asks."""
    wheel(tmp_path, "first", "py3-none-any", "second>=2", "mac-only; sys_platform == 'darwin'")
    wheel(tmp_path, "second", "py3-none-any", "linux-only; sys_platform == 'linux'", "extra-only; extra == 'dev'")
    wheel(tmp_path, "mlx", "cp313-cp313-macosx_14_0_arm64", version="1.0")
    wheel(tmp_path, "mlx_metal", "py3-none-macosx_14_0_arm64", version="1.1")
    assert list(wheels.problems(tmp_path.glob("*.whl"))) == [
        "first needs second>=2, and the set has 1.0",
        'first needs mac-only; sys_platform == "darwin", which is not in the set',
        "mlx and mlx-metal have different versions",
    ]


def whole() -> set[str]:
    """Names of files as a good bundle has them."""
    names = {pattern.replace("*", "313") for pattern in mac.REQUIRED}
    return names | {"mlx/lib/libmlx.dylib", "mlx/lib/mlx.metallib"}


def test_what_the_bundle_must_hold_is_asked_of_it() -> None:
    """Every required file, and MLX's Metal library beside the one libmlx.dylib."""
    assert list(mac.missing(whole())) == []
    for name in whole() - {"mlx/lib/libmlx.dylib"}:
        assert len(list(mac.missing(whole() - {name}))) == 1, name
    assert "there are 0 libmlx.dylib" in next(mac.missing(whole() - {"mlx/lib/libmlx.dylib"}))
    twice = list(mac.missing(whole() | {"mlx/libmlx.dylib"}))
    assert [line.split(":")[0] for line in twice] == [
        "there are 2 libmlx.dylib, not one",
        "mlx.metallib is not beside mlx/libmlx.dylib",
    ]


def test_every_required_file_of_ours_is_in_the_repository() -> None:
    """A file that moved would else be asked for in vain, on a Mac only."""
    ours = {str(path) for path in tracked("engine", "app", "resources")}
    patterns = [pattern for pattern in mac.REQUIRED if pattern.startswith(("engine/", "app/", "resources/"))]
    assert len(patterns) > 8
    assert set(patterns) <= ours
    # And the demo pair whole: what the repository has of it, the bundle must have.
    assert {name for name in ours if name.startswith("resources/demo/")} - set(patterns) <= {
        "resources/demo/prompts.json",
        "resources/demo/target/chat_template.jinja",
        "resources/demo/target/generation_config.json",
        "resources/demo/target/tokenizer_config.json",
    }


def test_required_files_are_never_removed() -> None:
    """The list of what is cut from PySide6 does not reach into what is needed."""
    assert not [name for name in whole() if mac.removed(name)]
    gone = ["bin/huggingface-cli", "PySide6/Designer.app/Contents/MacOS/Designer", "PySide6/QtQml.abi3.so"]
    gone += ["PySide6/Qt/lib/QtQml.framework/Versions/A/QtQml", "PySide6/Qt/plugins/sqldrivers/libqsqlite.dylib"]
    gone += ["PySide6/Qt/qml/QtQuick/x.qml", "PySide6/QtCore.pyi", "PySide6/lupdate"]
    assert [name for name in gone if not mac.removed(name)] == []


def test_a_framework_that_is_cut_and_still_needed_is_found() -> None:
    """What a kept binary is linked with stays, or the bundle does not load."""
    kept = ("QtGui.abi3.so", b"..@rpath/QtCore.framework/Versions/A/QtCore\0@rpath/QtDBus.framework/Versions/A/QtDBus")
    assert list(mac.unlinked([kept])) == []
    lost = ("libq.dylib", b"@rpath/QtPdf.framework/Versions/A/QtPdf\0@rpath/QtPdf.framework/Versions/A/QtPdf")
    assert list(mac.unlinked([kept, lost])) == ["libq.dylib is linked with QtPdf, which is not in the bundle"]


def bundle_of(folder: Path) -> Path:
    """A bundle as Briefcase leaves it: frameworks without links, a generated Info.plist."""
    app = folder / "Pacenote.app"
    packages = app / "Contents/Resources/app_packages"
    names = whole() | {"bin/pip", "PySide6/Designer.app/Contents/Info.plist", "resources/licences.txt"}
    names |= {"PySide6/Qt/lib/QtQml.framework/Versions/A/QtQml"}
    for name in mac.QT | mac.QT_BELOW:
        for above in ("", "Versions/A/"):
            names.add(f"PySide6/Qt/lib/{name}.framework/{above}Resources/Info.plist")
    for name in names:
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_bytes(b"x")
    launcher = app / "Contents/Resources/app/pacenote-0.1.0.dist-info/METADATA"
    launcher.parent.mkdir(parents=True)
    launcher.write_text("Name: pacenote\n")
    generated = {"CFBundleName": "Pacenote", "LSMinimumSystemVersion": "11.0"}
    (app / "Contents/Info.plist").write_bytes(plistlib.dumps(generated))
    return app


def test_a_bundle_is_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unwanted files go, frameworks get their links back, Info.plist is completed; then the check passes."""
    app = bundle_of(tmp_path)
    for _ in range(2):  # again after an interrupted build
        mac.finish(app)
    packages = app / "Contents/Resources/app_packages"
    assert not (packages / "bin").exists()
    assert not list(app.rglob("app/*.dist-info")), "it would hide the metadata of the wheel"
    assert not (packages / "PySide6/Designer.app").exists()
    assert not (packages / "PySide6/Qt/lib/QtQml.framework").exists()
    framework = packages / "PySide6/Qt/lib/QtCore.framework"
    assert (framework / "Versions/Current").readlink() == Path("A")
    assert (framework / "QtCore").readlink() == Path("Versions/Current/QtCore")
    assert (framework / "Resources").readlink() == Path("Versions/Current/Resources")
    assert (framework / "Resources/Info.plist").read_bytes() == b"x"
    info = plistlib.loads((app / "Contents/Info.plist").read_bytes())
    assert info["CFBundleName"] == "Pacenote"
    assert info["LSMinimumSystemVersion"] == "14.0"
    mac.check(app)
    assert "libmlx with its metallib" in capsys.readouterr().out
    (packages / "resources/licences.txt").unlink()
    (packages / "mlx/lib/mlx.metallib").unlink()
    with pytest.raises(SystemExit, match=r"metallib is not beside .*\n.*licences are missing"):
        mac.check(app)


def test_the_launcher_calls_the_program_by_its_own_name(tmp_path: Path) -> None:
    """The self-test starts the program again by sys.executable, which in an embedded Python may not exist."""
    namespace: dict[str, object] = {"__name__": "launcher"}
    exec((MAC / "src/pacenote/__main__.py").read_text(), namespace)
    own = namespace["own_executable"]
    assert callable(own)
    launcher = tmp_path / "Pacenote.app/Contents/Resources/app/pacenote/__main__.py"
    assert own(launcher) is None
    binary = tmp_path / "Pacenote.app/Contents/MacOS/Pacenote"
    binary.parent.mkdir(parents=True)
    binary.touch()
    assert own(launcher) == binary.resolve()


def test_contents_are_computed_from_wheels(tmp_path: Path) -> None:
    """What bundle.mac says of wheels is what their archives hold, less what is removed."""
    with ZipFile(tmp_path / "one-1-py3-none-any.whl", "w") as archive:
        for name in (*whole(), "bin/tool", "PySide6/QtCore.pyi"):
            archive.writestr(name, b"@rpath/QtCore.framework")
    names, binaries = mac.of_wheels(tmp_path)
    assert set(names) == whole()
    assert {name for name, _ in binaries} == {
        name
        for name in whole()
        if fnmatch(name, "PySide6/*.so") or fnmatch(name, "PySide6/*.dylib") or "/Qt/lib/" in name
    }
    mac.check(tmp_path)
