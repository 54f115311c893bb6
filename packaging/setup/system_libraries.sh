#!/usr/bin/env bash
# Qt's system libraries on Linux, which no wheel brings: asks the loader which ones are missing, installs them with apt
# when root, and otherwise prints the exact command and fails. macOS needs none.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/setup/lib.sh
. packaging/setup/lib.sh
[ "$(uname -s)" = Linux ] || exit 0

# The window's plugin needs the most; QtNetwork (single instance) and the OpenGL part of the plugin have needs of their own.
# The Wayland plugin is asked for only where there is Wayland: Qt falls back to X11 without it.
binaries() {
    local qt
    qt=$(.venv/bin/python -c 'import importlib.util as u; print(u.find_spec("PySide6").submodule_search_locations[0])')
    ls "$qt"/QtNetwork.abi3.so "$qt"/Qt/plugins/platforms/lib{qxcb,qoffscreen}.so "$qt"/Qt/plugins/xcbglintegrations/*.so
    [ -z "${WAYLAND_DISPLAY:-}" ] || ls "$qt"/Qt/plugins/platforms/libqwayland*.so
}

missing() { binaries | xargs -d '\n' ldd | awk '/=> not found/ { print $1 }' | sort -u; }

# Debian names a library's package after its soname (lib + name + version, a dash between when the name ends in a digit).
# Two break the rule. Since Debian 13 and Ubuntu 24.04 some names end in t64.
package_of() {
    local package
    case $1 in
        libglib-2.0.so.0 | libgthread-2.0.so.0) package=libglib2.0-0 ;;
        libbrotli*.so.1) package=libbrotli1 ;;
        *) package=$(tr 'A-Z_' 'a-z-' <<<"$1" | sed -E 's/([0-9])\.so\./\1-/; s/\.so\.//') ;;
    esac
    if ! apt_knows "$package" && apt_knows "${package}t64"; then
        package=${package}t64
    fi
    say "$package"
}
packages() { for soname in $1; do package_of "$soname"; done | sort -u | xargs; }

sonames=$(missing)
[ -n "$sonames" ] || exit 0
if ! has apt-get; then
    fail "Qt needs these system libraries; install them with your package manager, then run make again:" "    $(xargs <<<"$sonames")"
elif ! is_root; then
    needed=$(packages "$sonames")
    fail "Qt needs some system libraries. Install them, then run make again:" \
        "    sudo apt-get update && sudo apt-get install -y --no-install-recommends $needed"
fi
apt_update
needed=$(packages "$sonames") # after the update: before it apt may know no name
# shellcheck disable=SC2086  # one word per package is meant
apt_install $needed
sonames=$(missing)
[ -z "$sonames" ] || fail "Qt still misses these system libraries: $(xargs <<<"$sonames")"
