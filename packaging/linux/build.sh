#!/usr/bin/env bash
# Makes the Linux packages in dist/: a .deb for Debian and Ubuntu, and a .tar.xz of the same folder that runs where it is
# unpacked. Both hold their own Python. They run on systems with the C library of this one or a newer one.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/setup/lib.sh
. packaging/setup/lib.sh

[ "$(uname -s)" = Linux ] || fail "The Linux package is made on Linux; on a Mac: make mac-app"

# command:Debian package that has it
for need in objdump:binutils dpkg-deb:dpkg xz:xz-utils; do
    has "${need%%:*}" || fail "The command ${need%%:*} is missing. Install it, then run make again:" \
        "    sudo apt-get update && sudo apt-get install -y ${need##*:}"
done
python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
shared_library() {
    "$python" -c '
import sys, sysconfig
from pathlib import Path
folder, name = (sysconfig.get_config_var(key) or "" for key in ("LIBDIR", "INSTSONAME"))
places = [Path(folder, name), Path(folder, sysconfig.get_config_var("MULTIARCH") or "", name)]
sys.exit(".so" not in name or not any(place.is_file() for place in places))'
}
series=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
shared_library || fail "PyInstaller needs the shared library of Python. Install it, then run make again:" \
    "    sudo apt-get update && sudo apt-get install -y libpython$series"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
architecture=$(dpkg --print-architecture)
machine=$(uname -m)
work=build/linux
rm -rf "$work" build/lib build/bdist.*
mkdir -p "$work" dist

say "Installing Pacenote and PyInstaller into $work/venv"
"$python" -m venv "$work/venv"
.venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir "$work/wheel" .
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --constraint packaging/constraints.txt --requirement packaging/linux/requirements.txt "$work"/wheel/*.whl

say "Freezing: some minutes"
PYTHONPATH=packaging .venv/bin/python -m bundle.closure linux "$series" >"$work/closure.txt"
PACENOTE_CLOSURE=$work/closure.txt PACENOTE_LIBRARIES=$work/libraries.txt QT_QPA_PLATFORM=offscreen \
    "$work/venv/bin/pyinstaller" --noconfirm --log-level WARN --distpath "$work/dist" --workpath "$work/work" \
    packaging/linux/pacenote.spec
folder=$work/dist/pacenote

licence=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')/LICENSE.txt
[ -f "$licence" ] || licence=/usr/share/doc/python$series/copyright
PYTHONPATH=packaging .venv/bin/python -m bundle.licences --platform linux --python "$series" \
    --packages "$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    --python-licence "$licence" --system-libraries "$work/libraries.txt" \
    --out "$folder/_internal/resources/licences.txt"

packaging/linux/deb.sh "$folder" "$version" "$architecture" "dist/pacenote_${version}_$architecture.deb"

name=Pacenote-$version-linux-$machine
rm -rf "${work:?}/$name"
mv "$folder" "$work/$name"
cp "$work/$name/_internal/resources/licences.txt" "$work/$name/LICENCES.txt"
cp packaging/linux/README.txt "$work/$name/README.txt"
XZ_OPT="-3 -T0" tar --create --xz --owner=0 --group=0 --sort=name --file "dist/$name.tar.xz" --directory "$work" "$name"
du -h "dist/pacenote_${version}_$architecture.deb" "dist/$name.tar.xz"
