"""Networks in another form with the same states or the same loss, for analyses that need that form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Ids
from unspool.model.config import ModelConfig
from unspool.model.feedback import AT
from unspool.model.network import Model
from unspool.model.packed import recurrence
from unspool.model.parameters import Parameters, shapes_of


def hidden_config(config: ModelConfig) -> ModelConfig:
    """Return the config of figure 10.3 with the same sizes."""
    return replace(config, pattern="hidden", feedback="token")


def as_hidden(model: Model) -> Model:
    """Return the network of figure 10.3 with the same states, bit for bit, where o(t-1) is fed back.

    There W = R V and b + R c are its parameters. Any other model is returned unchanged.

    >>> model = Model.initialise(ModelConfig(cell="elman", inputs=5, outputs=5, pattern="10.4", feedback="logits"), seed=1)
    >>> x = np.array([[0], [3], [1]], np.int32)
    >>> bool((as_hidden(model).forward(x).h == model.forward(x).h).all())
    True
    """
    if not model.config.feeds_logits:
        return model
    config = hidden_config(model.config)
    parameters = Parameters(shapes_of(config)).astype(model.backend.DTYPE)
    W, b = recurrence(model.config, model.parameters, model.backend)
    for name, value in (dict(model.parameters) | {AT + "W": W, AT + "b": b}).items():
        if name in parameters.shapes:
            parameters[name][:] = value
    return Model(config, parameters, model.backend)


def with_output_every_step(model: Model, y: Ids, tau: int) -> tuple[Model, Ids]:
    """Return the same loss with a target at every step: pattern="last" becomes "hidden", all but the last step masked.

    A row that ends before keeps its state from there on, so its final state is also the state of the last step.
    """
    if model.config.pattern != "last":
        return model, y
    if model.config.bidirectional:
        raise InputError("one output after both directions cannot be decomposed by step")
    every = np.full((tau, *y.shape), -1, np.int32)
    every[-1:] = y
    return Model(replace(model.config, pattern="hidden"), model.parameters, model.backend), every


def refuse_feedback(config: ModelConfig) -> None:
    """Raise where there is no chain of states."""
    if config.feeds_tokens:
        raise InputError(
            "pattern='output' has no chain of states: nothing reaches back further than one step"
        )
