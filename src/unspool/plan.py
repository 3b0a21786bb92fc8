"""People have minutes, not epochs: what is trained, and how, so that it ends well at the deadline."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from unspool.errors import InputError
from unspool.values import CellName


@dataclass(frozen=True)
class Recipe:
    """The numbers of a training, all fixed before its first update: with them it can be repeated to the bit."""

    cell: CellName = "lstm"
    """elman, gru or lstm."""
    hidden: int = 256
    """H, the units of a layer."""
    layers: int = 1
    """How many layers stand on each other."""
    embedding: int = 0
    """The width of the token table; 0: one-hot tokens."""
    tied: bool = False
    """Whether the output's matrix is the token table."""
    dropout: float = 0.2
    """The share of a layer's outputs that is dropped."""
    recurrent_dropout: float = 0.0
    """The share of the state that is dropped inside the recurrence."""
    B: int = 16
    """Rows side by side."""
    tau: int = 64
    """Steps in a window."""
    learning_rate: float = 4e-3
    """Adam's, at its highest."""
    clip: float = 1.0
    """The largest norm of a gradient; 0: no limit."""
    decay: float = 0.0
    """Weight decay on matrices."""
    warmup: int = 50
    """Over how many updates the learning rate rises."""
    steps: int = 1000
    """How many updates; the learning rate ends with the last."""


def choose(
    *,
    vocabulary: int,
    tokens: int,
    kind: str,
    seconds: float,
    measure: Callable[[Recipe], float],
    given: Mapping[str, Any],
) -> Recipe:
    """Choose what is not given; `measure` says how many updates a second a recipe makes here."""
    refuse_unknown(given)
    recipe = Recipe(**{"steps": 1} | dict(given))
    if "steps" in given:
        return recipe
    return replace(recipe, steps=max(1, round(seconds * measure(recipe))))


def refuse_unknown(given: Mapping[str, Any]) -> None:
    """Raise for a name that is none of the recipe's."""
    known = [field.name for field in fields(Recipe)]
    if unknown := sorted(set(given) - set(known)):
        raise InputError(f"{unknown[0]}: no number of a recipe; there are {', '.join(known)}")
