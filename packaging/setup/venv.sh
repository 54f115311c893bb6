#!/usr/bin/env bash
# Makes .venv and installs Pacenote into it: `venv.sh run` for users, `venv.sh dev` with the tools for tests and lint.
# Does nothing, and needs no network, when what is installed is what the project files ask for.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/setup/lib.sh
. packaging/setup/lib.sh

kind=${1:?run or dev}
oldest=3.11

# sqlite3 and ssl are absent from a Python that was compiled without their headers; better seen here than at first start.
usable() { "$1" -c "import sys, ctypes, sqlite3, ssl; sys.exit(sys.version_info < (${oldest/./, }))" >/dev/null 2>&1; }

# A command that exists may still not run (a pyenv shim of a version that is not selected), so each one is tried.
find_python() {
    local name
    for name in python3.13 python3.12 python3.11 python3; do
        if has "$name" && usable "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# Debian and Ubuntu: the newest Python with its venv module that this release has.
apt_python() {
    local name
    for name in python3.13-venv python3.12-venv python3.11-venv; do
        if apt_knows "$name"; then
            say "$name"
            return
        fi
    done
    say python3-venv
}

get_python() {
    python=$(find_python) && return
    if [ "$(uname -s)" = Darwin ]; then
        fail "Pacenote needs Python $oldest or newer, and none was found. Install one, then run make again:" "    brew install python@3.13"
    elif has apt-get && is_root; then
        apt_update
        apt_install "$(apt_python)"
        python=$(find_python) || fail "Pacenote needs Python $oldest or newer; this release of the system has none. Install one, then run make again."
    elif has apt-get; then
        fail "Pacenote needs Python $oldest or newer, and none was found. Install one, then run make again:" \
            "    sudo apt-get update && sudo apt-get install -y $(apt_python)"
    else
        fail "Pacenote needs Python $oldest or newer, and none was found. Install python3.13 with your package manager, then run make again."
    fi
}

# Where MLX and PySide6 have no wheel, pip's own words help nobody: said here instead.
check_machine() {
    local system machine version needed
    read -r system machine version < <("$python" -c 'import platform as p; print(p.system(), p.machine(), p.mac_ver()[0] or p.libc_ver()[1])')
    case $system-$machine in
        Darwin-arm64)
            [ "${version%%.*}" -ge 14 ] || fail "Pacenote needs macOS 14 or newer; this is macOS $version."
            return
            ;;
        Darwin-*) fail "Pacenote needs an Apple silicon Mac and a native Python; $python is built for Intel. Install a native one, then run make again:" \
            "    /opt/homebrew/bin/brew install python@3.13" ;;
        Linux-x86_64) needed=2.35 ;;
        Linux-aarch64) needed=2.39 ;; # PySide6's wheels; 2.35 is MLX's
        *) fail "Pacenote runs on Macs with Apple silicon and on Linux (x86_64, aarch64); this is $system $machine." ;;
    esac
    if [ "$(printf '%s\n' "$needed" "${version:-0}" | sort -V | head -n 1)" != "$needed" ]; then
        fail "Pacenote needs glibc $needed on $machine (Debian 13 and Ubuntu 24.04 have it; on x86_64 also Debian 12 and Ubuntu 22.04); this system has ${version:-another C library}."
    fi
}

# Debian packs ensurepip apart from Python, and `python -m venv` without it leaves half a folder behind.
get_venv_module() {
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    local package
    package="python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    has apt-get || fail "$python cannot make virtual environments (its module ensurepip is missing). Install the package that has it, then run make again."
    if is_root; then
        apt_update
        apt_install "$package"
    else
        fail "$python cannot make virtual environments. Install the missing package, then run make again:" \
            "    sudo apt-get update && sudo apt-get install -y $package"
    fi
}

# What is installed is right when it came from these project files, into a .venv at this very place (its scripts hold
# absolute paths), for this Python.
wanted() {
    cat pyproject.toml packaging/constraints.txt | cksum
    pwd -P
    .venv/bin/python -V
}
stamp() { echo ".venv/pacenote-installed-$1"; }
installed() { [ -f "$(stamp "$1")" ] && [ "$(cat "$(stamp "$1")")" = "$(wanted)" ]; }

# pip comes last into a new .venv: without it, the run that made it was interrupted.
if [ -e .venv ] && ! { usable .venv/bin/python && .venv/bin/python -c 'import pip' 2>/dev/null; }; then
    say "The Python of .venv is gone, too old or incomplete: making .venv anew."
    rm -rf .venv
fi
if [ ! -e .venv ]; then
    get_python
    check_machine
    get_venv_module
    say "Making .venv with $("$python" -V) ($python)"
    "$python" -m venv .venv
fi
if installed dev || { [ "$kind" = run ] && installed run; }; then
    exit
fi
what=.
[ "$kind" = run ] || what='.[dev]'
say "Installing Pacenote into .venv: the first time this loads a few hundred MB and takes some minutes."
rm -f .venv/pacenote-installed-*
.venv/bin/python -m pip install --disable-pip-version-check --no-input --constraint packaging/constraints.txt --editable "$what"
wanted >"$(stamp "$kind")"
