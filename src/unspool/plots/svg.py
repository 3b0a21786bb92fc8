"""Write SVG: a canvas, palettes for light and dark backgrounds, a diverging colour scale.

The ends of the scale, blue and orange, are distinguishable with every kind of colour vision. Values near zero are nearly
transparent, so the scale works on light and dark backgrounds.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from unspool.storage.files import write_atomic

LIGHT = {
    "ink": "#1c2331",
    "soft": "#667085",
    "line": "#c3cad5",
    "paper": "#ffffff",
    "panel": "#f5f7fa",
    "blue": "#1f6fb4",
    "orange": "#d1570b",
    "green": "#0a8563",
    "purple": "#8b4fa8",
    "gold": "#a87400",
    "red": "#c2344d",
}
DARK = {
    "ink": "#e8ebf1",
    "soft": "#9aa5b8",
    "line": "#465067",
    "paper": "#12161f",
    "panel": "#1b2130",
    "blue": "#6db3f2",
    "orange": "#ff9a57",
    "green": "#4fd1a5",
    "purple": "#cf9be6",
    "gold": "#e7b84b",
    "red": "#ff7d90",
}
BLUE, ORANGE = (31, 111, 180), (222, 96, 16)
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Noto Sans','Noto Sans CJK SC',sans-serif"
SERIF = "'STIX Two Text','Cambria Math',Cambria,'Latin Modern Math','DejaVu Serif',Georgia,serif"


def palette(of: dict[str, str]) -> str:
    """Return colours as CSS variables."""
    return "".join(f"--{name}:{colour};" for name, colour in of.items())


STYLE = (
    f"svg.unspool{{{palette(LIGHT)}}}"
    f"@media(prefers-color-scheme:dark){{svg.unspool{{{palette(DARK)}}}}}"
    "svg.unspool .sheet{fill:var(--paper)}"
)
"""The style of a standalone picture; a page has its own."""
BASE = (
    f"svg.unspool{{font-family:{SANS};font-size:13px}}"
    "svg.unspool text{fill:var(--ink)}svg.unspool .soft{fill:var(--soft)}"
    f"svg.unspool .math{{font-family:{SERIF};font-style:italic}}"
    f"svg.unspool .sup{{font-family:{SERIF};font-style:normal;font-size:70%}}"
    "svg.unspool .grid{stroke:var(--line);stroke-width:1;opacity:.55}"
    "svg.unspool .axis{stroke:var(--soft);stroke-width:1}"
)


class Canvas:
    """SVG elements on a canvas of a given size.

    >>> canvas = Canvas(20, 10, "a line")
    >>> canvas.line(0, 0, 20, 10, stroke="var(--ink)")
    >>> canvas.inline()[:34]
    '<svg class="unspool" role="img" vi'
    """

    def __init__(self, width: float, height: float, title: str, style: str = "") -> None:
        self.width, self.height, self.title, self.style = width, height, title, style
        self.parts: list[str] = []

    def add(self, element: str) -> None:
        """Append a finished element."""
        self.parts.append(element)

    def tag(self, name: str, inside: str = "", /, **attributes: object) -> None:
        """Append an element; underscores in attribute names become hyphens, a trailing one is dropped."""
        self.add(tag(name, inside, **attributes))

    def line(self, x1: float, y1: float, x2: float, y2: float, **attributes: object) -> None:
        """Draw a line."""
        self.tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)

    def text(self, x: float, y: float, content: str, **attributes: object) -> None:
        """Draw an escaped text."""
        self.tag("text", escape(content), x=x, y=y, **attributes)

    def path(self, points: list[tuple[float, float]], **attributes: object) -> None:
        """Draw a line through points."""
        self.tag("path", d="M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in points), **attributes)

    def inline(self, more: str = "") -> str:
        """Return the picture as an element of a page that defines the palette."""
        head = (
            f'<svg class="unspool" role="img" viewBox="0 0 {_short(self.width)} {_short(self.height)}" '
            f'xmlns="http://www.w3.org/2000/svg" width="{_short(self.width)}" height="{_short(self.height)}"'
        )
        inside = f"<title>{escape(self.title)}</title>{more}" + "".join(self.parts)
        return f'{head} style="max-width:100%;height:auto"{self.style}>{inside}</svg>'

    def alone(self, css: str = "") -> str:
        """Return the picture as a standalone file."""
        sheet = f'<rect class="sheet" width="{_short(self.width)}" height="{_short(self.height)}"/>'
        return self.inline(f"<style>{STYLE}{BASE}{css}</style>{sheet}") + "\n"

    def save(self, path: str | Path, css: str = "") -> None:
        """Write the picture to a file, atomically; an existing file is replaced."""
        write_atomic(path, self.alone(css).encode("utf-8"))


def tag(name: str, inside: str = "", /, **attributes: object) -> str:
    """Return an element; floats have two decimals, attributes that are None are omitted.

    >>> tag("line", x1=0.123456, stroke_width=2, class_="soft")
    '<line x1="0.12" stroke-width="2" class="soft"/>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{inside}</{name}>" if inside else f"<{name}{given}/>"


def _value(value: object) -> str:
    return _short(value) if isinstance(value, float) else escape(str(value))


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def diverging(value: float) -> str:
    """Return the colour of a value from -1 (blue) to 1 (orange); larger magnitudes are less transparent.

    >>> diverging(-1.0), diverging(0.5)
    ('rgba(31,111,180,.9)', 'rgba(222,96,16,.45)')
    """
    size = min(abs(value), 1.0) if value == value else 0.0
    red, green, blue = ORANGE if value > 0 else BLUE
    opacity = f"{0.9 * size:.2f}".lstrip("0").rstrip("0").rstrip(".") or "0"
    return f"rgba({red},{green},{blue},{opacity})"
