# shellcheck shell=bash
# Sourced by the scripts beside it, from the root of the repository.

# shellcheck source=packaging/setup/lib.sh
. packaging/setup/lib.sh

# shellcheck disable=SC2034  # for the scripts
app=packaging/macos/build/pacenote/macos/app/Pacenote.app
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
# shellcheck disable=SC2034
dmg=dist/Pacenote-$version-arm64.dmg

on_a_mac() {
    [ "$(uname -s)" = Darwin ] || fail "$1 runs on a Mac only; what can be checked elsewhere: make mac-lint"
    [ "$(uname -m)" = arm64 ] || fail "$1 needs a Mac with Apple silicon, and a terminal that is not under Rosetta."
}

# For a script's own argument: the .app or .dmg that it is to work on.
there() { [ -e "$1" ] || fail "There is no $1. Make it first:" "    make $2"; }

# Without an identity a bundle is signed ad hoc: it runs on this Mac, and elsewhere only after a right-click and Open.
identity() { say "${PACENOTE_SIGN_IDENTITY:--}"; }
