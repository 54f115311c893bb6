#!/usr/bin/env bash
# Runs the self-test of a bundle as a user would have it:  self_test.sh PACENOTE.app | PACENOTE.dmg
# An .app is copied to a fresh folder and a .dmg is mounted, so that nothing of the place it was built in is found; the
# environment is empty and the home new. The exit status is that of the self-test.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/macos/lib.sh
. packaging/macos/lib.sh
on_a_mac "make mac-test"
file=${1:?an .app or a .dmg}
there "$file" mac-app

work=$(mktemp -d)
mounted=
clean() {
    [ -z "$mounted" ] || hdiutil detach -quiet "$mounted" || hdiutil detach -force -quiet "$mounted" || true
    rm -rf "$work"
}
trap clean EXIT

case $file in
    *.dmg)
        hdiutil attach -quiet -readonly -nobrowse -mountpoint "$work/volume" "$file"
        mounted=$work/volume
        bundle=$work/volume/Pacenote.app
        ;;
    *)
        ditto "$file" "$work/Pacenote.app"
        bundle=$work/Pacenote.app
        ;;
esac
mkdir "$work/home"
say "Self-test of $file, from $bundle"
cd "$work"
env -i HOME="$work/home" TMPDIR="$work" PATH=/usr/bin:/bin LANG=en_US.UTF-8 \
    "$bundle/Contents/MacOS/Pacenote" --self-test
