#!/usr/bin/env bash
# Puts Pacenote.app into a disk image in dist/, and signs that with PACENOTE_SIGN_IDENTITY when it is set:  dmg.sh [APP]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/macos/lib.sh
. packaging/macos/lib.sh
on_a_mac "make mac-dmg"
app=${1:-$app}
there "$app" mac-app

# hdiutil fails with "Resource busy" while Spotlight looks at a fresh image.
made=
for attempt in 1 2 3 4 5; do
    rm -f "$dmg"
    if build/macos/venv/bin/dmgbuild -s packaging/macos/dmg_settings.py -D "app=$app" -D icon=packaging/icons/pacenote.icns \
        Pacenote "$dmg"; then
        made=yes
        break
    fi
    say "The disk image could not be made (attempt $attempt of 5)."
    sleep 5
done
[ -n "$made" ] || fail "The disk image could not be made: dmgbuild says why, above."
who=$(identity)
[ "$who" = - ] || codesign --force --timestamp --sign "$who" "$dmg"
du -h "$dmg"
