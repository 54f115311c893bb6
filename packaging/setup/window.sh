#!/usr/bin/env bash
# Opens the window, or says why there can be none and what works instead (exit 2).
set -euo pipefail
cd "$(dirname "$0")/../.."

# QT_QPA_PLATFORM set by hand (offscreen, vnc) means that the caller knows better.
if [ "$(uname -s)" = Linux ] && [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}${QT_QPA_PLATFORM:-}" ]; then
    {
        echo
        echo "There is no display here (DISPLAY and WAYLAND_DISPLAY are not set), so no window can open."
        echo "Pacenote is installed; chat in this terminal instead:"
        echo "    .venv/bin/pacenote chat"
    } >&2
    exit 2
fi
packaging/setup/system_libraries.sh
exec .venv/bin/pacenote "$@"
