# shellcheck shell=bash
# Sourced by the scripts beside it; works with the bash 3.2 of macOS.

say() { printf '%s\n' "$*"; }

# Every sentence says what is missing and the command that mends it, so nothing is printed after it.
fail() {
    printf '\n%s\n' "$@" >&2
    exit 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

has() { command -v "$1" >/dev/null 2>&1; }

# apt's lists are refreshed once per script: a fresh container has none, and then no package is found.
apt_update() {
    [ -z "${APT_UPDATED:-}" ] || return 0
    apt-get update -q
    APT_UPDATED=1
}

# The lock is waited for because a fresh Ubuntu runs its own upgrades in the first minutes.
apt_install() {
    say "Installing with apt-get: $*"
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
}

apt_knows() { apt-cache show "$1" >/dev/null 2>&1; }
