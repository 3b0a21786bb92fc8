"""Optimisers by name: base, adam, rmsprop, sgd, schedules. A new optimiser is one file and one line here.

>>> make_optimiser("sgd", learning_rate=0.1)
SGD(learning_rate=0.1, decay=0.0, clip=1.0, momentum=0.9)
"""

from typing import Any

from unspool.optimisers.adam import Adam
from unspool.optimisers.base import Optimiser
from unspool.optimisers.rmsprop import RMSprop
from unspool.optimisers.sgd import SGD
from unspool.options import check_choice

OPTIMISERS: dict[str, type[Optimiser]] = {
    "adam": Adam,
    "rmsprop": RMSprop,
    "sgd": SGD,
}


def check_optimiser(name: str) -> None:
    """Raise unless there is an optimiser of this name."""
    check_choice("optimiser", name, OPTIMISERS)


def make_optimiser(name: str, **settings: Any) -> Optimiser:
    """Return a new optimiser by its name."""
    check_optimiser(name)
    return OPTIMISERS[name](**settings)
