#!/usr/bin/env bash
# Wraps a frozen folder into a .deb:  deb.sh FOLDER VERSION ARCHITECTURE FILE.deb
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/setup/lib.sh
. packaging/setup/lib.sh

folder=${1:?folder} version=${2:?version} architecture=${3:?architecture} target=${4:?file}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

install -d "$root/usr/lib" "$root/usr/bin" "$root/usr/share/doc/pacenote" "$root/usr/share/applications" "$root/DEBIAN"
cp -a "$folder" "$root/usr/lib/pacenote"
ln -s ../lib/pacenote/pacenote "$root/usr/bin/pacenote"
cp packaging/linux/pacenote.desktop "$root/usr/share/applications/"
cp "$folder/_internal/resources/licences.txt" "$root/usr/share/doc/pacenote/copyright"
for size in 16 24 32 48 64 128 256 512; do
    install -D -m 644 "packaging/icons/pacenote-$size.png" "$root/usr/share/icons/hicolor/${size}x$size/apps/pacenote.png"
done
install -D -m 644 resources/icons/pacenote.svg "$root/usr/share/icons/hicolor/scalable/apps/pacenote.svg"
chmod -R u=rwX,go=rX "$root"

depends=$(PYTHONPATH=packaging .venv/bin/python -m bundle.depends "$folder")
# What the libraries in the folder read: fonts, keyboards, and whom to trust when a model is fetched.
depends="$depends, ca-certificates, fontconfig-config, libx11-data, xkb-data"

cat >"$root/DEBIAN/control" <<EOF
Package: pacenote
Version: $version
Architecture: $architecture
Maintainer: The Pacenote authors <pacenote@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Depends: $depends
Recommends: xdg-utils
Section: utils
Priority: optional
Description: chat with a language model on this computer
 Pacenote runs Qwen3.5-family models on MLX and makes them faster with their
 multi-token prediction head, without changing one byte of what they say.
 A small demo model is inside; nothing is sent anywhere.
EOF
dpkg-deb --root-owner-group -Zzstd -z12 --build "$root" "$target" >/dev/null
say "$target depends on: $depends"
