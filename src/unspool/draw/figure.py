"""An empty figure, and a figure in a file."""

from pathlib import Path
from typing import Any

from unspool.errors import FileError, InputError, MissingExtra

FORMATS = (".png", ".svg", ".pdf")
BLUE, ORANGE, GREEN, GREY = "#2166ac", "#d6604d", "#1b7837", "#888888"


def new_axes(columns: int = 1, width: float = 6.4, height: float = 4.4) -> tuple[Any, list[Any]]:
    """Make a figure with axes side by side, without borders at the top and at the right."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("drawing needs matplotlib: pip install unspool[plot]") from error
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    axes = list(figure.subplots(1, columns, squeeze=False)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Any, path: str | Path) -> None:
    """Write a figure to a file, in the format that its name ends with."""
    check_format(path)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from error


def check_format(path: str | Path) -> None:
    """Refuse a name that ends with no format of pictures, before any work is done for it."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path}: expected a name that ends with {', '.join(FORMATS)}")
    if not Path(path).absolute().parent.is_dir():
        raise FileError(f"{path}: cannot be written: there is no folder {Path(path).parent}")
