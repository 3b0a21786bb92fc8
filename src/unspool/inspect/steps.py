"""How the prediction of a sequence model changes with every step that it reads.

    x(1) … x(t) ─▶ model ─▶ prediction after t steps,   t = 1 … τ

A model with one output is asked for the output of every beginning of the sequence; one with an output per step gives
that of step t. After the last step, the prediction is bit-identical to that of the whole sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unspool.baselines.sequences.choice import NETWORK
from unspool.data.encoders import TokenEncoder
from unspool.data.tokens.registry import make_tokenizer
from unspool.errors import InputError
from unspool.kernels.arrays import Floats, Real, Whole
from unspool.tasks.classify import SequenceClassifier
from unspool.tasks.estimator import Estimator
from unspool.tasks.regress import SequenceRegressor
from unspool.tasks.tag import SequenceTagger

MOST = 256
"""Beginnings of a sequence that are predicted; of a longer one, some of them."""


@dataclass(frozen=True)
class StepPredictions:
    """The predictions for one sequence after t steps, and the states of the last layer."""

    pieces: list[str]
    """The tokens of the sequence; empty for numbers."""
    values: Real
    """The numbers of the sequence, τ X; empty for tokens."""
    steps: Whole
    """How many steps were read, ascending; the last is τ."""
    predictions: Real
    """Probabilities of the classes, or numbers: one row per entry of `steps`."""
    states: Floats
    """h(t), both directions side by side: τ H."""
    truth: str | list[str] | list[float] | None = None
    """The class or numbers of the sequence, or the class of every step; None where they are not known."""


@dataclass(frozen=True)
class StepsReport:
    """The predictions for some sequences."""

    run: str
    data: str
    model: Estimator
    names: list[str]
    """The classes, or the predicted numbers."""
    sequences: list[StepPredictions]

    @property
    def classes(self) -> bool:
        """Whether the predictions are probabilities."""
        return not isinstance(self.model, SequenceRegressor)

    @property
    def per_step(self) -> bool:
        """Whether there is an output for every step."""
        return self.model.network_.config.per_step


def predictions_by_step(
    model: Estimator,
    X: Any,
    y: Any = None,
    *,
    run: str = "a model",
    data: str = "sequences",
    names: Sequence[str] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> StepsReport:
    """Return how the predictions of the network of a classifier, tagger or regressor change while it reads each sequence of X.

    >>> X, y = ["aab", "bba", "ab", "ba"] * 10, ["a first", "b first", "a first", "b first"] * 10
    >>> model = SequenceClassifier(hidden=8, epochs=20, seed=1, model="network").fit(X, y)
    >>> (found,) = predictions_by_step(model, ["abbbb"]).sequences
    >>> found.steps.tolist(), bool((found.predictions[-1] == model.predict_proba(["abbbb"])[0]).all())
    ([1, 2, 3, 4, 5], True)
    """
    if not isinstance(model, SequenceClassifier | SequenceTagger | SequenceRegressor):
        raise InputError(
            f"{type(model).__name__} cannot be inspected; expected a language model, a classifier, a tagger or a regressor"
        )
    rows = list(X)
    if not rows:
        raise InputError("there is not one sequence to inspect; expected one or more")
    if y is not None and len(y) != len(rows):
        raise InputError(f"there are {len(rows)} sequences and {len(y)} truths; expected as many")
    note("reading")
    states = _states(model, rows)
    note("predicting")
    found = []
    for i, row in enumerate(rows):
        pieces, values = _inputs(model, row)
        steps, predictions = _predictions(model, row, len(states[i]))
        truth = None if y is None else _plain(y[i])
        found.append(StepPredictions(pieces, values, steps, predictions, states[i], truth))
    outputs = found[0].predictions.shape[1]
    if names is None:
        learned = getattr(model, "classes_", None)
        names = [f"y{k + 1}" for k in range(outputs)] if learned is None else [str(each) for each in learned]
    return StepsReport(run, data, model, list(names), found)


def _states(model: Estimator, rows: list[Any]) -> list[Floats]:
    """Return h(t) of the last layer for every row."""
    examples, network = model._examples(rows), model.network_
    weights, found = network.weights(), list[Any]([None] * len(rows))
    for batch in examples.batches(1, per_step=False):
        h = network.encode(batch, weights).h
        for b, row in enumerate(batch.rows.tolist()):
            found[row] = h[: batch.lengths[b], b].copy()
    for i, h in enumerate(found):
        if not len(h):
            raise InputError(f"sequence {i + 1} is empty; expected one step or more")
    return found


def _inputs(model: Estimator, row: Any) -> tuple[list[str], Real]:
    coder = model.coder_
    if isinstance(coder, TokenEncoder):
        tokens = make_tokenizer(coder.tokens).encode_text(row) if isinstance(row, str) else row
        return [str(token) for token in tokens], np.empty((0, 0))
    values = np.asarray(row, np.float64)
    return [], values.reshape(len(values), -1)


def _predictions(model: Any, row: Any, tau: int) -> tuple[Whole, Real]:
    """Return how many steps are read, and the prediction of the network after each."""
    if hasattr(model, "choice_"):
        model = copy(model)
        model.choice_ = replace(model.choice_, kept=NETWORK)
    ask = model.predict if isinstance(model, SequenceRegressor) else model.predict_proba
    if model.network_.config.per_step:
        return np.arange(1, tau + 1), np.asarray(ask([row])[0], np.float64).reshape(tau, -1)
    steps = np.unique(np.linspace(1, tau, min(tau, MOST)).round().astype(np.int64))
    cut = _cutter(model, row)
    found = np.asarray(ask([cut(t) for t in steps.tolist()]), np.float64)
    return steps, found.reshape(len(steps), -1)


def _cutter(model: Estimator, row: Any) -> Callable[[int], Any]:
    """Return what gives the first steps of a row, as the model reads it."""
    coder = model.coder_
    if not isinstance(row, str) or not isinstance(coder, TokenEncoder):
        return lambda t: row[:t]
    tokenizer = make_tokenizer(coder.tokens)
    tokens = list(tokenizer.encode_text(row))
    return lambda t: row if t == len(tokens) else tokenizer.decode(tokens[:t])


def _plain(truth: Any) -> Any:
    """Return a truth as plain values."""
    if isinstance(truth, str | np.str_):
        return str(truth)
    array = np.asarray(truth)
    if array.dtype.kind in "fiu" and array.ndim:
        return (
            [float(each) for each in array.reshape(-1)]
            if array.dtype.kind == "f"
            else [str(each) for each in array]
        )
    if array.ndim:
        return [str(each) for each in array.reshape(-1)]
    return [float(array)] if array.dtype.kind == "f" else str(truth)
