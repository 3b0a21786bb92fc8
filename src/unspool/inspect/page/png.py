"""Write a heat map as PNG, one pixel per value: blue below zero, orange above, transparent at zero."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from unspool.plots.svg import BLUE, ORANGE

LEVELS = 127


def heat(values: NDArray[np.floating]) -> bytes:
    """Return a PNG of values (rows, columns) from -1 to 1.

    The palette has 255 colours with transparency, so it works on light and dark backgrounds.

    >>> heat(np.zeros((2, 3)))[:4]
    b'\\x89PNG'
    """
    rows, columns = values.shape
    steps = np.clip(np.nan_to_num(values), -1, 1)
    index = (LEVELS + np.rint(steps * LEVELS)).astype(np.uint8)
    levels = np.arange(-LEVELS, LEVELS + 1)
    colours = np.where((levels > 0)[:, None], ORANGE, BLUE).astype(np.uint8)
    alpha = np.rint(235 * np.abs(levels) / LEVELS).astype(np.uint8)
    lines = np.concatenate(
        [np.zeros((rows, 1), np.uint8), index], axis=1
    )  # each row begins with filter type 0
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, content)
        for kind, content in (
            (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),
            (b"PLTE", colours.tobytes()),
            (b"tRNS", alpha.tobytes()),
            (b"IDAT", zlib.compress(lines.tobytes(), 9)),
            (b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
