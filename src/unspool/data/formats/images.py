"""Convert images to sequences: arrays (n, h, w) or (n, h, w, c), and folders of image files.

    rows      a step is a row of the image: h steps of w · c values
    pixels    a step is one pixel, row after row: h · w steps of c values

>>> images = np.arange(12).reshape(1, 2, 2, 3)  # one image of 2 × 2 pixels in three colours
>>> image_sequences(images, by="rows").shape, image_sequences(images, by="pixels").shape
((1, 2, 6), (1, 4, 3))
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unspool.errors import EmptyInput, FileError, InputError, MissingExtra
from unspool.kernels.arrays import Array
from unspool.options import check_choice

IMAGE_STEPS = ("rows", "pixels")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm", ".pbm")
GREY = ("1", "L", "LA", "La")
DEEP = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""Modes of Pillow with one channel of more than 8 bits."""


def image_sequences(images: Any, by: str = "rows") -> Array:
    """Return images (n, h, w) or (n, h, w, c) as sequences (n, tau, X): by rows (n, h, w·c), by pixels (n, h·w, c)."""
    check_choice("by", by, IMAGE_STEPS)
    array = np.asarray(images)
    if array.ndim not in (3, 4) or array.dtype.kind not in "iufb":
        raise InputError(
            f"images have shape {array.shape} of {array.dtype}; expected numbers, (n, h, w) or (n, h, w, c)"
        )
    if not array.size:
        raise EmptyInput(f"images have shape {array.shape}: not one pixel")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        number = int(np.argwhere(~np.isfinite(array))[0][0]) + 1
        raise InputError(f"image {number:,} has a pixel that is NaN or infinite; expected finite numbers")
    n, h, w = array.shape[:3]
    values = array if array.dtype.kind == "f" else array.astype(np.float32)
    return values.reshape((n, h, -1) if by == "rows" else (n, h * w, -1))


def read_image_files(paths: Sequence[Path], by: str = "rows") -> Array:
    """Read image files of one size and one number of channels as sequences (n, tau, X)."""
    arrays = list[Array]()
    for path in paths:
        arrays.append(read_image(path))
        if arrays[-1].shape != arrays[0].shape:
            raise InputError(
                f"{path}: {_size(arrays[-1])}; expected {_size(arrays[0])} as in {paths[0]}: bring all images to one size "
                "and mode"
            )
    return image_sequences(np.stack(arrays), by)


def read_image(path: Path) -> Array:
    """Read one image as (h, w, c), with one channel (grey) or three (red, green, blue)."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise MissingExtra("images need Pillow: pip install unspool[images]") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                mode = image.mode
                same = mode if mode in DEEP else "L" if mode in GREY else "RGB"
                pixels = np.asarray(image if same == mode else image.convert(same))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        most = Image.MAX_IMAGE_PIXELS or 0
        raise InputError(
            f"{path}: more than {most:,} pixels, which may be a decompression bomb; make it smaller"
        ) from error
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file") from error
    except UnidentifiedImageError as error:
        raise InputError(
            f"{path}: not an image that Pillow can read; expected one of {', '.join(IMAGES)}"
        ) from error
    except (OSError, SyntaxError, ValueError, EOFError, OverflowError, MemoryError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"{path}: cannot be read as an image: {why}") from error
    return pixels.reshape(*pixels.shape[:2], -1)


def is_image(path: Path) -> bool:
    """Return whether a file has the ending of an image and is not hidden."""
    return not path.name.startswith(".") and path.suffix.lower() in IMAGES and path.is_file()


def image_files(folder: Path) -> dict[str, list[Path]]:
    """Return the image files of each sub-folder that has any, by the name of the sub-folder, sorted."""
    folders = [each for each in sorted(folder.iterdir()) if each.is_dir() and not each.name.startswith(".")]
    found = {each.name: [path for path in sorted(each.iterdir()) if is_image(path)] for each in folders}
    return {name: paths for name, paths in found.items() if paths}


def _size(array: Array) -> str:
    h, w, c = array.shape
    return f"{w} × {h} pixels of {c} channel{'s' * (c > 1)}"
