"""One sequence, one token at a time: the fast case of generating, in constant time and memory a token."""

from __future__ import annotations

from typing import Any

import numpy as np

from unspool.errors import InputError
from unspool.kernel import ops
from unspool.model import Model
from unspool.values import Floats


class Stream:
    """A model that reads tokens and draws the next; its state can be taken out and put back.

    >>> from unspool.config import ModelConfig
    >>> stream = Stream(Model.fresh(ModelConfig(cell="gru", inputs=5, outputs=5, hidden=8), seed=1))
    >>> stream.read(3)
    >>> stream.logits().shape
    (5,)
    """

    def __init__(self, model: Model) -> None:
        config = model.config
        if config.dense or config.bidirectional:
            raise InputError("a stream needs tokens and one direction: it cannot read from the end")
        if config.pattern != "hidden":
            raise InputError("a stream needs pattern='hidden': an output at every step, from a state")
        weights = model.weights()
        layers: list[tuple[Any, ...]] = []
        for i, (layer,) in enumerate(weights.layers):
            first = i == 0
            layers.append(
                (
                    ops.CELLS[layer.cell],
                    ops.ACTIVATIONS[layer.activation],
                    layer.W_forward,
                    model.table() if first else None,
                    None if first else layer.U_forward,
                    None if first else layer.b.copy(),
                    None if layer.d is None else layer.d.copy(),
                )
            )
        self._native = ops.Stream(layers, weights.V[0], model.parameters["c"].copy(), [weights])
        self.restore([(h[0], None if s is None else s[0]) for h, s in model.start(1)])

    def read(self, token: int) -> None:
        """Read one token: the state moves on, and the logits of the next are ready."""
        try:
            self._native.read(token)
        except TypeError:
            raise InputError(f"token is {token!r}; expected a whole number of int32") from None

    def draw(self, u: float, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
        """Draw the next token with a number u from [0, 1); temperature 0 takes the most probable."""
        try:
            return self._native.choose(temperature, top_k, top_p, u)
        except TypeError:
            raise InputError(
                f"u, temperature, top_k and top_p are {u!r}, {temperature!r}, {top_k!r} and {top_p!r}; "
                "expected numbers, and a whole one for top_k"
            ) from None

    def advance(
        self,
        token: int,
        *,
        seed: int,
        index: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
    ) -> int:
        """Read a token and draw the next with the `index`-th number of the seed's sequence."""
        try:
            return self._native.advance(token, temperature, top_k, top_p, seed % 2**64, index)
        except TypeError:
            raise InputError(
                f"token, index, seed and top_k are {token!r}, {index!r}, {seed!r} and {top_k!r}; expected "
                f"whole numbers, and numbers for temperature {temperature!r} and top_p {top_p!r}"
            ) from None

    def logits(self) -> Floats:
        """Return o(t), the unnormalised log-probabilities of the next token."""
        return self._native.logits()

    def state(self) -> list[tuple[Floats, Floats]]:
        """Return a copy of (h, s) of every layer; s is zero where the cell has none."""
        return self._native.state()

    def restore(self, state: list[tuple[Floats, Floats | None]]) -> None:
        """Go on from a state."""
        for part in state:
            if not (isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], np.ndarray)):
                raise InputError("a state is made of (h, s), arrays of float32; s may be None")
        self._native.set_state([(h, np.zeros_like(h) if s is None else s) for h, s in state])
