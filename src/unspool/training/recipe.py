"""People have minutes, not epochs: what is trained, and how, so that it ends well at the deadline.

Of a text of T tokens, a network with N weights inside (those to the output not counted) reads D by the deadline:

    D = seconds · updates a second · B · tau                                                            (1)
    H: the largest of SIZES that still reads D ≥ READ · N tokens                                        (2)
    learning rate = min(r, q / H), with r and q of the cell                                             (3)
    dropout = DROPOUT · e / (e + 1),  e = (E / HALF)²,  E = D / T epochs                                (4)
    K > 1,024: dropout = max((4), WORD_DROPOUT · x / (x + 1)), decay = WORD_DECAY · x / (x + 1),
               x = (E · K / T / RARE)²                                                                  (5)

A larger network learns more from every token and sees fewer of them; (2) is where the two balance. A network that
reads its text several times begins to know it by heart; (4) is what holds it back, and (5) where most tokens are rare. `docs/log.md` has the
measurements behind every constant. Whatever the user has fixed is taken as it is, and the rest follows it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from unspool.cells import DEFAULT, PLAIN, TASK_DEFAULT, CellName, cell_named
from unspool.errors import InputError
from unspool.kernels.arrays import Activation, Precision
from unspool.model import options as network
from unspool.model.config import INPUT_TABLE_LIMIT, ModelConfig
from unspool.model.cutoffs import FULL, parse_cutoffs
from unspool.model.values import Feedback
from unspool.optimisers import options as optimisers
from unspool.optimisers.schedules.base import Plans, refuse_plans
from unspool.options import POSITIVE, check_choice, check_fields, check_values, declared, key_of, to_json
from unspool.training import options as o
from unspool.training.shards import refuse_uneven, whole_shards

SIZES = (64, 96, 128, 192, 256, 384, 512, 640, 768, 1024)
"""H is one of these: whole vectors, and near enough to each other."""
READ = 6.0
"""How many tokens are read for each weight."""
DROPOUT = 0.6
"""What dropout comes near to over many epochs."""
HALF = 7.0
"""After how many epochs half of it is reached."""
WORD_DROPOUT, WORD_DECAY = 0.6, 0.5
"""The dropout and weight decay that a large vocabulary comes near to."""
RARE = 0.2
"""Half of both is reached where epochs times the share of types among the tokens is so much."""
ROWS, TAU = 16, 64
"""Rows and steps of a window: small ones, and so many updates."""
TAILS = 1.5
"""The outputs that an adaptive softmax computes per token, over those of its shortlist: about so many for the tails."""
LEAST_READ, LEAST_EPOCHS = 1_000_000, 0.6
"""Tokens, and passes over its text, that a network of a large vocabulary reads until it predicts better than 5-grams."""
RESTART = 0.02
"""The probability that an update resets a row: after 50 windows in the mean."""
KEYS = {"batch_size": "B", "window": "tau", "warmup_fraction": "warmup"}
"""Names in the JSON of a run."""
MEASUREMENTS = 3
"""At most so many sizes are tried out."""


@declared(network, optimisers, o, keys=KEYS)
@dataclass(frozen=True)
class Recipe:
    """The numbers of a training, all fixed before its first update: with them it can be repeated to the bit."""

    cell: CellName = DEFAULT
    hidden: int = 256
    layers: int = 1
    embedding: int = 0
    tied: bool = False
    input_scale: float = 0.0
    dropout: float = 0.2
    recurrent_dropout: float = 0.0
    batch_size: int = 16
    shards: int = 1
    window: int = 64
    restart: float = 0.0
    learning_rate: float = 6e-3
    clip: float = 1.0
    decay: float = 0.0
    warmup: int = 100
    steps: int = 1000
    plans: Plans = ()
    activation: Activation = "tanh"
    h0: network.InitialState = "zero"
    pattern: str = "10.3"
    feedback: Feedback = "token"
    precision: Precision = "float32"
    softmax: str = FULL


@dataclass(eq=False, repr=False, kw_only=True)
class FitFields:
    """The hyper-parameters of a fit, for its config and the estimators."""

    epochs: int = 30
    steps: int | None = None
    minutes: float | None = None
    batch_size: int = 32
    shards: int = 1
    learning_rate: float = 3e-3
    clip: float = 1.0
    decay: float = 0.0
    validation: float = 0.0
    patience: int = 0
    seed: int = 0
    optimiser: str = "adam"
    schedule: str = "cosine"


@declared(optimisers, o, keys=KEYS)
@dataclass(unsafe_hash=True)
class FitConfig(FitFields):
    """How long and how fast a network for sequences is fitted."""

    warmup_fraction: float = 0.05
    validations: int = 40
    members: int = 1
    """The number of networks, each without one fold of the rows."""
    least: int = 0
    """The fewest updates of each network that the epochs amount to."""

    def __post_init__(self) -> None:
        check_fields(self)
        POSITIVE("learning_rate", self.learning_rate)
        refuse_uneven(self.shards, self.batch_size)
        if self.patience and not self.validation:
            raise InputError("patience needs rows set aside: give validation, for instance 0.1")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return to_json(self)


def choose_recipe(
    *,
    vocabulary: int,
    tokens: int,
    seconds: float,
    measure: Callable[[Recipe], float],
    given: Mapping[str, Any],
    clock: Callable[[], float] = time.perf_counter,
) -> Recipe:
    """Choose what is not given; `measure` says how many updates a second a recipe makes here.

    The seconds are those that are left; what the measurements take of them is not spent twice.

    >>> recipe = choose_recipe(
    ...     vocabulary=65, tokens=1_000_000, seconds=150, given={"window": 100}, clock=lambda: 0.0,
    ...     measure=lambda recipe: 28e9 / (weights(recipe, 65)[1] * recipe.batch_size * recipe.window),
    ... )
    >>> recipe.hidden, recipe.window, recipe.learning_rate, recipe.dropout, recipe.steps
    (384, 100, 0.0104, 0.29, 4270)
    """
    given, begin = check(given), clock()
    sizes = [_of_size(H, vocabulary, tokens, given) for H in _hiddens(given)]
    if "steps" in given:
        recipe = _largest(sizes, vocabulary, dict.fromkeys(sizes, given["steps"]))
    else:
        recipe, rate = _measured(sizes, vocabulary, seconds, measure)
        recipe = replace(recipe, steps=max(1, round((seconds - (clock() - begin)) * rate)))
    epochs = recipe.steps * recipe.batch_size * recipe.window / max(1, tokens)
    dropout, decay = _regularisation(epochs, vocabulary, tokens)
    found = {"dropout": dropout, "decay": decay, "warmup": max(1, min(100, recipe.steps // 10))}
    recipe = replace(recipe, **found | given)
    refuse_uneven(recipe.shards, recipe.batch_size)
    return recipe


def _regularisation(epochs: float, vocabulary: int, tokens: int) -> tuple[float, float]:
    """Return dropout and weight decay after (4) and (5)."""
    e = (epochs / HALF) ** 2
    dropout = DROPOUT * e / (e + 1)  # (4)
    if vocabulary <= INPUT_TABLE_LIMIT:
        return round(dropout, 2), 0.0
    x = (epochs * vocabulary / max(1, tokens) / RARE) ** 2  # (5)
    return round(max(dropout, WORD_DROPOUT * x / (x + 1)), 2), round(WORD_DECAY * x / (x + 1), 2)


def check(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given part of a recipe with Python's integers; raise where a name or a value cannot be used."""
    names = {key_of(field): field.name for field in fields(Recipe)}
    given = {names.get(name, name): value for name, value in given.items()}
    if unknown := sorted(set(given) - set(names.values())):
        raise InputError(f"{unknown[0]}: no number of a recipe; there are {', '.join(names.values())}")
    plain = check_values(Recipe, given)
    if "batch_size" in given:
        refuse_uneven(given.get("shards", 1), given["batch_size"])
    if "plans" in given:
        refuse_plans(given["plans"], given.get("steps", 0))
    _check_network(given)
    return plain


def _check_network(given: Mapping[str, Any]) -> None:
    """Raise where pattern, activation, h0 and cell do not go together."""
    pattern = given.get("pattern", "10.3")
    if pattern == "10.5":
        raise InputError(
            "pattern is 10.5, which has one output after the whole sequence: train it with unspool classify; a language "
            "model needs 10.3 or 10.4"
        )
    check_choice("pattern", pattern, ("10.3", "10.4"))
    names = ("activation", "feedback", "layers", "recurrent_dropout")
    ModelConfig(
        inputs=1,
        outputs=1,
        cell=given.get("cell", _cell(given, vocabulary=0)),
        pattern=pattern,
        learn_h0=given.get("h0") == "learned",
        **{name: given[name] for name in names if name in given},
    )


def _cell(given: Mapping[str, Any], vocabulary: int) -> CellName:
    """Choose the cell if it is not given: the plain one if only that can be meant; that of the tasks for a large vocabulary."""
    if given.get("pattern") == "10.4" or given.get("activation", "tanh") != "tanh":
        return PLAIN
    return TASK_DEFAULT if vocabulary > INPUT_TABLE_LIMIT else DEFAULT


def weights(recipe: Recipe, vocabulary: int) -> tuple[int, int]:
    """Count the weights that a token passes through: inside the network, and with its output.

    >>> weights(Recipe(cell="gru", hidden=512), vocabulary=65)
    (786432, 819712)
    """
    cell, H = cell_named(recipe.cell), recipe.hidden
    read = (
        recipe.embedding if vocabulary > INPUT_TABLE_LIMIT else 0
    )  # else a row of a table, which costs nothing
    inside = cell.weights(read, H) + (recipe.layers - 1) * cell.weights(H, H)
    cutoffs = parse_cutoffs(recipe.softmax)
    return inside, inside + round(TAILS * cutoffs[0] if cutoffs else vocabulary) * H


def tokens_to_beat_ngrams(vocabulary: int, tokens: int) -> int:
    """Return about how many tokens a network of a large vocabulary must read to predict better than the n-grams of its text.

    >>> tokens_to_beat_ngrams(33_278, tokens=2_000_000), tokens_to_beat_ngrams(65, tokens=1_000_000)
    (1200000, 0)
    """
    return max(LEAST_READ, round(LEAST_EPOCHS * tokens)) if vocabulary > INPUT_TABLE_LIMIT else 0


def _hiddens(given: Mapping[str, Any]) -> Sequence[int]:
    if "hidden" in given:
        return (given["hidden"],)
    if given.get("tied") and given.get("embedding"):
        return (given["embedding"],)
    return SIZES


def _of_size(H: int, vocabulary: int, tokens: int, given: Mapping[str, Any]) -> Recipe:
    """Fill in all that depends on the size and not on the time."""
    many = vocabulary > INPUT_TABLE_LIMIT
    tied = given.get("tied", many and given.get("embedding", H) == H)
    S, few = (
        given.get("shards", 1),
        max(1, min(ROWS, tokens // (4 * TAU))),
    )  # a short text: fewer rows, of some length
    B = given.get("batch_size", whole_shards(few, S))
    name: CellName = given.get("cell", _cell(given, vocabulary))
    cell, embedding = cell_named(name), given.get("embedding", H if many or tied else 0)
    highest, per_unit = cell.learning_rate
    chosen = Recipe(
        cell=name,
        hidden=H,
        embedding=embedding,
        tied=tied,
        batch_size=B,
        window=max(1, min(TAU, (tokens - 1) // B)),
        input_scale=0.0 if embedding else cell.input_scale,
        restart=RESTART,
        learning_rate=round(min(highest, per_unit / H), 4),  # (3)
        steps=1,
    )
    return replace(chosen, **given)


def _largest(
    sizes: Sequence[Recipe], vocabulary: int, rates: Mapping[Recipe, float], seconds: float = 1.0
) -> Recipe:
    """Choose the largest size that reads enough tokens for its weights at its rate; else the smallest."""
    enough = [
        size
        for size in sizes
        if seconds * rates[size] * size.batch_size * size.window >= READ * weights(size, vocabulary)[0]  # (2)
    ]
    return max(enough or [min(sizes, key=_hidden)], key=_hidden)


def _measured(
    sizes: Sequence[Recipe], vocabulary: int, seconds: float, measure: Callable[[Recipe], float]
) -> tuple[Recipe, float]:
    """Measure a middle size, go where its speed points to and measure there; give a size and its rate."""
    rates: dict[Recipe, float] = {}
    recipe = sizes[len(sizes) // 2 - 1] if len(sizes) > 1 else sizes[0]
    while recipe not in rates and len(rates) < MEASUREMENTS:
        rates[recipe] = measure(recipe)
        # Another size takes as much longer as it has more weights, nearly.
        spent = rates[recipe] * weights(recipe, vocabulary)[1]
        expected = {size: spent / weights(size, vocabulary)[1] for size in sizes}
        recipe = _largest(sizes, vocabulary, expected, seconds)
    best = _largest(list(rates), vocabulary, rates, seconds)
    return best, rates[best]


def _hidden(recipe: Recipe) -> int:
    return recipe.hidden
