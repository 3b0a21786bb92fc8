"""Checks of hyper-parameters: integers, fractions, choices, unknown names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real

from unspool.errors import InputError, UnknownArgument

MOST_STEPS = 10**10
"""The most updates of a training, or tokens of a text to write: months at a thousandth of a second each."""


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise InputError(f"{name} is {value!r}; expected one of {', '.join(choices)}")


def is_number(value: object) -> bool:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_fraction(name: str, value: float) -> None:
    """Raise unless the value is a number from 0 to below 1."""
    if not is_number(value) or not 0 <= value < 1:
        raise InputError(f"{name} is {value!r}; expected a number of at least 0 and below 1")


def check_inside_unit(name: str, value: float) -> None:
    """Raise unless the value is a number above 0 and below 1."""
    if not is_number(value) or not 0 < value < 1:
        raise InputError(f"{name} is {value!r}; expected a number above 0 and below 1")


def check_positive(name: str, value: float) -> None:
    """Raise unless the value is a finite number above 0."""
    if not is_number(value) or not 0 < value < math.inf:
        raise InputError(f"{name} is {value!r}; expected a number above 0")


def at_least(name: str, value: int, least: int, most: int | None = None) -> int:
    """Return the value as Python's int; raise unless it is an integer, Python's or NumPy's, from `least` to `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number of {least} or more")
    if most is not None and value > most:
        raise InputError(f"{name} is {value:,}; expected a whole number of at most {most:,}")
    return int(value)


def check_integers(config: object, **least: int) -> None:
    """Check integer fields of a config against their least values, and store them as Python's int."""
    for name, low in least.items():
        object.__setattr__(config, name, at_least(name, getattr(config, name), low))


def refuse_unknown(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for a keyword argument that a class does not have, with the name that was probably meant.

    >>> refuse_unknown("LanguageModel", ["hiden"], ["hidden", "layers"])
    Traceback (most recent call last):
    unspool.errors.UnknownArgument: LanguageModel has no argument 'hiden': did you mean 'hidden'? It has hidden, layers
    """
    known = list(known)
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f": did you mean {near[0]!r}? It has " if near else "; it has "
            raise UnknownArgument(f"{kind} has no argument {name!r}{hint}{', '.join(known)}")


MOST_ORDER = 100
"""The longest n-grams. Time grows with the square of the order, and long before this almost every n-gram occurs once."""


def check_order(order: int, least: int = 1) -> int:
    """Return the order as Python's int; raise unless n-grams of this order can be counted."""
    return at_least("order", order, least, MOST_ORDER)
