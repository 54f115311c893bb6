"""Reads a `.metallib`: which kernels it has, and the AIR bitcode of each.

The file starts with "MTLB". The 64-bit words from byte 24 on are (offset, size) of its sections: the list of functions
first, the bitcode fourth. The list is a count and, per function, its size and tagged fields: NAME, OFFT (three offsets,
the last into the bitcode section), MDSZ (size of the bitcode), ENDT.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path


class Metallib:
    """Kernels by name, read on demand."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._data[:4] != b"MTLB":
            raise ValueError(f"{path} is no Metal library")
        words = struct.unpack_from("<8Q", self._data, 24)
        self._bitcode = words[6]
        self._places = dict(self._functions(words[0]))

    def _functions(self, at: int):
        (count,) = struct.unpack_from("<I", self._data, at)
        at += 4
        for _ in range(count):
            (size,) = struct.unpack_from("<I", self._data, at)
            fields, field = {}, at + 4
            while (tag := self._data[field : field + 4]) != b"ENDT":
                (length,) = struct.unpack_from("<H", self._data, field + 4)
                fields[tag] = self._data[field + 6 : field + 6 + length]
                field += 6 + length
            name = fields[b"NAME"].rstrip(b"\0").decode()
            yield name, (struct.unpack("<3Q", fields[b"OFFT"])[2], *struct.unpack("<Q", fields[b"MDSZ"]))
            at += size

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def names(self) -> list[str]:
        return sorted(self._places)

    def bitcode(self, name: str) -> bytes:
        """LLVM bitcode of one kernel.

        Raises:
            KeyError: this library has no such kernel; another MLX version renamed it.
        """
        if name not in self._places:
            raise KeyError(f"{name} is not in this MLX version's library")
        offset, size = self._places[name]
        start = self._bitcode + offset
        return self._data[start : start + size]
