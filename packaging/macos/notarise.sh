#!/usr/bin/env bash
# Sends a signed .app or .dmg to Apple, waits, and staples the ticket to it, so that it opens without a network:
#   notarise.sh FILE
#
# Either a profile that was stored once with `xcrun notarytool store-credentials NAME`:
#   PACENOTE_NOTARY_PROFILE   NAME
# or an App Store Connect key (for CI):
#   PACENOTE_NOTARY_KEY       path of the .p8 file
#   PACENOTE_NOTARY_KEY_ID    its id
#   PACENOTE_NOTARY_ISSUER    the issuer's id
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/macos/lib.sh
. packaging/macos/lib.sh
on_a_mac "make mac-release"
file=${1:?an .app or a .dmg}
there "$file" mac-dmg

credentials=()
if [ -n "${PACENOTE_NOTARY_PROFILE:-}" ]; then
    credentials=(--keychain-profile "$PACENOTE_NOTARY_PROFILE")
else
    missing=
    for name in PACENOTE_NOTARY_KEY PACENOTE_NOTARY_KEY_ID PACENOTE_NOTARY_ISSUER; do
        [ -n "${!name:-}" ] || missing="$missing $name"
    done
    [ -z "$missing" ] || fail "Apple cannot be asked to notarise $file: not set are$missing." \
        "Set them to an App Store Connect key with the role Developer, or store a profile once and name it:" \
        "    xcrun notarytool store-credentials pacenote" \
        "    export PACENOTE_NOTARY_PROFILE=pacenote"
    [ -f "$PACENOTE_NOTARY_KEY" ] || fail "There is no file $PACENOTE_NOTARY_KEY (PACENOTE_NOTARY_KEY)."
    credentials=(--key "$PACENOTE_NOTARY_KEY" --key-id "$PACENOTE_NOTARY_KEY_ID" --issuer "$PACENOTE_NOTARY_ISSUER")
fi
# Apple refuses ad hoc signatures only after minutes of waiting.
described=$(codesign --display --verbose=2 "$file" 2>&1) || fail "$file is not signed. Sign it first:" "    make mac-sign"
grep -q '^Authority=Developer ID Application' <<<"$described" ||
    fail "$file is not signed with a Developer ID, and Apple notarises nothing else. Set PACENOTE_SIGN_IDENTITY, then:" \
        "    make mac-sign"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sent=$file
if [ -d "$file" ]; then
    sent=$work/$(basename "$file").zip
    ditto -c -k --keepParent "$file" "$sent"
fi
say "Sending $file to Apple; the answer takes minutes"
xcrun notarytool submit "$sent" "${credentials[@]}" --wait --output-format plist >"$work/answer.plist" || true
status=$(plutil -extract status raw "$work/answer.plist" 2>/dev/null) || status="no answer"
if [ "$status" != Accepted ]; then
    if id=$(plutil -extract id raw "$work/answer.plist" 2>/dev/null); then
        xcrun notarytool log "$id" "${credentials[@]}" || true
    fi
    fail "Apple did not accept $file: $status. What it found is above."
fi
xcrun stapler staple "$file"
xcrun stapler validate "$file"
