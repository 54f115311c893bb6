"""Signing, notarising and the disk image, against stub commands: what is called in which order, what is said otherwise.

No Mac is at hand. What Apple's tools really answer is not tested; that nothing is sent, signed or stapled too early is.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.repo.test_setup import Machine
from tests.unit.repo.tree import ROOT

IDENTITY = "Developer ID Application: Somebody (TEAM)"
KEY = {"PACENOTE_NOTARY_KEY": "key.p8", "PACENOTE_NOTARY_KEY_ID": "ID", "PACENOTE_NOTARY_ISSUER": "ISSUER"}
TOOLS = "find grep basename mktemp cp seq"


class Mac(Machine):
    """A Mac with Apple silicon, made of stubs. `file` says Mach-O of .dylib files and of two binaries by name."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        shutil.copytree(ROOT / "packaging/macos", root / "packaging/macos", ignore=shutil.ignore_patterns("build"))
        (root / "packaging/icons").mkdir()
        for tool in TOOLS.split():
            found = shutil.which(tool)
            assert found, tool
            if not (self.bin / tool).exists():
                (self.bin / tool).symlink_to(found)
        (self.bin / "uname").unlink()
        self.has("uname", '[ "$1" = -m ] && echo arm64 || echo Darwin')
        self.has(
            "file",
            """shift 3; for path in "$@"; do case $path in
            *.dylib|*/Python|*/QtCore) printf '%s\\tMach-O 64-bit\\n' "$path" ;;
            *) printf '%s\\tASCII text\\n' "$path" ;; esac; done""",
        )
        self.has("codesign", f'[ "$1" != --display ] || echo "Authority={IDENTITY}" >&2')
        self.has("security", f"echo '  1) ABC \"{IDENTITY}\"'")
        self.has("sleep", "")
        self.app = root / "packaging/macos/build/pacenote/macos/app/Pacenote.app"
        for name in (
            "Frameworks/Python.framework/Versions/3.13/Python",
            "MacOS/Pacenote",
            "Resources/app_packages/PySide6/Qt/lib/QtCore.framework/Versions/A/QtCore",
            "Resources/app_packages/PySide6/Qt/plugins/platforms/libqcocoa.dylib",
            "Resources/app_packages/mlx/lib/libmlx.dylib",
            "Resources/app_packages/mlx/lib/mlx.metallib",
        ):
            (self.app / "Contents" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.app / "Contents" / name).touch()

    def script(self, name: str, *arguments: str, **environment: str):
        return super().run(f"../macos/{name}", *arguments, **environment)

    def has_notary(self, status: str) -> None:
        self.has("ditto", 'touch "${@: -1}"')
        self.has("xcrun", "")
        self.has("plutil", f'[ "$2" = status ] && echo {status} || echo 17')


@pytest.fixture
def mac_machine(tmp_path: Path) -> Mac:
    return Mac(tmp_path / "My Projects")


@pytest.mark.parametrize("name", ["build.sh", "sign.sh", "dmg.sh", "notarise.sh", "self_test.sh", "release.sh"])
def test_elsewhere_than_on_a_mac_it_is_said(mac_machine: Mac, name: str) -> None:
    """Nothing is begun, and what works here instead is named."""
    mac_machine.has("uname", "echo Linux")
    done = mac_machine.script(name, "some.app")
    assert done.returncode == 1
    assert "runs on a Mac only" in done.stderr
    assert "make mac-lint" in done.stderr
    mac_machine.has("uname", '[ "$1" = -m ] && echo x86_64 || echo Darwin')
    assert "Apple silicon" in mac_machine.script(name, "some.app").stderr


def signed(machine: Mac) -> list[str]:
    """What was signed, in order, as the end of its path."""
    return [call.rsplit("/", 1)[-1] for call in machine.calls("codesign") if "--sign" in call]


def test_signing_goes_from_the_inside_out(mac_machine: Mac) -> None:
    """Libraries, then frameworks, then the application: a signature covers what is inside. Only code is signed."""
    done = mac_machine.script("sign.sh", PACENOTE_SIGN_IDENTITY=IDENTITY)
    assert done.returncode == 0, done.stderr
    assert signed(mac_machine) == [
        "libmlx.dylib",
        "libqcocoa.dylib",
        "QtCore.framework",
        "Python.framework",
        "Pacenote.app",
    ]
    calls = [call for call in mac_machine.calls("codesign") if "--sign" in call]
    assert all("--options runtime --timestamp" in call and IDENTITY in call for call in calls)
    assert ["Entitlements.plist" in call for call in calls] == [False, False, False, False, True]
    assert mac_machine.calls("codesign")[-1].startswith("--verify --deep --strict")


def test_without_an_identity_it_is_signed_ad_hoc_and_said(mac_machine: Mac) -> None:
    """And without the hardened runtime, under which a library without a team would not load."""
    done = mac_machine.script("sign.sh")
    assert done.returncode == 0, done.stderr
    assert "PACENOTE_SIGN_IDENTITY is not set" in done.stdout
    assert all("--sign - " in call and "runtime" not in call for call in mac_machine.calls("codesign")[:-1])


def test_an_identity_that_the_keychain_lacks_is_said(mac_machine: Mac) -> None:
    """With those that it has; nothing is signed."""
    done = mac_machine.script("sign.sh", PACENOTE_SIGN_IDENTITY="Developer ID Application: Nobody")
    assert done.returncode == 1
    assert 'no identity "Developer ID Application: Nobody"' in done.stderr
    assert IDENTITY in done.stderr
    assert mac_machine.calls("codesign") == []


def test_a_signature_that_fails_stops_the_rest(mac_machine: Mac) -> None:
    """A library that cannot be signed must not be followed by a signed application."""
    mac_machine.has("codesign", 'case "$*" in *libmlx*) exit 1 ;; esac')
    assert mac_machine.script("sign.sh").returncode != 0
    assert "Pacenote.app" not in signed(mac_machine)


def test_missing_credentials_are_named_one_by_one(mac_machine: Mac) -> None:
    """And both ways to give them. Nothing is sent."""
    mac_machine.has_notary("Accepted")
    done = mac_machine.script("notarise.sh", str(mac_machine.app), PACENOTE_NOTARY_KEY_ID="ID")
    assert done.returncode == 1
    assert "not set are PACENOTE_NOTARY_KEY PACENOTE_NOTARY_ISSUER." in done.stderr
    assert "PACENOTE_NOTARY_PROFILE" in done.stderr
    done = mac_machine.script("notarise.sh", str(mac_machine.app), **KEY)
    assert "There is no file key.p8" in done.stderr
    assert mac_machine.calls("xcrun") == []


def test_what_is_signed_ad_hoc_is_not_sent_to_apple(mac_machine: Mac) -> None:
    """Apple would refuse it after minutes."""
    mac_machine.has_notary("Accepted")
    mac_machine.has("codesign", "echo Signature=adhoc >&2")
    done = mac_machine.script("notarise.sh", str(mac_machine.app), PACENOTE_NOTARY_PROFILE="p")
    assert done.returncode == 1
    assert "not signed with a Developer ID" in done.stderr
    assert mac_machine.calls("xcrun") == []


def test_what_apple_accepts_is_stapled(mac_machine: Mac) -> None:
    """An application travels as a zip, a disk image as it is; the ticket is stapled to what was asked for."""
    mac_machine.has_notary("Accepted")
    (mac_machine.root / "key.p8").touch()
    done = mac_machine.script("notarise.sh", str(mac_machine.app), **KEY)
    assert done.returncode == 0, done.stderr
    submit, staple, validate = mac_machine.calls("xcrun")
    assert "Pacenote.app.zip --key key.p8 --key-id ID --issuer ISSUER --wait" in submit
    assert staple == f"stapler staple {mac_machine.app}"
    assert validate == f"stapler validate {mac_machine.app}"
    image = mac_machine.root / "Pacenote.dmg"
    image.touch()
    assert mac_machine.script("notarise.sh", str(image), PACENOTE_NOTARY_PROFILE="p").returncode == 0
    assert mac_machine.calls("xcrun")[3].startswith(f"notarytool submit {image} --keychain-profile p")


def test_what_apple_refuses_is_not_stapled(mac_machine: Mac) -> None:
    """Its log is fetched, and the step fails."""
    mac_machine.has_notary("Invalid")
    done = mac_machine.script("notarise.sh", str(mac_machine.app), PACENOTE_NOTARY_PROFILE="p")
    assert done.returncode == 1
    assert "did not accept" in done.stderr
    assert "Invalid" in done.stderr
    assert [call.split(" ")[0:2] for call in mac_machine.calls("xcrun")] == [
        ["notarytool", "submit"],
        ["notarytool", "log"],
    ]


def test_a_busy_disk_image_is_tried_again(mac_machine: Mac) -> None:
    """hdiutil is refused while Spotlight looks; after five times the script gives up."""
    (mac_machine.root / "dist").mkdir()
    mac_machine.has("du", "")
    tries = 'n=$(grep -c dmgbuild "$0.log" 2>/dev/null); echo dmgbuild >>"$0.log"'
    mac_machine.has("build/macos/venv/bin/dmgbuild", f'{tries}; [ "${{n:-0}}" -ge 2 ]')
    done = mac_machine.script("dmg.sh", PACENOTE_SIGN_IDENTITY=IDENTITY)
    assert done.returncode == 0, done.stderr
    assert len(mac_machine.calls("dmgbuild")) == 3
    assert signed(mac_machine) == ["Pacenote-0.1.0-arm64.dmg"]
    mac_machine.has("build/macos/venv/bin/dmgbuild", "exit 1")
    done = mac_machine.script("dmg.sh")
    assert done.returncode == 1
    assert "could not be made" in done.stderr
    assert len(mac_machine.calls("dmgbuild")) == 8


@pytest.mark.parametrize("status", [0, 1])
def test_the_self_test_decides(mac_machine: Mac, status: int) -> None:
    """The bundle's exit status is the script's, from a copied .app and from a mounted image, which is given back."""
    mac_machine.has("ditto", 'cp -R "$1" "$2"')
    program = mac_machine.app / "Contents/MacOS/Pacenote"
    program.write_text(f'#!/bin/bash\n[ "$*" = --self-test ] || exit 9\necho "$HOME"\nexit {status}\n')
    program.chmod(0o755)
    done = mac_machine.script("self_test.sh", str(mac_machine.app), PYTHONPATH="/should/not/matter")
    assert done.returncode == status, done.stderr
    assert str(mac_machine.root) not in done.stdout.splitlines()[-1], "a home of its own"
    mac_machine.has("hdiutil", f'[ "$1" != attach ] || {{ mkdir "$6"; cp -R "{mac_machine.app}" "$6/"; }}')
    (mac_machine.root / "Pacenote.dmg").touch()
    assert mac_machine.script("self_test.sh", "Pacenote.dmg").returncode == status
    assert [call.split(" ")[0] for call in mac_machine.calls("hdiutil")] == ["attach", "detach"]


def test_a_release_needs_an_identity(mac_machine: Mac) -> None:
    """It is asked for before anything is done."""
    done = mac_machine.script("release.sh")
    assert done.returncode == 1
    assert "PACENOTE_SIGN_IDENTITY" in done.stderr
    assert mac_machine.calls("codesign") == []
