"""An empty figure, and a figure in a file.

Letters that the usual font lacks, as Chinese ones, are drawn in a font that is installed and has them.
"""

import io
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from unspool.errors import InputError, MissingExtra
from unspool.storage.files import write_atomic

FORMATS = (".png", ".svg", ".pdf")
USUAL = "DejaVu Sans"
WIDE = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "PingFang SC", "Hiragino Sans GB", "Heiti SC", "STHeiti", "Microsoft YaHei", "SimHei", "SimSun",
    "Arial Unicode MS", "Droid Sans Fallback", "Noto Serif CJK SC", "Noto Serif CJK JP",
)  # fmt: skip
"""Fonts with Chinese, Japanese and Korean letters, the first that is installed is taken."""
WIDE_FILES = re.compile(
    "Noto(Sans|Serif)CJK|SourceHanSans|wqy|PingFang|Hiragino|STHeiti|msyh|simhei|simsun", re.I
)
LACKED = re.compile(r"Glyph (\d+) .*missing from", re.S)
BLUE, ORANGE, GREEN, GREY = "#2166ac", "#d6604d", "#1b7837", "#888888"


def new_axes(columns: int = 1, width: float = 6.4, height: float = 4.4) -> tuple[Any, list[Any]]:
    """Make a figure with axes side by side, without borders at the top and at the right."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("drawing needs matplotlib: pip install unspool[plot]") from error
    except ValueError as error:  # an unknown MPLBACKEND, a setting that it refuses
        raise InputError(f"matplotlib cannot be used: {error}") from error
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    axes = list(figure.subplots(1, columns, squeeze=False)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Any, path: str | Path) -> None:
    """Write a figure to a file, in the format that its name ends with, atomically; an existing file is replaced."""
    check_format(path)
    content, lacked = _drawn(figure, path)
    if lacked and (family := _wide_font()) is not None:
        from matplotlib.text import Text

        for text in figure.findobj(Text):
            text.set_fontfamily([USUAL, family])
        content, lacked = _drawn(figure, path)
    write_atomic(path, content)
    if lacked:
        print(
            f"{Path(path).name}: no font here has {' '.join(lacked[:8])}, drawn as boxes; install one that does, as Noto Sans CJK",
            file=sys.stderr,
        )


def _drawn(figure: Any, path: str | Path) -> tuple[bytes, list[str]]:
    """Return a figure as the bytes of a file, and the letters that its fonts lack."""
    lacked, content = dict[str, None](), io.BytesIO()
    with warnings.catch_warnings(record=True) as met:
        warnings.filterwarnings("always", message="Glyph")
        figure.savefig(content, dpi=150, format=Path(path).suffix.lower().removeprefix("."))
    for each in met:
        if found := LACKED.match(str(each.message)):
            lacked[chr(int(found[1]))] = None
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return content.getvalue(), list(lacked)


def _wide_font() -> str | None:
    """Find an installed font with wide letters; one that came after matplotlib listed all is found as well."""
    from matplotlib import font_manager

    known = {font.name for font in font_manager.fontManager.ttflist}
    if not known & set(WIDE):
        for path in font_manager.findSystemFonts():
            if WIDE_FILES.match(Path(path).stem):
                font_manager.fontManager.addfont(path)
        known = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in WIDE if name in known), None)


def check_format(path: str | Path) -> None:
    """Refuse a name that ends with no format of pictures, before any work is done for it."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path}: expected a name that ends with {', '.join(FORMATS)}")
