"""Values that the parts of a model pass to each other: states, dropout masks, outputs."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from unspool.kernels.arrays import Floats, Ids, Mask
from unspool.kernels.tape import Tape

Pattern = Literal["hidden", "output", "last"]


Feedback = Literal["token", "logits"]


State = list[tuple[Floats, Floats | None]]
"""(h, s) of every layer and direction, each (B, H); s is the LSTM's and None elsewhere."""


def rows_of(state: State, rows: Any) -> State:
    """Return some rows of a state, by an index, a slice or an array of indices."""
    return [(h[rows], None if s is None else s[rows]) for h, s in state]


def join_rows(states: list[State]) -> State:
    """Return the state of all rows from those of neighbouring rows."""
    if len(states) == 1:
        return states[0]
    return [
        (
            np.concatenate([h for h, _ in parts]),
            None if parts[0][1] is None else np.concatenate([s for _, s in parts if s is not None]),
        )
        for parts in zip(*states, strict=True)
    ]


def replace_rows(state: State, rows: Mask, other: State) -> State:
    """Return a state whose `rows` (B,) are those of another.

    >>> zero, one = np.zeros((2, 1)), np.ones((2, 1))
    >>> replace_rows([(one, None)], np.array([True, False]), [(zero, None)])[0][0].tolist()
    [[0.0], [1.0]]
    """

    def chosen(own: Floats, others: Floats) -> Floats:
        return np.where(rows if own.ndim == 1 else rows[:, None], others, own)

    return [
        (chosen(h, h_other), None if s is None or s_other is None else chosen(s, s_other))
        for (h, s), (h_other, s_other) in zip(state, other, strict=True)
    ]


FinalGradients = list[tuple[Floats | None, Floats | None]]
"""The gradients of the final (h, s) of every layer and direction."""


class Masks(NamedTuple):
    """Dropout for one window: the same masks at every step."""

    outputs: list[Floats] | None  # a layer, B width
    states: list[Floats] | None  # a layer and direction, B H

    def of_state(self, at: int, fed_back: bool) -> Floats | None:
        """Return the mask on h(t-1) of a layer and direction: that of the output where the output is fed back."""
        masks = self.outputs if fed_back else self.states
        return masks[at] if masks else None

    def rows(self, rows: slice) -> Masks:
        """Return the masks of some rows."""
        outputs, states = (None if each is None else [mask[rows] for mask in each] for each in self)
        return Masks(outputs, states)


class LayerTape(NamedTuple):
    """What one layer leaves: what it read, a tape a direction, and its dropout mask."""

    x: Floats | Ids
    directions: list[Tape]
    mask: Floats | None
    before: Ids | None = None
    """Where the output is the only way back, the outputs before each step, tau B."""


class Output(NamedTuple):
    """What a window gives."""

    h: Floats  # tau B width, of the last layer
    state: State
    tape: list[LayerTape]
    ids: Ids | None  # tau B, the tokens that were read, padding made harmless
