"""Create figures and write them to files.

Characters that the default font lacks, such as Chinese ones, use an installed font that has them.
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
DEFAULT_FONT = "DejaVu Sans"
CJK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "PingFang SC", "Hiragino Sans GB", "Heiti SC", "STHeiti", "Microsoft YaHei", "SimHei", "SimSun",
    "Arial Unicode MS", "Droid Sans Fallback", "Noto Serif CJK SC", "Noto Serif CJK JP",
)  # fmt: skip
"""Fonts with Chinese, Japanese and Korean characters; the first installed one is used."""
UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Metadata that would differ from one writing of a figure to the next."""
CJK_FILES = re.compile(
    "Noto(Sans|Serif)CJK|SourceHanSans|wqy|PingFang|Hiragino|STHeiti|msyh|simhei|simsun", re.I
)
MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from", re.S)
BLUE, ORANGE, GREEN, GREY = "#2166ac", "#d6604d", "#1b7837", "#888888"


def new_axes(columns: int = 1, width: float = 6.4, height: float = 4.4) -> tuple[Any, list[Any]]:
    """Return a figure with axes side by side, without top and right borders."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("drawing needs matplotlib: pip install unspool[plot]") from error
    except ValueError as error:  # for example an unknown MPLBACKEND
        raise InputError(f"matplotlib cannot be used: {error}") from error
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    axes = list(figure.subplots(1, columns, squeeze=False)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def add_colour_bar(figure: Any, image: Any, axes: Any, label: str, *, size: int, **place: float) -> None:
    """Draw the scale of an image beside it, with a label and numbers of a font size."""
    bar = figure.colorbar(image, ax=axes, **place)
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=8, color=GREY)
    bar.ax.tick_params(labelsize=size, length=0)


def save(figure: Any, path: str | Path) -> None:
    """Write a figure to a file atomically, in the format of its ending; an existing file is replaced."""
    check_format(path)
    content, missing = _render(figure, path)
    if missing and (family := _find_cjk_font()) is not None:
        from matplotlib.text import Text

        for text in figure.findobj(Text):
            text.set_fontfamily([DEFAULT_FONT, family])
        content, missing = _render(figure, path)
    write_atomic(path, content)
    if missing:
        print(
            f"{Path(path).name}: no installed font has {' '.join(missing[:8])}, drawn as boxes; install one, for example Noto Sans CJK",
            file=sys.stderr,
        )


def _render(figure: Any, path: str | Path) -> tuple[bytes, list[str]]:
    """Return a figure as the bytes of a file, and the characters that its fonts lack."""
    from matplotlib import rc_context

    missing, content = dict[str, None](), io.BytesIO()
    kind = Path(path).suffix.lower().removeprefix(".")
    with warnings.catch_warnings(record=True) as caught, rc_context({"svg.hashsalt": "unspool"}):
        warnings.filterwarnings("always", message="Glyph")
        figure.savefig(content, dpi=150, format=kind, metadata=UNDATED.get(kind))
    for each in caught:
        if found := MISSING_GLYPH.match(str(each.message)):
            missing[chr(int(found[1]))] = None
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return content.getvalue(), list(missing)


def _find_cjk_font() -> str | None:
    """Return an installed CJK font, also one that was installed after matplotlib cached its list; None if there is none."""
    from matplotlib import font_manager

    known = {font.name for font in font_manager.fontManager.ttflist}
    if not known & set(CJK_FONTS):
        for path in font_manager.findSystemFonts():
            if CJK_FILES.match(Path(path).stem):
                font_manager.fontManager.addfont(path)
        known = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in CJK_FONTS if name in known), None)


def check_format(path: str | Path) -> None:
    """Raise InputError if the ending of a file name is not a format of plots."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path}: expected a name that ends with {', '.join(FORMATS)}")
