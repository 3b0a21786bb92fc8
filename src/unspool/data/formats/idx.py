"""Read arrays from ``idx`` files, the format of the MNIST digits: a header of big-endian numbers, then the values.

    0 0 kind axes, the length of each axis (4 bytes each), the values, row after row

>>> import pathlib, tempfile
>>> temporary = tempfile.TemporaryDirectory()
>>> path = pathlib.Path(temporary.name) / "labels-idx1-ubyte"
>>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
>>> read_idx(path)
array([7, 2, 1], dtype=uint8)
>>> temporary.cleanup()
"""

import math
from pathlib import Path

import numpy as np

from unspool.data.text.decoding import read_bytes
from unspool.errors import InputError
from unspool.kernels.arrays import Array

KINDS = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: str | Path) -> Array:
    """Read an array from a file, gzipped or not."""
    content = read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in KINDS:
        raise InputError(f"{path}: not an idx file: it must begin with 0, 0, a kind of number and the axes")
    axes = content[3]
    begin = 4 + 4 * axes
    shape = np.frombuffer(content[4:begin], ">u4").tolist() if len(content) >= begin else []
    dtype = np.dtype(KINDS[content[2]])
    if len(shape) != axes or len(content) - begin != math.prod(shape) * dtype.itemsize:
        raise InputError(
            f"{path}: {len(content):,} bytes do not hold an array of shape {tuple(shape)}: cut off?"
        )
    values = np.frombuffer(content[begin:], dtype).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def read_images(images: str | Path, labels: str | Path) -> tuple[Array, Array]:
    """Read images (n, rows, columns) and their labels (n,)."""
    pixels, classes = read_idx(images), read_idx(labels)
    if pixels.ndim != 3 or classes.ndim != 1:
        raise InputError(
            f"{images}, {labels}: shapes {pixels.shape} and {classes.shape}; expected n images and n labels"
        )
    if len(pixels) != len(classes):
        raise InputError(f"{images}: {len(pixels):,} images, but {labels} has {len(classes):,} labels")
    return pixels, classes
