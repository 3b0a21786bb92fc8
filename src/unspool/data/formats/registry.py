"""Registry of file formats with arrays, by file ending: a new one is a module with a reader and one entry here.

A reader takes the path, `by` (rows or pixels, for images) and `missing` (refuse or nan), and returns `Sequences`.
Any other file is read as a table (`unspool.data.formats.table`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from unspool.data.formats.base import Sequences, ending
from unspool.data.formats.npz import read_ragged
from unspool.data.formats.ts import read_ts


class ArrayFormat(NamedTuple):
    """A file format with arrays."""

    read: Callable[[Path, str | None, str], Sequences]
    may_hold_images: bool
    labels: str
    """How the file stores labels, for messages."""
    targets: str
    """How the file stores targets, for messages."""


_ARRAYS = ArrayFormat(
    lambda path, by, _: read_ragged(path, by), True, "an array 'labels'", "an array 'targets'"
)
ARRAY_FORMATS = {
    "npz": _ARRAYS,
    "npy": _ARRAYS._replace(labels="both arrays in one .npz: np.savez(path, images=…, labels=…)"),
    "ts": ArrayFormat(
        lambda path, _, missing: read_ts(path, missing), False, "@classLabel true", "@targetLabel true"
    ),
}


def array_format(path: Path) -> ArrayFormat | None:
    """Return the format of a file of arrays by its ending; None for tables, folders and all other files."""
    return None if path.is_dir() else ARRAY_FORMATS.get(ending(path))
