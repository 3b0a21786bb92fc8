"""Find units that encode a property of the text, by normalised mutual information.

    share = I(u; p) / H(p)  -  chance level

I is the mutual information between the activation u(t), in equally frequent ranges, and a property p(t) of the position;
H(p) is the entropy of the property. A share of 0 means independence, 1 that u determines p. On a finite text every unit
has some information by chance: the mean of I(u; p) / H(p) over eight shifts of the property along the text. This chance
level is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unspool.errors import InputError
from unspool.inspect.properties import Property
from unspool.kernels import native
from unspool.kernels.arrays import Floats, Real

RANGES = 10
SHIFTS = 8
UNITS = 128
"""Number of units per block, which bounds the memory of their tables."""


@dataclass(frozen=True)
class Unit:
    """A unit and the property that it encodes best."""

    name: str
    """Layer, state and number: layer0.h17."""
    activation: Floats
    """Activations (T,)."""
    encodes: Property | None
    share: float
    """Normalised mutual information with the property, minus chance."""
    chance: float

    @property
    def means(self) -> list[float]:
        """Mean activation in each range of the property; for a yes-or-no property, where it is false and where it is true."""
        if self.encodes is None:
            return []
        values = self.encodes.values
        return [
            float(self.activation[values == v].mean())
            for v in range(int(values.max()) + 1)
            if (values == v).any()
        ]


def normalised_information(states: Floats, found: list[Property]) -> tuple[Real, Real]:
    """Return the normalised mutual information of units and properties, (units, properties), minus chance, and the chance level.

    >>> p = Property("heads", np.random.default_rng(0).integers(0, 2, 400), False)
    >>> u = np.stack([np.where(p.values, 0.9, -0.9), np.sin(np.arange(400) ** 2)], axis=1)
    >>> share, chance = normalised_information(u, [p])
    >>> [f"{value:.1f}" for value in share[:, 0]]
    ['0.9', '0.0']
    """
    T, H = states.shape
    columns, spans = _columns(found, T)
    share, chance = np.zeros((H, len(found))), np.zeros((H, len(found)))
    for first in range(0, H, UNITS):
        part = states[:, first : first + UNITS]
        ranked = np.argsort(np.argsort(part, axis=0, kind="stable"), axis=0, kind="stable")
        ones = np.zeros((RANGES, T, part.shape[1]), np.float32)
        np.put_along_axis(ones, (ranked * RANGES // T)[None], 1.0, axis=0)
        counts = native.matmul(np.ascontiguousarray(ones.transpose(0, 2, 1)).reshape(-1, T), columns)
        joint = counts.reshape(RANGES, -1, columns.shape[1]) / T
        for i, here in enumerate(spans):
            information, *moved = (
                _normalised_information(joint[:, :, span].astype(np.float64)) for span in here
            )
            at = slice(first, first + UNITS)
            chance[at, i] = np.mean(moved, axis=0)
            share[at, i] = np.maximum(information - chance[at, i], 0)
    return share, chance


def _columns(found: list[Property], T: int) -> tuple[Floats, list[list[slice]]]:
    """Return an indicator column per value of each property, unshifted and shifted, and the column ranges."""
    blocks: list[Floats] = []
    spans: list[list[slice]] = []
    at = 0
    for each in found:
        ones = np.eye(int(each.values.max()) + 1, dtype=np.float32)[each.values]  # T kinds
        spans.append([])
        for k in range(SHIFTS + 1):
            blocks.append(np.roll(ones, T * k // (SHIFTS + 1), axis=0))
            spans[-1].append(slice(at, at := at + ones.shape[1]))
    return np.concatenate(blocks, axis=1), spans


def _normalised_information(joint: Real) -> Real:
    """Return I(u; p) / H(p) of each unit from the joint distribution (range, unit, value)."""
    p = joint.sum(axis=0)[0]
    u = joint.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0, joint * np.log(joint / (u * p)), 0.0)
        entropy = -np.sum(np.where(p > 0, p * np.log(p), 0.0))
    return terms.sum(axis=(0, 2)) / entropy  # type: ignore[no-any-return]


def choose_units(states: dict[str, Floats], found: list[Property], count: int = 8) -> list[Unit]:
    """Return the units with most information: first the best one per property, then the best others.

    `states` holds one array (steps, H) per name.
    """
    names = [f"{name}{i}" for name, values in states.items() for i in range(values.shape[1])]
    every = np.concatenate(list(states.values()), axis=1)
    if not found:
        order = np.argsort(-every.std(axis=0), kind="stable")[:count]
        return [Unit(names[i], every[:, i], None, 0.0, 0.0) for i in order]
    share, chance = normalised_information(every, found)
    ranked = sorted(np.ndindex(*share.shape), key=lambda at: -share[at])
    chosen: dict[int, int] = {}
    for again in (False, True):
        for unit, i in ranked:
            if len(chosen) < count and unit not in chosen and (again or i not in chosen.values()):
                chosen[unit] = i
    made = [
        Unit(names[u], every[:, u], found[i], float(share[u, i]), float(chance[u, i]))
        for u, i in chosen.items()
    ]
    return sorted(made, key=lambda unit: -unit.share)


@dataclass(frozen=True)
class Stretch:
    """A stretch of the text around a place where a unit is strong."""

    begin: int
    end: int
    """The step after the last one."""
    at: int
    """The step with the largest modulus."""
    value: float


def strongest(activation: Floats, count: int = 8, *, reach: int = 20) -> list[Stretch]:
    """Return the stretches around the largest values of |u(t)|, the strongest first; two places are at least `reach` steps apart.

    >>> [(each.at, each.begin, each.end) for each in strongest(np.array([0, 0, 3, 0, 0, 0, -5, 1.0]), 2, reach=2)]
    [(6, 4, 8), (2, 0, 5)]
    """
    left, found = np.abs(activation.astype(np.float64)), list[Stretch]()
    while len(found) < min(count, len(activation)) and np.isfinite(left).any():
        at = int(np.nanargmax(left))
        begin, end = max(0, at - reach), min(len(left), at + reach + 1)
        found.append(Stretch(begin, end, at, float(activation[at])))
        left[begin:end] = np.nan
    return found


def informs(column: Floats, found: list[Property]) -> list[tuple[Property, float, float]]:
    """Return each property with the share of it that a unit (T,) encodes and the chance level, the largest share first."""
    if not found:
        return []
    (share,), (chance,) = normalised_information(column[:, None], found)
    order = sorted(range(len(found)), key=lambda i: -share[i])
    return [(found[i], float(share[i]), float(chance[i])) for i in order]


def find_units(states: dict[str, Floats], found: list[Property], names: list[str]) -> list[Unit]:
    """Return the named units (17, h17, s17 or layer1.h17) with the property that each encodes best.

    `states` holds one array (steps, H) per name.
    """
    made = []
    for name in names:
        letter, index = parse_unit(name, states)
        column = states[letter][:, index]
        told = informs(column, found)
        best, share, chance = told[0] if told else (None, 0.0, 0.0)
        made.append(Unit(f"{letter}{index}", column, best, share, chance))
    return made


def parse_unit(name: str, states: dict[str, Floats]) -> tuple[str, int]:
    """Return the state and the number in the name of a unit: 17, h17, s17 or layer1.h17."""
    last = [key for key in states if key.endswith(".h")][-1].partition(".")[0]
    layer, _, rest = name.rpartition(".")
    letter, digits = (rest[:1], rest[1:]) if rest[:1].isalpha() else ("h", rest)
    key = f"{layer or last}.{letter}"
    if key not in states or not digits.isdecimal() or int(digits) >= states[key].shape[1]:
        sizes = ", ".join(f"{key}0 … {key}{values.shape[1] - 1}" for key, values in states.items())
        raise InputError(f"units: no unit {name!r}; expected one of {sizes}")
    return key, int(digits)
