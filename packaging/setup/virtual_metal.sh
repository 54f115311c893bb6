#!/usr/bin/env bash
# The compiler of tests/virtual_metal, which run Metal kernels on a Linux CPU: installs clang and LLVM's tools with apt when
# root, and otherwise prints the command. Never fails: without them those tests say why they are skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/setup/lib.sh
. packaging/setup/lib.sh
[ "$(uname -s)" = Linux ] || exit 0

# The first one is in Debian 12 and 13 and what the kernels were compared with; the others are for later releases and Ubuntu.
versions="19 20 21 18 17"

complete() { has "clang++-$1" && has "llvm-dis-$1" && has "llvm-objdump-$1"; }
known() { apt_knows "clang-$1" && apt_knows "llvm-$1"; }

first() {
    local version
    for version in $versions; do
        if "$1" "$version"; then
            say "$version"
            return
        fi
    done
    return 1
}

! first complete >/dev/null || exit 0
if ! has apt-get; then
    say "Tests of Metal kernels are skipped: install clang and LLVM 19 with your package manager to run them."
elif ! is_root; then
    version=$(first known) || version=19
    say "Tests of Metal kernels are skipped. To run them, install a compiler:"
    say "    sudo apt-get update && sudo apt-get install -y --no-install-recommends clang-$version llvm-$version"
elif apt_update && version=$(first known); then
    apt_install "clang-$version" "llvm-$version" || say "Tests of Metal kernels are skipped: apt-get could not install their compiler."
else
    say "Tests of Metal kernels are skipped: this release has no clang of LLVM 17 to 21."
fi
