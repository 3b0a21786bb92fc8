"""Read a long text in windows, the state carried from one to the next.

    x(1) … x(w) ─▶ state ─▶ x(w+1) … x(2w) ─▶ state ─▶ …

Windows only bound the memory: a window of any size gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from unspool.errors import InputError
from unspool.kernels.arrays import Ids
from unspool.kernels.backend import PRECISIONS
from unspool.model.config import ModelConfig
from unspool.model.network import Model
from unspool.model.packed import Weights
from unspool.model.values import Output, State

Edit = Callable[[Output], Output]
"""What replaces the output of a window, for example with a unit of its last step set to a value."""


class WindowRead(NamedTuple):
    """One window of a text, read."""

    begin: int
    """The number of its first step."""
    y: Ids  # tau B, the targets
    output: Output
    weights: Weights
    """The same for all windows."""


def read_windows(
    model: Model,
    x: Ids,
    y: Ids,
    *,
    window: int,
    what: str,
    edits: Mapping[int, Edit] | None = None,
    begin: int = 0,
    state: State | None = None,
    weights: Weights | None = None,
) -> Iterator[WindowRead]:
    """Yield the windows of x (T, B) with targets y (T, B); `what` is the command that an error message names.

    The targets are the outputs before where tokens are fed back (figure 10.4): they are known by then. `edits` change what
    a step leaves, by its number: a window ends after such a step. `state` is the state before step `begin`, by default the
    initial one; `weights` are those of the model, packed earlier.
    """
    require_text_model(model.config, what)
    require_own_precision(model, what)
    if window < 1:
        raise InputError(f"{what}: window is {window}; expected at least 1")
    weights = model.weights() if weights is None else weights
    state = model.initial_state(x.shape[1]) if state is None else state
    edits = edits or {}
    cuts = sorted({*range(begin, len(x), window), len(x), *(t + 1 for t in edits if begin <= t < len(x))})
    for first, end in pairwise(cuts):
        here, after = (np.ascontiguousarray(ids[first:end], np.int32) for ids in (x, y))
        output = model.forward(here, state, weights=weights, y=after)
        if (edit := edits.get(end - 1)) is not None:
            output = edit(output)
        yield WindowRead(first, after, output, weights)
        state = output.state


def require_own_precision(model: Model, what: str) -> None:
    """Raise if a model is computed in another precision than it was trained in: its probabilities would be others."""
    own = model.config.precision
    for other, backend in PRECISIONS.items():
        if model.backend is backend and other != own:
            raise InputError(
                f"{what}: this model is in {own} and would be computed in {other}; use it in {own}"
            )


def require_text_model(config: ModelConfig, what: str) -> None:
    """Raise unless a model reads tokens in one direction and predicts the next one at every step."""
    if config.dense or config.bidirectional or config.pattern == "last":
        raise InputError(
            f"{what}: needs a model of tokens that reads in one direction, with an output at every step "
            "(pattern='hidden' or 'output')"
        )
