"""What dmgbuild puts into the disk image: the application, and a link to where it belongs. See dmg.sh."""

# ruff: noqa: F821  # dmgbuild defines `defines`, from its options -D
import os

application = defines["app"]
files = [application]
symlinks = {"Applications": "/Applications"}
icon = defines["icon"]
format = "ULFO"  # LZFSE: small, and every macOS that we support opens it
filesystem = "HFS+"
window_rect = ((200, 200), (540, 320))
icon_size = 96
icon_locations = {os.path.basename(application): (140, 150), "Applications": (400, 150)}
