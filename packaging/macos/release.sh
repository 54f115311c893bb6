#!/usr/bin/env bash
# From a built Pacenote.app to a disk image that opens on any Mac. Each step stops the rest when it fails; what it needs
# from the environment is in sign.sh and notarise.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/macos/lib.sh
. packaging/macos/lib.sh
on_a_mac "make mac-release"
[ -n "${PACENOTE_SIGN_IDENTITY:-}" ] || fail "A release is signed with a Developer ID. Set it, for example:" \
    "    export PACENOTE_SIGN_IDENTITY='Developer ID Application: NAME (TEAM)'"

packaging/macos/sign.sh "$app"
packaging/macos/self_test.sh "$app"
packaging/macos/notarise.sh "$app"
packaging/macos/dmg.sh "$app"
packaging/macos/notarise.sh "$dmg"
packaging/macos/self_test.sh "$dmg"
# What Gatekeeper will say to somebody who downloads it.
spctl --assess --type execute --verbose=2 "$app"
spctl --assess --type open --context context:primary-signature --verbose=2 "$dmg"
shasum -a 256 "$dmg"
