#!/usr/bin/env bash
# Makes Pacenote.app, signed ad hoc. Wheels are chosen first; Briefcase then installs exactly these and adds Python.
# Needs a network: for the wheels, and for Briefcase's template and its Python.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/macos/lib.sh
. packaging/macos/lib.sh
on_a_mac "make mac-app"

# Briefcase puts the Python that it runs under into the bundle, and the wheels are chosen for this one.
series=3.13
python=$(command -v "python$series") || fail "Python $series is needed to make the bundle. Install it, then run make again:" \
    "    brew install python@$series"
work=build/macos
# build/lib: what setuptools left of an earlier wheel would go into this one.
rm -rf "$work" packaging/macos/build build/lib build/bdist.*
mkdir -p "$work" dist

say "Choosing wheels for the oldest macOS"
.venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir "$work/own" .
PYTHONPATH=packaging .venv/bin/python -m bundle.wheels "$work/wheels" "$work"/own/pacenote-*.whl

"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --requirement packaging/macos/requirements.txt

briefcase() { (cd packaging/macos && "../../$work/venv/bin/briefcase" "$@" macOS app --no-input); }
briefcase create

PYTHONPATH=packaging .venv/bin/python -m bundle.mac finish "$app"
licence=$(find "$app/Contents/Frameworks" -path "*/python$series/LICENSE.txt" | head -n 1)
PYTHONPATH=packaging .venv/bin/python -m bundle.licences --platform darwin --python "$series" \
    --packages "$app/Contents/Resources/app_packages" --python-licence "${licence:-missing}" \
    --out "$app/Contents/Resources/app_packages/resources/licences.txt"
PYTHONPATH=packaging .venv/bin/python -m bundle.mac check "$app"

briefcase build
codesign --verify --deep --strict "$app"
du -sh "$app"
