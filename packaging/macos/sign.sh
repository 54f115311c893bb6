#!/usr/bin/env bash
# Signs Pacenote.app from the inside out, with the hardened runtime:  sign.sh [APP]
#
# PACENOTE_SIGN_IDENTITY   "Developer ID Application: NAME (TEAM)", as `security find-identity -v -p codesigning` lists it.
#                          Without it the bundle is signed ad hoc, which is enough for this Mac and not for others.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/macos/lib.sh
. packaging/macos/lib.sh
on_a_mac "make mac-sign"
app=${1:-$app}
there "$app" mac-app

who=$(identity)
options=(--force --sign "$who")
if [ "$who" = - ]; then
    # The hardened runtime lets a program load only libraries of its own team, and an ad hoc signature has none.
    say "PACENOTE_SIGN_IDENTITY is not set: signing ad hoc. Other Macs will refuse the app until it is opened by right-click."
else
    security find-identity -v -p codesigning | grep -qF "$who" ||
        fail "The keychain has no identity \"$who\" for signing code. These are there:" \
            "$(security find-identity -v -p codesigning)" \
            "Get a Developer ID Application certificate from Apple's developer site, or import the .p12 file of one."
    options+=(--options runtime --timestamp)
fi

# Deepest first: a signature covers what is inside. A folder comes after its files, since its path is a beginning of theirs.
binaries() {
    find "$app/Contents" -type f -not -path "$app/Contents/MacOS/*" -print0 |
        xargs -0 file --no-pad --separator $'\t' | awk -F '\t' '$2 ~ /Mach-O/ { print $1 }' | sort -ru
}
frameworks() { find "$app/Contents" -type d -name '*.framework' | sort -r; }

# A framework's own binary is signed with the framework, not before it.
binaries | grep -v '\.framework/Versions/[^/]*/[^/]*$' | while IFS= read -r path; do
    codesign "${options[@]}" "$path"
done
frameworks | while IFS= read -r path; do
    codesign "${options[@]}" "$path"
done
codesign "${options[@]}" --entitlements packaging/macos/Entitlements.plist "$app"
codesign --verify --deep --strict --verbose=2 "$app"
say "Signed: $app"
