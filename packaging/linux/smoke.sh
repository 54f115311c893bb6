#!/usr/bin/env bash
# Tries the .deb as somebody has it who develops nothing:  smoke.sh FILE.deb [SUITE]
# In a fresh minimal Debian (no Python, no compiler), with nothing but the package and what it depends on, as an ordinary
# user and without a network: self-test, a chat with the demo model, and the window on a virtual screen.
# Needs root, debootstrap, unshare and Xvfb; the pictures and the report land in build/linux-smoke.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=packaging/setup/lib.sh
. packaging/setup/lib.sh

package=$(realpath "${1:?the .deb}")
suite=${2:-bookworm}
{ [ "$(uname -s)" = Linux ] && is_root; } || fail "The smoke test makes a Debian of its own, and needs root on Linux for that."
for need in debootstrap:debootstrap unshare:util-linux Xvfb:xvfb import:imagemagick xdotool:xdotool sqlite3:sqlite3; do
    has "${need%%:*}" || fail "The command ${need%%:*} is missing. Install it, then run make again:" \
        "    apt-get update && apt-get install -y ${need##*:}"
done
root=$PWD/build/linux-smoke/debian-$suite
out=$PWD/build/linux-smoke/$suite
mkdir -p "$out"

if [ ! -e "$root/usr/bin/apt-get" ]; then
    say "Making a minimal Debian ($suite) in $root"
    mkdir -p "$root"
    debootstrap --variant=minbase "$suite" "$root" >"$out/debootstrap.log"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp "$package" "$root/pacenote.deb"
chroot "$root" apt-get update -q >"$out/apt.log"
chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends --reinstall /pacenote.deb \
    >>"$out/apt.log"
chroot "$root" id user >/dev/null 2>&1 || chroot "$root" useradd --create-home user
for tool in python3 gcc cc c++; do
    [ ! -e "$root/usr/bin/$tool" ] || fail "$tool is in $root: this shows nothing about a machine without it"
done

# inside COMMAND: as the user, without a network, seeing only the Debian (and the sockets of X).
mkdir -p /tmp/.X11-unix
inside() {
    # shellcheck disable=SC2016  # for the inner shell
    unshare --mount --net --pid --fork bash -euc '
        mount --bind /dev "$1/dev"
        mount -t proc proc "$1/proc"
        mkdir -p "$1/tmp/.X11-unix"
        mount --bind /tmp/.X11-unix "$1/tmp/.X11-unix"
        root=$1
        shift
        exec chroot "$root" setpriv --reuid user --regid user --clear-groups env -i HOME=/home/user LANG=C.UTF-8 PATH=/usr/bin:/bin "$@"
    ' inside "$root" "$@"
}

say "Without a display it says so"
status=0
inside pacenote >"$out/no-display.txt" 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "pacenote without a display ended with $status:" "$(cat "$out/no-display.txt")"

say "Self-test"
inside pacenote --self-test | tee "$out/self-test.txt"

say "A chat with the demo model"
inside pacenote chat --prompt "Tell me something interesting about bees." --max-tokens 60 | tee "$out/chat.txt"
[ -s "$out/chat.txt" ] || fail "The demo model said nothing."

say "The window"
display=:87
Xvfb $display -screen 0 1280x800x24 -nolisten tcp -ac >"$out/xvfb.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
started=$(date +%s%N)
status=0
rm -rf "$root/home/user/.local"
inside timeout --signal TERM --preserve-status 240 env DISPLAY=$display pacenote >"$out/window.txt" 2>&1 &
window=$!
shown=
for _ in $(seq 300); do
    sleep 0.1
    if found=$(DISPLAY=$display xdotool search --onlyvisible --name Pacenote 2>/dev/null); then
        shown=$((($(date +%s%N) - started) / 1000000))
        break
    fi
done
[ -n "$shown" ] || fail "No window appeared within 30 seconds:" "$(cat "$out/window.txt")"
say "It was shown after $shown ms"
# Without a window manager nobody gives it the focus. Return is pressed until the model has loaded and the message is sent.
sleep 2
export DISPLAY=$display
xdotool windowfocus "${found%%$'\n'*}" type --delay 20 "Who are you?"
messages() { sqlite3 "$root/home/user/.local/share/Pacenote/chats.db" "SELECT content FROM message WHERE $1" 2>/dev/null || true; }
reply=
for _ in $(seq 60); do
    [ -n "$(messages "role = 'user'")" ] || xdotool key Return
    sleep 2
    reply=$(messages "role = 'assistant' AND state = 'complete'")
    [ -z "$reply" ] || break
done
import -window root "$out/window.png"
[ -n "$reply" ] || fail "The window did not answer; its picture is $out/window.png."
say "It answered: $reply"
xdotool key ctrl+q
wait $window || status=$?
[ "$status" -eq 0 ] || fail "The window ended with $status:" "$(cat "$out/window.txt")"
say "All as it should be; pictures and reports are in $out"
