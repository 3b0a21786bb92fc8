"""Compare with common compressors: gzip, bzip2, xz, and 7-Zip's PPMd where the package pyppmd is installed."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import numpy as np

from unspool.compress import CompressionResult
from unspool.compress.literals import byte_widths, tokenize
from unspool.tasks.language.text_model import TextModel

OTHERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip -9": lambda data: gzip.compress(data, 9),
    "bzip2 -9": lambda data: bz2.compress(data, 9),
    "xz -9e": lambda data: lzma.compress(data, preset=9 | lzma.PRESET_EXTREME),
}
PPMD_ORDER, PPMD_MEMORY = 6, 16 << 20
"""The settings of 7-Zip for PPMd at its normal level."""


def other_programs() -> dict[str, Callable[[bytes], bytes]]:
    """Return the compressors by name: those of the standard library, and PPMd if its package is installed."""
    try:
        import pyppmd
    except ImportError:
        return OTHERS
    return OTHERS | {
        "PPMd (7-Zip)": lambda data: bytes(
            pyppmd.compress(data, max_order=PPMD_ORDER, mem_size=PPMD_MEMORY, variant="H")
        )
    }


Growth = dict[str, tuple[list[int], list[float]]]
POINTS, LEAST = 40, 64
"""The number of prefixes that are compared, and the tokens of the shortest."""


def growth(model: TextModel, data: bytes, packed: CompressionResult) -> Growth:
    """Return, per compressor, prefix lengths in bytes and bits per byte of each prefix; the network with and without header."""
    container, mode = packed.container, -1 if model.backward else 1
    read = np.cumsum(byte_widths(model.tokenizer, tokenize(model.tokenizer, data)[::mode]), dtype=np.int64)
    header = 8 * (len(container.to_bytes()) - len(container.payload) - len(container.model))
    marks = np.geomspace(min(LEAST, max(len(read), 1)), max(len(read), 1), POINTS).astype(int) - 1
    at = np.unique(marks) if len(read) else marks[:0]
    lengths: list[int] = read[at].tolist()
    bits = np.cumsum(packed.coded.bits)[at]
    found = {
        "the network": (lengths, ((bits + header) / read[at]).tolist()),
        "its bits alone": (lengths, (bits / read[at]).tolist()),
    }
    for name, press in OTHERS.items():
        parts = (data[-n:] if model.backward else data[:n] for n in lengths)
        found[name] = lengths, [8 * len(press(part)) / len(part) for part in parts]
    return found
