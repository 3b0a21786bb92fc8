"""Units in words and on a scale: the name, what it encodes, the clearest part of a text."""

from __future__ import annotations

import numpy as np

from unspool.inspect.units import Unit
from unspool.kernels.arrays import Floats, Real


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
