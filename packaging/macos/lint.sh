#!/usr/bin/env bash
# What can be said of the macOS bundle without a Mac: that its wheels exist for the oldest macOS and fit together, that what
# they install holds MLX with its Metal library, Qt's plugins and the demo pair, and that every part has a licence.
# Needs a network, for the wheels (about 200 MB). Property lists, scripts and the project file are looked at by `make test`.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=build/macos-lint
series=3.13
rm -rf "$work" build/lib build/bdist.*
mkdir -p "$work/info"
.venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir "$work/own" .
export PYTHONPATH=packaging
.venv/bin/python -m bundle.wheels "$work/wheels" "$work"/own/pacenote-*.whl
.venv/bin/python -m bundle.mac check "$work/wheels"
for wheel in "$work"/wheels/*.whl; do
    .venv/bin/python -m zipfile -e "$wheel" "$work/info"
done
licence=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')/LICENSE.txt
[ -f "$licence" ] || licence=$(find /usr/share/doc -path "*/python3*/copyright" | head -n 1)
.venv/bin/python -m bundle.licences --platform darwin --python "$series" --packages "$work/info" \
    --python-licence "$licence" --out "$work/licences.txt"
