"""Which units mean something that has a name: the share of a property that a unit's activation tells.

    share = I(u; p) / H(p)  -  the same for the property moved along the text

I is the mutual information between the activation u(t), cut into ranges that are equally frequent, and a
property p(t) of the place; H(p) is the property's entropy. A share of 0 tells nothing, 1 everything. A finite
text gives some information to any unit by chance; what is left when the property is moved along the text by
an arbitrary distance (eight of them) is that chance, and is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unspool.errors import InputError
from unspool.inspect.properties import Property
from unspool.kernels import native
from unspool.kernels.arrays import Floats

RANGES = 10
SHIFTS = 8
UNITS = 128
"""As many units are looked at together: what their tables take is bounded."""
Table = NDArray[np.float64]


@dataclass(frozen=True)
class Unit:
    """A unit that was chosen, and why."""

    name: str
    """Layer, letter and number: layer0.h17."""
    activation: Floats
    """T values."""
    tells: Property | None
    share: float
    """How much of the property it tells, chance taken off."""
    chance: float

    @property
    def means(self) -> list[float]:
        """The mean activation in each range of the property, or where it is not so and where it is."""
        if self.tells is None:
            return []
        values = self.tells.values
        return [
            float(self.activation[values == v].mean())
            for v in range(int(values.max()) + 1)
            if (values == v).any()
        ]


def shares(states: Floats, found: list[Property]) -> tuple[Table, Table]:
    """Give how much every unit tells of every property, units by properties, and how much of it is chance.

    >>> p = Property("heads", np.random.default_rng(0).integers(0, 2, 400), False)
    >>> u = np.stack([np.where(p.values, 0.9, -0.9), np.sin(np.arange(400) ** 2)], axis=1)
    >>> share, chance = shares(u, [p])
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
            told, *moved = (_told(joint[:, :, span].astype(np.float64)) for span in here)
            at = slice(first, first + UNITS)
            chance[at, i] = np.mean(moved, axis=0)
            share[at, i] = np.maximum(told - chance[at, i], 0)
    return share, chance


def _columns(found: list[Property], T: int) -> tuple[Floats, list[list[slice]]]:
    """Give a column for every value of every property, as it is and moved along the text; and which are whose."""
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


def _told(joint: Table) -> Table:
    """Give I(u; p) / H(p) of every unit, from the shares of (range, unit, value)."""
    p = joint.sum(axis=0)[0]
    u = joint.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0, joint * np.log(joint / (u * p)), 0.0)
        entropy = -np.sum(np.where(p > 0, p * np.log(p), 0.0))
    return terms.sum(axis=(0, 2)) / entropy  # type: ignore[no-any-return]


def choose(states: dict[str, Floats], found: list[Property], count: int = 8) -> list[Unit]:
    """Choose the units that tell most: first the best one for each property, then whatever tells most."""
    names = [f"{name}{i}" for name, values in states.items() for i in range(values.shape[1])]
    every = np.concatenate(list(states.values()), axis=1)
    if not found:
        order = np.argsort(-every.std(axis=0), kind="stable")[:count]
        return [Unit(names[i], every[:, i], None, 0.0, 0.0) for i in order]
    share, chance = shares(every, found)
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


def named(states: dict[str, Floats], found: list[Property], names: list[str]) -> list[Unit]:
    """Take the units that a user names: 17, h17, s17 or layer1.h17, and say what each tells most of."""
    made = []
    for name in names:
        letter, index = _parsed(name, states)
        column = states[letter][:, index]
        best, share, chance = None, 0.0, 0.0
        if found:
            each, by_chance = shares(column[:, None], found)
            at = int(each[0].argmax())
            best, share, chance = found[at], float(each[0, at]), float(by_chance[0, at])
        made.append(Unit(f"{letter}{index}", column, best, share, chance))
    return made


def _parsed(name: str, states: dict[str, Floats]) -> tuple[str, int]:
    last = [key for key in states if key.endswith(".h")][-1].partition(".")[0]
    layer, _, rest = name.rpartition(".")
    letter, digits = (rest[:1], rest[1:]) if rest[:1].isalpha() else ("h", rest)
    key = f"{layer or last}.{letter}"
    if key not in states or not digits.isdecimal() or int(digits) >= states[key].shape[1]:
        sizes = ", ".join(f"{key}0 … {key}{values.shape[1] - 1}" for key, values in states.items())
        raise InputError(f"units: there is no unit {name!r}; there are {sizes}")
    return key, int(digits)
