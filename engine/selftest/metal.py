"""Where MLX's Metal kernels are: the library of compiled ones must lie beside the libmlx that is really loaded.

MLX looks for `mlx.metallib` in the folder of its own library and in `Resources` below it (device.cpp of its Metal
backend). A bundle that moves one without the other imports, and fails at the first product; and a second libmlx of
another installation may be the one that is loaded.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterable
from pathlib import Path

LIBRARIES = ("libmlx.dylib", "libmlx.so")
PLACES = ("mlx.metallib", "Resources/mlx.metallib", "Resources/default.metallib")


def loaded_images() -> list[str]:
    """Paths of the native libraries in this process."""
    if platform.system() == "Darwin":
        dyld = ctypes.CDLL(None)
        dyld._dyld_get_image_name.restype = ctypes.c_char_p
        names = (dyld._dyld_get_image_name(n) for n in range(dyld._dyld_image_count()))
        return [name.decode() for name in names if name]
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    return list(dict.fromkeys(fields[5] for line in lines if len(fields := line.split(maxsplit=5)) == 6))


def loaded_mlx(images: Iterable[str]) -> list[Path]:
    """Every libmlx among them. One is right; two means that two installations are mixed."""
    return sorted({Path(image).resolve() for image in images if Path(image).name in LIBRARIES})


def metallib_of(library: Path) -> Path | None:
    """The compiled kernels that this libmlx finds by its own place, None when there are none."""
    return next((place for name in PLACES if (place := library.parent / name).is_file()), None)
