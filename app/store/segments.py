"""The segment schedule as a small blob.

Byte 0 is the format (1). The rest is zlib over, per segment: kind (1 byte: 0 prefill, 1 decode), count (u32),
tokens (u32 each), little-endian. About 2 bytes a token.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from engine import Segment

_FORMAT = 1
_KINDS: tuple[str, ...] = ("prefill", "decode")


def pack(segments: Sequence[Segment]) -> bytes:
    """The blob of a schedule."""
    parts: list[bytes] = []
    for segment in segments:
        count = len(segment.tokens)
        parts.append(struct.pack(f"<BI{count}I", _KINDS.index(segment.kind), count, *segment.tokens))
    return bytes([_FORMAT]) + zlib.compress(b"".join(parts))


def unpack(blob: bytes | None) -> tuple[Segment, ...]:
    """The schedule in a blob; empty for None. Raises ValueError when the blob is not one of ours."""
    if blob is None:
        return ()
    if not blob or blob[0] != _FORMAT:
        raise ValueError("unknown format of a segment schedule")
    try:
        data = zlib.decompress(blob[1:])
        segments: list[Segment] = []
        offset = 0
        while offset < len(data):
            kind, count = struct.unpack_from("<BI", data, offset)
            tokens = struct.unpack_from(f"<{count}I", data, offset + 5)
            segments.append(Segment("decode" if kind else "prefill", tokens))
            offset += 5 + 4 * count
    except (zlib.error, struct.error) as error:
        raise ValueError(f"damaged segment schedule: {error}") from error
    return tuple(segments)
