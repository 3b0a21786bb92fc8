"""Charts of a report: surprise along the text, the path of the state, text coloured by a unit."""

from __future__ import annotations

import unicodedata
from html import escape

import numpy as np

from unspool.inspect.components import Components
from unspool.inspect.page.axes import Axes, note
from unspool.inspect.reading import Reading, visible
from unspool.inspect.units import Unit
from unspool.kernels.arrays import Floats, Real
from unspool.plots.svg import Canvas, diverging, tag

SMOOTH = 25
"""Number of tokens in the moving average of the surprise."""
KINDS = {
    "blank": ("soft", "blank, line end"),
    "vowel": ("orange", "vowel"),
    "letter": ("blue", "other letter"),
    "capital": ("purple", "capital"),
    "mark": ("green", "punctuation"),
    "other": ("gold", "digit, other"),
}
"""Kinds of characters, with colour and name."""
PATH_SIZE, PATH_BOX = (640, 520), (20.0, 30.0, 600, 454)
"""Width and height of `path_chart`; left, top, width and height of its frame."""


def kind_of(piece: str) -> str:
    """Return the kind of a token by its first character that is not a blank.

    >>> [kind_of(piece) for piece in (" ", "a", "t", "T", ",", "7", "红")]
    ['blank', 'vowel', 'letter', 'capital', 'mark', 'other', 'letter']
    """
    char = piece.strip()[:1]
    if not char:
        return "blank"
    if char.isupper():
        return "capital"
    if char.lower() in "aeiou":
        return "vowel"
    if char.isalpha():
        return "letter"
    return "mark" if unicodedata.category(char)[0] in "PS" else "other"


def surprise_chart(reading: Reading) -> Canvas:
    """Draw the surprise of each token, and its moving average."""
    values, width, height = reading.surprise[1:], 1000, 230
    canvas = Canvas(width, height, "Surprise along the text")
    axes = Axes(
        canvas,
        (44, 26, width - 60, height - 72),
        (1, len(values) + 1),
        (0, max(1.0, float(np.quantile(values, 0.998)))),
    )
    axes.frame("token t", "surprise, nats")
    base = axes.y(0)
    bars = "".join(f"M{axes.x(t):.1f} {base:.1f}V{axes.y(v):.1f}" for t, v in enumerate(values, 2))
    canvas.tag("path", d=bars, fill="none", style="stroke:var(--red)", stroke_opacity=0.32, stroke_width=max(0.6, 0.8 * (width - 60) / len(values)))  # fmt: skip
    span = min(SMOOTH, len(values))
    smooth = np.convolve(values, np.ones(span) / span, "valid")
    axes.line(range(2 + span // 2, 2 + span // 2 + len(smooth)), smooth.tolist(), "ink", stroke_width=1.6)
    mean = axes.y(reading.nats)
    canvas.line(44, mean, width - 16, mean, class_="axis", stroke_dasharray="5 4")
    note(canvas, width - 16, 16, f"mean {reading.nats:.3f} nats (dashed); line: mean of {span} tokens", "end")
    canvas.tag("line", x1=0, x2=0, y1=26, y2=height - 46, class_="cursor", stroke_opacity=0)
    return canvas


def path_chart(reading: Reading, found: Components) -> Canvas:
    """Draw the position of the state after each token, labelled by the token, and the path of some steps."""
    (width, height), steps = PATH_SIZE, 12
    canvas = Canvas(width, height, "The path of the state")
    x, y, wide, high = PATH_BOX
    canvas.tag("rect", x=x, y=y, width=wide, height=high, rx=6, fill="none", class_="grid")
    note(canvas, width - 20, height - 14, f"first component: {found.shares[0]:.0%} of the variance →", "end")
    note(canvas, 20, 18, f"↑ second component: {found.shares[1]:.0%}")
    inside, positions = [], [(float(x), float(y)) for x, y in chart_positions(found)]
    for piece, (x, y) in zip(reading.pieces, positions, strict=True):
        colour = KINDS[kind_of(piece)][0]
        inside.append(tag("text", escape(visible(piece)[:6]), x=x, y=y + 4, style=f"fill:var(--{colour})", font_weight=700 if colour == "green" else None))  # fmt: skip
    canvas.add(tag("g", "".join(inside), class_="glyphs", text_anchor="middle", font_size=11, opacity=0.55))
    first = max(0, min(len(positions) - steps, len(positions) // 3))
    path = positions[first : first + steps]
    canvas.path(path, fill="none", class_="way", style="stroke:var(--ink)", stroke_width=1.3, stroke_opacity=0.6, stroke_linejoin="round")  # fmt: skip
    canvas.tag("circle", cx=path[-1][0], cy=path[-1][1], r=6, class_="now", style="fill:var(--ink);stroke:var(--paper)", stroke_width=2)  # fmt: skip
    return canvas


def chart_positions(found: Components) -> Real:
    """Return the positions of `path_chart` on its canvas, (T, 2)."""
    left, top, wide, tall = PATH_BOX
    low, high = found.positions.min(axis=0), found.positions.max(axis=0)
    pad = np.where(high > low, 0.04 * (high - low), 1.0)
    share = (found.positions - (low - pad)) / ((high + pad) - (low - pad))
    return np.stack([left + wide * share[:, 0], top + tall * (1 - share[:, 1])], axis=1)


def scaled(activation: Floats) -> Real:
    """Return activations scaled to -1 … 1; the lowest and the highest 2 % are clipped.

    >>> scaled(np.array([0.0, 5.0, 10.0])).round(1).tolist()
    [-1.0, 0.0, 1.0]
    """
    low, high = np.quantile(activation, [0.02, 0.98])
    middle, half = (low + high) / 2, max((high - low) / 2, 1e-12)
    level: Real = (activation.astype(np.float64) - middle) / half
    return np.clip(level, -1, 1)


def clearest_span(unit: Unit, length: int) -> int:
    """Return the start of the span of text in which the property of a unit varies most."""
    T = len(unit.activation)
    if length >= T:
        return 0
    values = unit.activation if unit.encodes is None else unit.encodes.values
    level = (values - values.mean()) / (values.std() or 1)
    total = np.concatenate([[0.0], np.cumsum(level)])
    square = np.concatenate([[0.0], np.cumsum(level**2)])
    mean = (total[length:] - total[:-length]) / length
    variance = (square[length:] - square[:-length]) / length - mean**2
    return int(variance.argmax())


def units_chart(reading: Reading, units: list[Unit]) -> Canvas:
    """Draw a span of the text for each unit, coloured by its activation."""
    columns, rows, high, wide = 96, 2, 22.0, 9.6
    each = 34 + rows * high + 14
    canvas = Canvas(columns * wide + 32, each * len(units) + 12, "Units and what they tell")
    for n, unit in enumerate(units):
        top = 12 + n * each
        canvas.text(16, top + 14, pretty(unit.name), class_="math", font_size=15)
        canvas.text(86, top + 14, describe_unit(unit), class_="soft", font_size=12.5)
        start, colours = clearest_span(unit, columns * rows), scaled(unit.activation)
        for k, i in enumerate(range(start, min(start + columns * rows, len(colours)))):
            x, y = 16 + (k % columns) * wide, top + 24 + (k // columns) * high
            canvas.tag("rect", x=x, y=y, width=wide, height=high - 3, style=f"fill:{diverging(colours[i])}")
            canvas.text(
                x + wide / 2, y + 14, visible(reading.pieces[i])[:1], text_anchor="middle", font_size=12
            )
    return canvas


def pretty(name: str) -> str:
    """Return the name of a unit with its number as an index: layer0.h17 becomes h₁₇.

    >>> pretty("layer0.h17"), pretty("layer1.s4")
    ('h₁₇', 'layer 2: s₄')
    """
    layer, _, rest = name.rpartition(".")
    number = int(layer.removeprefix("layer") or 0)
    below = rest[1:].translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
    return (f"layer {number + 1}: " if number else "") + rest[:1] + below


def describe_unit(unit: Unit) -> str:
    """Return one line about a unit: its property and mean activations."""
    if unit.encodes is None:
        return f"moves most: standard deviation {unit.activation.std():.2f}"
    means = [f"{mean:+.2f}".replace("-", "−") for mean in unit.means]
    what = f"{unit.share:.0%} of the information about “{unit.encodes.name}”"
    if unit.encodes.ranged:
        return f"{what}; mean from {means[0]} (first) to {means[-1]} (last)"
    return f"{what}; mean {means[-1]} there, {means[0]} elsewhere"
